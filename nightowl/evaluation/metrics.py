"""What was measured of a model, as records: the contract between evaluation, gate, registry and report.

Average precision follows COCO (101-point interpolation; IoU 0.50 to 0.95 in steps of 0.05), crowds ignored. A figure that
could not be measured (a class without truth) is None, never zero.
"""

from typing import Annotated

from pydantic import Field

from nightowl.evaluation.sizes import Size
from nightowl.records import Record

Unit = Annotated[float, Field(ge=0, le=1)]


class AverageRecall(Record):
    """Recall averaged over IoU 0.50 to 0.95, with the 1, 10 and 100 best detections an image and class."""

    ar1: Unit | None
    ar10: Unit | None
    ar100: Unit | None


class SizeMetrics(Record):
    """Figures of the objects of one size (COCO's: below 32 x 32 pixels, to 96 x 96, above); `ar100` is average recall."""

    size: Size
    num_truth: int
    ap50: Unit | None
    ap50_95: Unit | None
    ar100: Unit | None


class ClassMetrics(Record):
    """Figures of one class; `precision`, `recall` at the threshold of best F1 and IoU 0.5."""

    name: str
    num_truth: int
    ap50: Unit | None
    ap50_95: Unit | None
    precision: Unit | None
    recall: Unit | None
    best_f1_confidence: Unit | None
    ap75: Unit | None = None
    ar: AverageRecall | None = None
    sizes: tuple[SizeMetrics, ...] = ()


class SliceMetrics(Record):
    """Figures on the images of one slice; means are over the classes that occur in it."""

    name: str
    num_images: int
    num_truth: int
    map50: Unit | None
    map50_95: Unit | None
    classes: tuple["SliceClass", ...]


class SliceClass(Record):
    name: str
    num_truth: int
    ap50: Unit | None
    ap50_95: Unit | None


class Metrics(Record):
    """Figures of one model on one split of one dataset version; `ar` and `sizes` are means over the classes that have truth."""

    model: str = Field(description="what was measured: `candidate`, or NAME vN")
    weights_sha256: str
    dataset_version: str
    split: str
    num_images: int
    num_truth: int
    map50: Unit | None
    map75: Unit | None
    map50_95: Unit | None
    classes: tuple[ClassMetrics, ...]
    seconds_per_image: float
    ar: AverageRecall | None = None
    sizes: tuple[SizeMetrics, ...] = ()
    slices: tuple[SliceMetrics, ...] = ()


class Curves(Record):
    """Curves and counts for the report, one row a class in the order of `classes`."""

    classes: tuple[str, ...]
    recall: tuple[Unit, ...] = Field(description="the 101 recall points, 0 to 1")
    precision: tuple[tuple[Unit, ...] | None, ...] = Field(description="precision at IoU 0.5 at each recall point")
    confusion: tuple[tuple[int, ...], ...] = Field(
        description="rows: predicted class, last row: nothing predicted; columns: true class, last column: no truth"
    )
    confusion_confidence: Unit
