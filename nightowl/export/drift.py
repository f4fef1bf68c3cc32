"""Where in the graph an export first says something else than the model that it came from.

Intermediate tensors are compared in the order of computation: first what each module hands on, then, inside the first module
that drifted, tensor by tensor. N images, each looked at alone.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import onnx
from numpy.typing import NDArray

from nightowl.export.graph import float_tensors, modules_of
from nightowl.export.inside import Inside, Tensors, inside_onnx, inside_torch
from nightowl.export.onnx import OUTPUT
from nightowl.export.parity import Drift

if TYPE_CHECKING:
    import torch


def module_outputs(model: onnx.ModelProto) -> dict[str, str]:
    """The tensor that each module hands on, its last one, in order: `/model.0` to `/model.0/act/Mul_output_0`."""
    modules, floats = modules_of(model.graph), set(float_tensors(model))
    return {modules[n.name]: o for n in model.graph.node if modules[n.name] for o in n.output if o in floats}


def first_drift(reference: onnx.ModelProto, candidate: Inside, images: NDArray[np.float32], limit: float) -> Drift | None:
    """The first tensor of `candidate` that differs by more than `limit` of its signal from the graph's, of those that both
    have."""
    outputs, said = module_outputs(reference).values(), inside_onnx(reference)
    coarse = _first(outputs, said(outputs, images), candidate(outputs, images), limit)
    if coarse is None:
        return None
    modules = modules_of(reference.graph)
    made_in = {name: modules[node.name] for node in reference.graph.node for name in node.output}
    inside = [name for name in float_tensors(reference) if made_in[name] == made_in[coarse.tensor]]
    fine = _first(inside, said(inside, images), candidate(inside, images), limit)
    return (fine or coarse).model_copy(update={"module": made_in[coarse.tensor]})


def first_drift_from_torch(
    module: "torch.nn.Module", graph: onnx.ModelProto, candidate: Inside, images: NDArray[np.float32], limit: float
) -> Drift | None:
    """The first module of `candidate` whose result differs from that of the same module in torch; `graph` has their names."""
    outputs = module_outputs(graph)
    said = inside_torch(module, outputs)(outputs.values(), images)
    found = _first(said, said, candidate(said, images), limit)
    made_by = {tensor: name for name, tensor in outputs.items()}
    return found and found.model_copy(update={"module": made_by[found.tensor]})


def _first(names: Iterable[str], reference: Tensors, candidate: Tensors, limit: float) -> Drift | None:
    for name in names:
        if name in reference and name in candidate:
            ours, theirs = reference[name], candidate[name]
            parts = (slice(0, 4), slice(4, None)) if name == OUTPUT and ours.ndim == 3 else (slice(None),)
            shares = [_share(ours[:, part], theirs[:, part]) for part in parts]  # scores are lost beside boxes in pixels
            share = float(np.max(shares))  # NaN stays NaN
            if not share <= limit:
                return Drift(tensor=name, module="", share=share if np.isfinite(share) else None)
    return None


def _share(reference: NDArray[np.float32], candidate: NDArray[np.float32]) -> float:
    """Root mean square of the difference, as a share of the reference's; infinite for another shape."""
    if reference.shape != candidate.shape:
        return float("inf")
    signal = np.sqrt(np.mean(np.square(reference, dtype=np.float64)))
    with np.errstate(over="ignore", invalid="ignore"):
        noise = np.sqrt(np.mean(np.square(candidate.astype(np.float64) - reference)))
    return float(noise / max(signal, 1e-12))
