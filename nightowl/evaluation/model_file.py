"""What a model file is: the record that travels beside the weights, and inside the ONNX metadata."""

from typing import Literal

from nightowl.export_params import Precision
from nightowl.params import TilingParams
from nightowl.records import Record


class ModelRecord(Record):
    """The facts a runner needs. `head` is `raw` (boxes and class scores an anchor, NMS to do) or `end2end` (NMS-free, or with
    `nms_in_graph` thinned by the exported file). With `tiling` it was trained on tiles, and looks at an image in such."""

    architecture: str
    classes: tuple[str, ...]
    image_size: int
    head: Literal["raw", "end2end"]
    weights_sha256: str
    base: str
    base_sha256: str | None
    epochs_done: int
    best_epoch: int
    precision: Precision = "fp32"
    nms_in_graph: bool = False
    tiling: TilingParams | None = None
