"""Params: what is computed. Everything here changes the result, is hashed, and is kept with the model.

The shared defaults are in the top-level `params.yaml`; a detector's own values, in `detectors/<name>/params.yaml`, are laid
over them section by section. Both are read as YAML 1.2 (as DVC reads them), validated strictly, and never mutated. Where
something runs is not here: see `settings.py`.
"""

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nightowl.audit_params import AuditParams
from nightowl.errors import ParamsError, did_you_mean
from nightowl.export_params import ExportParams
from nightowl.section import Fraction, Section

SECTIONS = ("data", "prepare", "train", "evaluate", "gate", "export")
DETECTOR_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class SplitParams(Section):
    """How images without a split get one: by a hash of their group, so that growing the data moves none of them."""

    val_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.15
    test_fraction: Annotated[float, Field(gt=0, lt=1)] = 0.15
    group_pattern: str | None = Field(
        None, description="regular expression on the path; its first group (or whole match) keeps a lot or video together"
    )
    group_table: str | None = Field(None, description="CSV or parquet file inside the source, with a row for each image")
    group_column: str | None = Field(None, description="its column that keeps a lot or video together")
    image_column: str = Field("image", description="its column that names the image: path, file name, or that without suffix")

    @model_validator(mode="after")
    def _check(self) -> "SplitParams":
        if (self.group_table is None) != (self.group_column is None):
            raise ValueError("group_table and group_column belong together: give both or neither")
        if self.group_pattern is not None and self.group_column is not None:
            raise ValueError("group_pattern and group_column both say what a group is: give one of them")
        if self.val_fraction + self.test_fraction >= 1:
            raise ValueError("val_fraction + test_fraction must be < 1, or nothing is left to train on")
        _require_pattern(self.group_pattern)
        return self


def _require_pattern(pattern: str | None, name: str = "group_pattern") -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"{name} is not a regular expression: {error}") from error


class DataParams(Section):
    """What is read from the source, and how it is divided."""

    layout: Literal["auto", "yolo", "coco", "voc"] = "auto"
    classes: tuple[str, ...] | None = Field(None, description="class names in order; needed where the layout has none")
    images: str | None = Field(None, description="images folder inside the source, where detection cannot tell")
    annotations: str | None = Field(None, description="annotations folder or file inside the source")
    splits: dict[Literal["train", "val", "test"], str] = Field(
        default_factory=dict, description="files of image names (one a line) inside the source, per split"
    )
    split: SplitParams = SplitParams()


class TilingParams(Section):
    """How large images are looked at: in overlapping square tiles, each scaled to the network's input. For tiny objects."""

    size_px: Annotated[int, Field(ge=32, le=16_384)] = Field(640, description="side of a tile, pixels of the original image")
    overlap: Annotated[float, Field(ge=0, le=0.75)] = Field(
        0.2, description="part of a side that neighbours share; at least the largest object, or none sees it whole"
    )
    min_visible: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="a box cut by a tile's edge is learnt in it, clipped, if this part of its area lies inside"
    )
    empty_fraction: Fraction = Field(0.1, description="part of the tiles without a box that training sees")
    merge: Literal["union", "suppress"] = Field(
        "union", description="boxes of one class from two tiles that match: their hull, or the better one alone"
    )
    merge_overlap: Annotated[float, Field(gt=0, le=1)] = Field(
        0.5, description="they match from this intersection on, as a part of the smaller box"
    )


class PrepareParams(Section):
    """How images are made ready for the network."""

    image_size: Annotated[int, Field(ge=32, le=8192, multiple_of=32)] = Field(640, description="network input side, pixels")
    max_quarantined_fraction: Fraction = Field(0.1, description="more broken images than this stop the night")
    cache: Literal["raw", "jpeg"] = Field("raw", description="form of training images kept on disk; jpeg alters pixels")
    jpeg_quality: Annotated[int, Field(ge=50, le=100)] = Field(95, description="of the jpeg form")
    tiling: TilingParams | None = Field(None, description="for images much larger than their objects; null: whole images")
    audit: AuditParams = AuditParams()


class AugmentParams(Section):
    """Training-time augmentation; the names and meanings are those of ultralytics."""

    mosaic: Fraction = 1.0
    mosaic_last: Fraction | None = Field(
        None, description="its probability in the last epoch before it is closed, reached in a straight line; null: as at first"
    )
    mixup: Fraction = 0.0
    hsv_h: Fraction = 0.015
    hsv_s: Fraction = 0.7
    hsv_v: Fraction = 0.4
    degrees: Annotated[float, Field(ge=0, le=180)] = 0.0
    translate: Fraction = 0.1
    scale: Annotated[float, Field(ge=0, lt=1)] = 0.5
    shear: Annotated[float, Field(ge=0, le=90)] = 0.0
    perspective: Annotated[float, Field(ge=0, le=0.001)] = 0.0
    flip_up_down: Fraction = 0.0
    flip_left_right: Fraction = 0.5


