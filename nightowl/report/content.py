"""What a report says, as one frozen record: everything the page needs, nothing read from disk while it is drawn.

A part that is None was not made in this night, and the page says so; it is never shown as zero.
"""

from datetime import datetime
from typing import Literal

from nightowl.data.audit import Audit
from nightowl.data.findings import Finding
from nightowl.data.manifest import Split
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.changes import Changes
from nightowl.evaluation.metrics import Curves, Metrics
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.suspicious import Suspicion
from nightowl.evaluation.timings import Speed
from nightowl.evaluation.verdict import Verdict
from nightowl.export.parity import Parity
from nightowl.machines.account import Account
from nightowl.records import Record
from nightowl.training.base import BaseWeights
from nightowl.training.hardware import HardwareSummary
from nightowl.training.record import TrainingRecord

NightEnding = Literal["promoted", "refused", "nothing_new", "failed"]


class StageTiming(Record):
    """A stage that ended well in this night: executed here, or restored from the cache."""

    stage: str
    executed: bool
    seconds: float


class Failure(Record):
    """Why a night ended before its verdict; `interrupted` when it was stopped from outside and will go on.

    `seconds`: how long the stage had run; `saved`: how far its training is kept, in words. None: not known, or there is none.
    """

    stage: str | None
    message: str
    interrupted: bool = False
    seconds: float | None = None
    saved: str | None = None


class NightFacts(Record):
    """What only the night itself knows. `refused` covers every judged candidate that was not promoted; `rented` is None for a
    night whose stages ran where it did. `champion_known`: not of a night that was cut short before it looked."""

    night_id: str
    started_at: datetime
    seconds: float
    code_commit: str
    dirty: bool
    ending: NightEnding
    sentence: str
    registered_version: str | None = None
    previous_champion: str | None = None
    champion_known: bool = True
    stages: tuple[StageTiming, ...] = ()
    failure: Failure | None = None
    rented: Account | None = None

    def finished(self, stage: str) -> bool:
        return any(timing.stage == stage for timing in self.stages)

    def executed(self, stage: str) -> bool:
        """Whether it ended well here, and was not restored from what another night made."""
        return any(timing.stage == stage and timing.executed for timing in self.stages)


class SplitSummary(Record):
    """One split: its images, those without any object, and objects a class in the order of the classes."""

    split: Split
    num_images: int
    num_empty_images: int
    num_boxes: tuple[int, ...]


class DataSummary(Record):
    """A dataset version in figures; crowds are counted apart, as they are neither found nor missed."""

    dataset_version: str
    classes: tuple[str, ...]
    splits: tuple[SplitSummary, ...]
    num_crowds: int
    split_rule: str


class Series(Record):
    """A named curve of (x, y); y is None where there is no figure, and the line has a gap there."""

    name: str
    points: tuple[tuple[float, float | None], ...]


class HistoryChart(Record):
    """Curves over epochs that share one axis; `unit_range` when it runs from 0 to 1."""

    title: str
    series: tuple[Series, ...]
    unit_range: bool = False


class DrawnBox(Record):
    """A box on a thumbnail, boxes_xyxy in its pixels. `score` is None for truth."""

    kind: Literal["found", "missed", "crowd", "right", "false", "in_crowd", "gone"]
    name: str
    score: float | None
    x1: float
    y1: float
    x2: float
    y2: float


class Thumbnail(Record):
    """A test image, scaled to `width` x `height`. `jpeg` is base64; None when the pixels cannot be shown, `note` says why."""

    path: str
    width: int
    height: int
    jpeg: str | None
    note: str | None
    num_missed: int
    num_false: int
    num_truth: int
    num_boxes_left_out: int
    boxes: tuple[DrawnBox, ...]


class Gallery(Record):
    """The images with most errors, then the best of the rest, at one confidence and IoU 0.5."""

    confidence: float
    num_images: int
    num_without_error: int
    worst: tuple[Thumbnail, ...]
    best: tuple[Thumbnail, ...]


class AuditPicture(Record):
    """An image of an example, scaled to `width` x `height`; `box` (xyxy, in its pixels) is the one at fault. `note` says why
    there are no pixels."""

    path: str
    width: int
    height: int
    jpeg: str | None
    note: str | None
    box: tuple[float, float, float, float] | None


class AuditExample(Record):
    """A finding with what it is about: one image, or two that are the same."""

    finding: Finding
    pictures: tuple[AuditPicture, ...]


class AuditView(Record):
    """An audit with the first finding of each of its rows, and examples to look at."""

    audit: Audit
    first: tuple[Finding, ...]
    examples: tuple[AuditExample, ...]


class Differences(Record):
    """What changed against the champion, and the images that got worst, with their changes alone drawn on them."""

    changes: Changes
    worst: tuple[Thumbnail, ...]


class LabelDoubts(Record):
    """Labels of test that are worth a second look, the most suspicious first, some of them drawn."""

    listed: tuple[Suspicion, ...]
    pictures: tuple[Thumbnail, ...]


class ExportSummary(Record):
    """What ships against the weights it came from; sizes in bytes by the names in a bundle. `formats` are those that params ask
    for."""

    parity: Parity
    speed: Speed | None
    num_bytes: dict[str, int]
    formats: tuple[str, ...] = ("onnx",)


class Lineage(Record):
    """What the night depended on, besides its data. `params_fault` says why there are no params, where they cannot be read."""

    params_sha256: str | None
    params_yaml: str | None
    params_fault: str | None
    environment_sha256: str | None
    base: BaseWeights | None
    champion: ChampionRecord | None
    versions: tuple[tuple[str, str], ...]


class ReportContent(Record):
    """A whole page."""

    detector: str
    facts: NightFacts
    lineage: Lineage
    verdict: Verdict | None = None
    candidate: Metrics | None = None
    champion: Metrics | None = None
    curves: Curves | None = None
    champion_curves: Curves | None = None
    model: ModelRecord | None = None
    history: tuple[HistoryChart, ...] | None = None
    training: TrainingRecord | None = None
    hardware: HardwareSummary | None = None
    gallery: Gallery | None = None
    operating: OperatingFigures | None = None
    differences: Differences | None = None
    doubts: LabelDoubts | None = None
    data: DataSummary | None = None
    findings: tuple[Finding, ...] | None = None
    audit: AuditView | None = None
    export: ExportSummary | None = None
