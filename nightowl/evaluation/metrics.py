"""What was measured of a model, as records: the contract between evaluation, gate, registry and report.

Average precision follows COCO (101-point interpolation; IoU 0.50 to 0.95 in steps of 0.05), crowds ignored. A figure that
could not be measured (a class without truth) is None, never zero.
"""

from typing import Annotated

from pydantic import Field

from nightowl.records import Record

Unit = Annotated[float, Field(ge=0, le=1)]


class ClassMetrics(Record):
    """Figures of one class; `precision`, `recall` at the threshold of best F1 and IoU 0.5."""

    name: str
    num_truth: int
    ap50: Unit | None
    ap50_95: Unit | None
    precision: Unit | None
    recall: Unit | None
    best_f1_confidence: Unit | None


class Metrics(Record):
    """Figures of one model on one split of one dataset version."""

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


class Curves(Record):
    """Curves and counts for the report, one row a class in the order of `classes`."""

    classes: tuple[str, ...]
    recall: tuple[Unit, ...] = Field(description="the 101 recall points, 0 to 1")
    precision: tuple[tuple[Unit, ...] | None, ...] = Field(description="precision at IoU 0.5 at each recall point")
    confusion: tuple[tuple[int, ...], ...] = Field(
        description="rows: predicted class, last row: nothing predicted; columns: true class, last column: no truth"
    )
    confusion_confidence: Unit