class TrainParams(Section):
    """One training. `global_batch` counts images per optimizer step over all devices."""

    base: str = Field("yolo11n.pt", description="a model .yaml (random weights), a .pt (local or published), or `champion`")
    epochs: Annotated[int, Field(ge=1, le=100_000)] = 100
    global_batch: Annotated[int, Field(ge=1, le=65_536)] = 16
    optimizer: Literal["auto", "SGD", "Adam", "AdamW", "MuSGD"] = "auto"
    lr0: Annotated[float, Field(gt=0, le=1)] = 0.01
    lrf: Annotated[float, Field(gt=0, le=1)] = Field(0.01, description="last learning rate as a fraction of lr0")
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.937
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0005
    warmup_epochs: Annotated[float, Field(ge=0)] = 3.0
    close_mosaic_epochs: Annotated[int, Field(ge=0)] = Field(10, description="last epochs without mosaic")
    patience_epochs: Annotated[int, Field(ge=1)] = Field(100, description="epochs without a better val mAP before it stops")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="of forward and backward; auto: bf16 where the machine is fast in it, else fp32"
    )
    memory_format: Literal["auto", "contiguous", "channels_last"] = "auto"
    multi_scale: Annotated[float, Field(ge=0, lt=1)] = Field(0.0, description="how far the image size varies from step to step")
    freeze: tuple[Annotated[int, Field(ge=0, lt=1000)], ...] = Field((), description="numbers of the layers that do not learn")
    activation_checkpointing: bool = Field(False, description="less memory for about a third more time")
    sync_batch_norm: bool = Field(False, description="BatchNorm over all devices' images; for small shares on several GPUs")
    compile: bool = Field(False, description="torch.compile of the model: minutes at the start, faster steps")
    augment: AugmentParams = AugmentParams()


class OperatingRule(Section):
    """How the confidence is chosen, on val, from which a detection counts in use."""

    rule: Literal["best_f1", "min_recall", "max_fp_per_image"] = "best_f1"
    value: Annotated[float, Field(gt=0)] | None = Field(
        None, description="the least recall (0 to 1], or the most false positives an image; none for best_f1"
    )

    @model_validator(mode="after")
    def _check(self) -> "OperatingRule":
        if self.rule == "best_f1" and self.value is not None:
            raise ValueError("rule best_f1 takes no value; remove it, or choose min_recall or max_fp_per_image")
        if self.rule != "best_f1" and self.value is None:
            raise ValueError(f"rule {self.rule} needs a value")
        if self.rule == "min_recall" and self.value is not None and self.value > 1:
            raise ValueError("the value of min_recall is a share, from 0 to 1")
        return self


class OperatingParams(OperatingRule):
    """The rule for all classes, and for single ones where they differ."""

    classes: dict[str, OperatingRule] = Field(default_factory=dict, description="a class's own rule, by its name")


class SliceRule(Section):
    """A way to divide the test images: by a pattern on the path, or by a column of a table."""

    name: Annotated[str, Field(min_length=1)]
    pattern: str | None = Field(
        None, description="regular expression on the path; one slice for each value of its first group, or of all it matches"
    )
    column: str | None = Field(None, description="column of a CSV or parquet file beside the data; one slice for each value")
    table: str | None = Field(
        None, description="that file inside the source; its column `image` names images as that of data.split.group_table does"
    )

    @model_validator(mode="after")
    def _check(self) -> "SliceRule":
        if (self.pattern is None) == (self.column is None):
            raise ValueError("a slice needs a pattern or a column, and not both")
        if (self.column is None) != (self.table is None):
            raise ValueError("column and table belong together: give both or neither")
        _require_pattern(self.pattern, "pattern")
        return self


class EvaluateParams(Section):
    """How detections are made and matched when a model is measured."""

    confidence_floor: Annotated[float, Field(gt=0, lt=1)] = Field(0.001, description="detections below it are not kept")
    nms_iou: Annotated[float, Field(gt=0, le=1)] = 0.7
    max_detections: Annotated[int, Field(ge=1, le=30_000)] = 300
    operating_point: OperatingParams = OperatingParams()
    slices: tuple[SliceRule, ...] = Field((), description="parts of test that are measured on their own")


