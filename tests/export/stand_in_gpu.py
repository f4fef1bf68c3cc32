"""A machine that pretends to have a GPU with TensorRT: what our code asks CUDA, the driver and TensorRT is answered."""

import platform
from collections.abc import Callable

from tests.export import fake_tensorrt

GPU, DRIVER = "Stand-in L4", "580.65.06"
KEY = f"sm8.9-trt{fake_tensorrt.__version__}-driver{DRIVER}-linux_{platform.machine()}"


def pretend(set_attribute: Callable[[object, str, object], None]) -> None:
    """Change this process; `set_attribute` is `setattr`, or a test's monkeypatch, which takes it back."""
    import pynvml
    import torch

    from nightowl.export import tensorrt
    from nightowl.export.engine import TorchMemory

    set_attribute(tensorrt, "_tensorrt", lambda: fake_tensorrt)
    set_attribute(torch.cuda, "is_available", lambda: True)
    set_attribute(torch.cuda, "get_device_capability", lambda device: (8, 9))
    set_attribute(torch.cuda, "get_device_name", lambda device: GPU)
    set_attribute(pynvml, "nvmlInit", lambda: None)
    set_attribute(pynvml, "nvmlSystemGetDriverVersion", lambda: DRIVER)
    set_attribute(TorchMemory.__init__, "__defaults__", ("cpu",))
