"""What a model says inside: its intermediate tensors, by the names that the exported graph has for them, whatever it runs on.

N images, each looked at alone. A form may lack a tensor; then nothing is said of it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.export.graph import module_number, session, with_outputs

if TYPE_CHECKING:
    import torch

Tensors = Mapping[str, NDArray[np.float32]]
Inside = Callable[[Iterable[str], NDArray[np.float32]], Tensors]  # of the tensors asked for, those it has; over all images
_DEQUANTISED = "_DequantizeLinear_Output"


def as_seen(names: Iterable[str], present: Collection[str]) -> dict[str, str]:
    """Of `names` those that are `present`, with what to look at: of a quantised tensor what its consumers see."""
    return {name: name + _DEQUANTISED if name + _DEQUANTISED in present else name for name in names if name in present}


def inside_onnx(model: onnx.ModelProto) -> Inside:
    """Of the graph as it stands, by onnxruntime."""
    present = {name for node in model.graph.node for name in node.output}

    def say(names: Iterable[str], images: NDArray[np.float32]) -> Tensors:
        shown = as_seen(names, present)
        if not shown:
            return {}
        running, source = session(with_outputs(model, shown.values())), model.graph.input[0].name
        parts = [running.run(list(shown.values()), {source: image[None]}) for image in images]
        return {name: np.concatenate(values) for name, values in zip(shown, zip(*parts, strict=True), strict=True)}

    return say


def inside_torch(module: "torch.nn.Module", outputs: Mapping[str, str]) -> Inside:
    """Of `module`, what each part hands on: `outputs` has the name of that in the graph, by the part's. One that says several
    tensors is left out."""

    def say(names: Iterable[str], images: NDArray[np.float32]) -> Tensors:
        asked = set(names)
        return _handed_on(module, {part: tensor for part, tensor in outputs.items() if tensor in asked}, images)

    return say


def _handed_on(module: "torch.nn.Module", outputs: Mapping[str, str], images: NDArray[np.float32]) -> Tensors:
    import torch

    found: dict[str, list[NDArray[np.float32]]] = {}

    def keep(tensor: str, result: object) -> None:
        if isinstance(result, torch.Tensor):
            found.setdefault(tensor, []).append(np.asarray(result.float().cpu().numpy(), np.float32))

    parts = module.get_submodule("model")  # its children are what the graph's modules are named after
    hooks = [
        parts.get_submodule(str(module_number(name))).register_forward_hook(lambda *said, tensor=tensor: keep(tensor, said[-1]))
        for name, tensor in outputs.items()
    ]
    try:
        with torch.inference_mode():
            for image in images:
                module(torch.from_numpy(image[None]))
    finally:
        for hook in hooks:
            hook.remove()
    return {tensor: np.concatenate(values) for tensor, values in found.items()}