class OperatingLimits(Section):
    """Limits at the operating point, of all classes together or of one."""

    max_miss_rate: Fraction | None = Field(None, description="share of objects not found, at the operating point; null: any")
    max_fp_per_image: Annotated[float, Field(ge=0)] | None = Field(None, description="false positives an image; null: any")
    max_escape_rate: Fraction | None = Field(
        None, description="share of the images with an object on which nothing is detected; null: any"
    )
    max_overkill_rate: Fraction | None = Field(
        None, description="share of the images without an object on which something is detected; null: any"
    )


class GateParams(OperatingLimits):
    """What a candidate must reach to be promoted. All figures are on the test split; its own limits are of all classes."""

    min_test_images: Annotated[int, Field(ge=1)] = Field(20, description="fewer than this cannot carry a decision")
    min_map50: Fraction = Field(0.1, description="floor, also for the first model; set it to what the line needs")
    min_map50_95: Fraction = 0.0
    min_class_ap50: Fraction = Field(0.0, description="floor for each class that occurs in test")
    rule: Literal["non_inferiority", "superiority", "point"] = Field(
        "non_inferiority",
        description="against the champion: a loss beyond the margin ruled out; a gain shown; or the figures alone",
    )
    margin: Fraction = Field(
        0.02, description="how far mAP50-95 may lie below the champion's, absolute; superiority allows none"
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = Field(0.95, description="of each bound, one-sided")
    error_budget: Annotated[float, Field(gt=0)] = Field(
        1.0, description="expected false promotions on one test set, over all nights; each decision spends a share of the rest"
    )
    max_canary_gap: Fraction = Field(
        0.005, description="how far the champion's mAP50-95 tonight may lie from what it was when made, on the same images"
    )
    canary_blocks: bool = Field(True, description="a larger gap leaves the night undecided; false: it is only said")
    num_resamples: Annotated[int, Field(ge=100, le=1_000_000)] = Field(1000, description="of the test images, paired")
    group_pattern: str | None = Field(
        None, description="regular expression on the path; images of one group (a lot, a video) are resampled together"
    )
    max_drop_class_ap50: Fraction = Field(0.1, description="how far any common class may lie below the champion, absolute")
    min_size_map50: dict[Literal["small", "medium", "large"], Fraction] = Field(
        default_factory=dict, description="floors by size of object, mAP50; COCO's sizes"
    )
    max_drop_size_map50: Fraction | None = Field(None, description="how far any size may lie below the champion; null: any")
    min_slice_map50: dict[str, Fraction] = Field(default_factory=dict, description="floors by name of slice, mAP50")
    max_drop_slice_map50: Fraction = Field(0.1, description="how far any slice may lie below the champion, absolute")
    class_limits: dict[str, OperatingLimits] = Field(
        default_factory=dict, description="a class's own limits at the operating point, by its name"
    )
    operating_limits: Literal["bound", "point"] = Field(
        "bound", description="what must keep these limits: the upper bound of the rate, or the rate as counted"
    )
    max_seconds_per_image: Annotated[float, Field(gt=0)] | None = Field(
        None, description="of each artefact at batch 1 on this machine's CPU; null: any"
    )
    max_p99_seconds_per_image: Annotated[float, Field(gt=0)] | None = Field(
        None, description="the same, of the slowest calls: the 99th percentile; null: any"
    )
    max_latency_ratio: Annotated[float, Field(gt=0)] | None = Field(
        None, description="its time as a multiple of that of the champion's ONNX, measured in turn; null: any"
    )
    max_model_bytes: Annotated[int, Field(gt=0)] | None = Field(None, description="size of its files; null: any")
    class_change: Literal["compare_common", "refuse"] = Field(
        "compare_common", description="when candidate and champion know other classes: judge the common ones, or refuse"
    )

    @model_validator(mode="after")
    def _check(self) -> "GateParams":
        if 1 - self.confidence > self.error_budget:
            raise ValueError("error_budget must be at least 1 - confidence, or the first night could not spend its share")
        _require_pattern(self.group_pattern)
        return self


class Params(Section):
    """All that determines a detector's model, besides its pinned inputs and the code."""

    data: DataParams = DataParams()
    prepare: PrepareParams = PrepareParams()
    train: TrainParams = TrainParams()
    evaluate: EvaluateParams = EvaluateParams()
    gate: GateParams = GateParams()
    export: ExportParams = ExportParams()

    def as_yaml(self) -> str:
        """Every value as YAML, defaults included, in the order of the sections."""
        text = io.StringIO()
        writer = YAML(typ="safe", pure=True)
        writer.default_flow_style = False
        writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
        writer.dump(self.model_dump(mode="json"), text)
        return text.getvalue()


def load_params(root: Path, detector: str) -> Params:
    """The params of `detector`: `root/params.yaml` overlaid with `root/detectors/<detector>/params.yaml`.

    Raises:
        ParamsError: with every fault of both files at once, each with its file and key path.
    """
    shared_path, own_path = root / "params.yaml", root / "detectors" / detector / "params.yaml"
    names = detector_names(root)
    if detector not in names:
        raise ParamsError(
            f"{shared_path}: no detector {detector!r} in its list `detectors` ({', '.join(names) or 'empty'})"
            f"{did_you_mean(detector, names)}; "
            f"`nightowl init {detector} --source PATH` makes one"
        )
    shared, own = _read_yaml(shared_path), _read_yaml(own_path)
    del shared["detectors"]  # the list of names; in a detector's own file it is an unknown key like any other
    faults = _faults(shared_path, shared) + _faults(own_path, own)
    faults += [
        f"{own_path}: section `{s}` is missing; write `{s}: {{}}` to take the defaults" for s in SECTIONS if s not in own
    ]
    if faults:
        raise ParamsError("\n".join(faults))
    return parse_params(_overlay(shared, own), str(own_path))


def parse_params(values: Mapping[str, object], where: str) -> Params:
    """Params from plain values, validated as JSON. Raises ParamsError naming every fault under `where`."""
    try:
        return Params.model_validate_json(json.dumps(values))
    except ValidationError as error:
        raise ParamsError("\n".join(_describe(where, values, error))) from error


def detector_names(root: Path) -> list[str]:
    """The list `detectors` of the top-level params.yaml. Raises ParamsError when it is absent or malformed."""
    path = root / "params.yaml"
    names = _read_yaml(path).get("detectors")
    if not isinstance(names, list) or not all(isinstance(n, str) and DETECTOR_NAME.fullmatch(n) for n in names):
        raise ParamsError(f"{path}: `detectors` must be a list of names of a-z, 0-9, - and _, got {names!r}")
    if len(set(names)) < len(names):
        raise ParamsError(f"{path}: `detectors` names one more than once: {', '.join(names)}; remove the second")
    return list(names)


def _read_yaml(path: Path) -> dict[str, object]:
    try:
        values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(f"{path}: no such file; run inside a nightowl checkout") from None
    except (YAMLError, ValueError, OSError) as error:
        detail = " ".join(str(error).split())
        raise ParamsError(f"{path}: not readable as YAML: {detail}") from error
    except RecursionError:
        raise ParamsError(f"{path}: nested deeper than params are; expected sections with keys") from None
    if not isinstance(values, dict):
        raise ParamsError(f"{path}: expected sections ({', '.join(SECTIONS)}), found {type(values).__name__}")
    return {str(key): value for key, value in values.items()}


def _faults(path: Path, values: Mapping[str, object]) -> list[str]:
    try:
        Params.model_validate_json(json.dumps(values))
    except ValidationError as error:
        return _describe(str(path), values, error)
    except (TypeError, ValueError) as error:
        return [f"{path}: {error}"]
    return []


def _describe(where: str, values: Mapping[str, object], error: ValidationError) -> list[str]:
    """One line a fault: file, key path, what was expected, what was found."""
    lines = []
    for fault in error.errors(include_url=False):
        path = ".".join(str(part) for part in fault["loc"]) or "(whole file)"
        if fault["type"] == "extra_forbidden":
            known = _known_keys(fault["loc"])
            meant = did_you_mean(path.rpartition(".")[2], known)
            lines.append(f"{where}: {path} is not a known key{meant}; known here: {', '.join(known)}")
        else:
            message = fault["msg"].removeprefix("Value error, ")
            lines.append(f"{where}: {path}: {message[:1].lower()}{message[1:]}, got {json.dumps(fault['input'])}")
    return lines


def _known_keys(location: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Params
    for part in location[:-1]:
        annotation = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            break
        model = annotation
    return sorted(model.model_fields)


def _overlay(shared: Mapping[str, object], own: Mapping[str, object]) -> dict[str, object]:
    """`own` laid over `shared`, mapping by mapping; neither is changed."""
    merged = dict(shared)
    for key, value in own.items():
        below = merged.get(key)
        merged[key] = _overlay(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged
