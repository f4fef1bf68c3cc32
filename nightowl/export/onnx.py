"""A trained model as ONNX: one square input size, any batch, its card inside. The same model gives the same bytes.

Nothing is installed or simplified on the way; what torch traced is what ships.
"""

import copy
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import onnx

from nightowl.errors import StageFailed
from nightowl.evaluation.card import ModelCard, to_metadata
from nightowl.files import write_atomic

if TYPE_CHECKING:
    import torch

INPUT, OUTPUT = "images", "output0"
# onnxruntime of two years ago still reads this version of the file format.
MAX_IR_VERSION = 10


def export_onnx(module: "torch.nn.Module", card: ModelCard, opset: int, path: Path) -> None:
    """Write `module` in FP32 to `path`, with its card; see `traced`."""
    write_model(traced(module, card.model.image_size, opset), card, path)


def traced(module: "torch.nn.Module", size: int, opset: int) -> onnx.ModelProto:
    """`module` (eval mode, on the CPU; not changed) in FP32: float32 (B, 3, S, S) in, the head's output out.

    Raises:
        StageFailed: when the result is not valid ONNX.
    """
    model = onnx.load_from_string(_trace(_for_export(module), size, opset))
    model.ir_version = min(model.ir_version, MAX_IR_VERSION)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise StageFailed(f"export: the ONNX graph is not valid at opset {opset}: {error}") from error
    return model


def write_model(model: onnx.ModelProto, card: ModelCard, path: Path) -> None:
    """Publish the graph with `card`, and no other, in its metadata."""
    ours = onnx.ModelProto()
    ours.CopyFrom(model)
    del ours.metadata_props[:]
    for key, value in to_metadata(card).items():
        ours.metadata_props.add(key=key, value=value)
    write_atomic(path, ours.SerializeToString(deterministic=True))


def _for_export(module: "torch.nn.Module") -> "torch.nn.Module":
    """A copy whose detection head returns its output alone, as ultralytics' own exporter asks of it."""
    ours = copy.deepcopy(module).cpu().float().eval()
    for part in ours.modules():
        if hasattr(part, "export") and hasattr(part, "end2end"):
            part.export, part.format = True, "onnx"  # type: ignore[assignment]
    for parameter in ours.parameters():
        parameter.requires_grad_(False)
    return ours


def _trace(module: "torch.nn.Module", size: int, opset: int) -> bytes:
    import torch
    from torch.jit._trace import TracerWarning

    example = torch.zeros(2, 3, size, size)  # a batch of one would be taken for a constant
    with TemporaryDirectory(prefix="nightowl-") as scratch, torch.no_grad(), warnings.catch_warnings():
        target = Path(scratch) / "traced.onnx"
        module(example)  # the head keeps its anchors from the first call; traced, they are constants
        warnings.simplefilter("ignore", TracerWarning)
        warnings.filterwarnings(
            "ignore", category=DeprecationWarning
        )  # the tracing exporter: the other one needs more packages
        torch.onnx.export(
            module,
            (example,),
            target,
            opset_version=opset,
            input_names=[INPUT],
            output_names=[OUTPUT],
            dynamic_axes={INPUT: {0: "batch"}, OUTPUT: {0: "batch"}},
            dynamo=False,
        )
        return target.read_bytes()
