"""A working stand-in for the module `tensorrt`: it parses ONNX, keeps what it was configured with, and runs engines on
onnxruntime, on addresses of the host's memory. As strict as the real one where our code could be wrong."""

import base64
import ctypes
import json
from enum import Enum, IntEnum
from typing import Any

import numpy as np
import onnx
import onnxruntime

__version__ = "11.4.0.106"
GPU = "one"  # engines and timing caches of another are refused


class NetworkDefinitionCreationFlag(IntEnum):
    STRONGLY_TYPED = 1


class MemoryPoolType(Enum):
    WORKSPACE = 0


class HardwareCompatibilityLevel(Enum):
    NONE, AMPERE_PLUS, SAME_COMPUTE_CAPABILITY = range(3)


class BuilderFlag(Enum):
    TF32, VERSION_COMPATIBLE = range(2)


class TensorIOMode(Enum):
    INPUT, OUTPUT = range(2)


class Logger:
    WARNING = 2

    def __init__(self, severity: int) -> None:
        assert severity == self.WARNING


class _Tensor:
    def __init__(self, value: onnx.ValueInfoProto) -> None:
        self.name = value.name
        self.shape = tuple(axis.dim_value or -1 for axis in value.type.tensor_type.shape.dim)


class _Network:
    content = b""

    def get_input(self, number: int) -> _Tensor:
        return _Tensor(onnx.load_from_string(self.content).graph.input[number])


class OnnxParser:
    def __init__(self, network: _Network, log: Logger) -> None:
        self._network, self.num_errors = network, 0

    def parse(self, content: bytes) -> bool:
        try:
            onnx.checker.check_model(onnx.load_from_string(content))
        except Exception:  # noqa: BLE001  as broad as the real one
            self.num_errors = 1
            return False
        self._network.content = content
        return True

    def get_error(self, number: int) -> str:
        return f"error {number}: no such operator"


class _Cache:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def serialize(self) -> bytes:
        return self.content


class _Config:
    def __init__(self) -> None:
        self.flags, self.builder_optimization_level, self.workspace = {BuilderFlag.TF32}, 3, 0
        self.hardware_compatibility_level = HardwareCompatibilityLevel.NONE
        self.profiles: list[_Profile] = []
        self.cache = _Cache(b"")

    def set_memory_pool_limit(self, pool: MemoryPoolType, num_bytes: int) -> None:
        assert pool is MemoryPoolType.WORKSPACE
        self.workspace = num_bytes

    def set_flag(self, flag: BuilderFlag) -> None:
        self.flags.add(flag)

    def clear_flag(self, flag: BuilderFlag) -> None:
        self.flags.discard(flag)

    def create_timing_cache(self, content: bytes) -> _Cache:
        return _Cache(content)

    def set_timing_cache(self, cache: _Cache, ignore_mismatch: bool) -> bool:
        if cache.content and not cache.content.startswith(GPU.encode()) and not ignore_mismatch:
            return False
        self.cache = cache
        return True

    def get_timing_cache(self) -> _Cache:
        return self.cache

    def add_optimization_profile(self, profile: "_Profile") -> int:
        self.profiles.append(profile)
        return len(self.profiles) - 1


class _Profile:
    def set_shape(self, name: str, least: tuple[int, ...], best: tuple[int, ...], most: tuple[int, ...]) -> None:
        assert least <= best <= most
        self.name, self.shapes = name, (least, best, most)


class Builder:
    def __init__(self, log: Logger) -> None:
        assert isinstance(log, Logger)

    def create_network(self, flags: int) -> _Network:
        assert flags == 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
        return _Network()

    def create_builder_config(self) -> _Config:
        return _Config()

    def create_optimization_profile(self) -> _Profile:
        return _Profile()

    def build_serialized_network(self, network: _Network, config: _Config) -> bytes | None:
        if config.workspace < 2 << 20:
            return None
        profile = config.profiles[0]
        config.cache.content = (config.cache.content or GPU.encode()) + b"+"
        plan = {
            "onnx": base64.b64encode(network.content).decode(),
            "input": profile.name,
            "shapes": profile.shapes,
            "gpu": GPU,
            "flags": sorted(flag.name for flag in config.flags),
            "level": config.hardware_compatibility_level.name,
            "optimization": config.builder_optimization_level,
        }
        return json.dumps(plan).encode()


class Runtime:
    engine_host_code_allowed = False

    def __init__(self, log: Logger) -> None:
        assert isinstance(log, Logger)

    def deserialize_cuda_engine(self, plan: bytes) -> "_Engine | None":
        try:
            found = json.loads(plan)
        except ValueError:
            return None
        allowed = self.engine_host_code_allowed or "VERSION_COMPATIBLE" not in found["flags"]
        return _Engine(found) if found["gpu"] == GPU and allowed else None


class _Engine:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        content = base64.b64decode(plan["onnx"])
        self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        self._names = [self.session.get_outputs()[0].name, plan["input"]]  # the output first: an order that nobody promised
        self.num_io_tensors = len(self._names)

    def get_tensor_name(self, number: int) -> str:
        return str(self._names[number])

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name == self.plan["input"] else TensorIOMode.OUTPUT

    def get_tensor_profile_shape(self, name: str, profile: int) -> list[tuple[int, ...]]:
        assert (name, profile) == (self.plan["input"], 0)
        return [tuple(shape) for shape in self.plan["shapes"]]

    def create_execution_context(self) -> "_Context":
        return _Context(self)


class _Context:
    def __init__(self, engine: _Engine) -> None:
        self._engine, self._addresses = engine, dict[str, int]()
        self._shape: tuple[int, ...] = ()

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        least, _, most = self._engine.get_tensor_profile_shape(name, 0)
        if len(shape) != len(least) or not all(a <= b <= c for a, b, c in zip(least, shape, most, strict=True)):
            return False
        self._shape = shape
        return True

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        """A graph need not state it; a run tells."""
        (output,) = self._engine.session.run(None, {self._engine.plan["input"]: np.zeros(self._shape, np.float32)})
        return tuple(output.shape)

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return True

    def execute_async_v3(self, stream: int) -> bool:
        name = self._engine.plan["input"]
        if len(self._addresses) < 2:
            return False
        (output,) = set(self._addresses) - {name}
        given = _at(self._addresses[name], self._shape).copy()
        _at(self._addresses[output], self.get_tensor_shape(output))[:] = self._engine.session.run(None, {name: given})[0]
        return True


def _at(address: int, shape: tuple[int, ...]) -> Any:
    kind = ctypes.c_float * int(np.prod(shape))
    return np.ctypeslib.as_array(kind.from_address(address)).reshape(shape)
