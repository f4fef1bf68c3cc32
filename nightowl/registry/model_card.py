"""MODEL_CARD.md: what a version is, for people who only have the bundle. Every figure is from its records."""

from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.verdict import Check, Verdict
from nightowl.params import EvaluateParams
from nightowl.registry.record import BundleRecord

_LICENCE = """Made with nightowl and ultralytics, both under the GNU AGPL version 3. Inside a company it may be used freely.
Whoever gives it to others, or lets others use it over a network, owes them the complete source. Ultralytics holds that this
extends to models trained with it, and sells another licence."""


def model_card(
    record: BundleRecord, metrics: Metrics, operating: OperatingPoint | None, verdict: Verdict, limits: EvaluateParams
) -> str:
    """The card as Markdown."""
    sections = [
        f"# {record.detector}, night {record.night_id}",
        f"Detects {', '.join(record.classes)} on images brought to {record.image_size} x {record.image_size} pixels. "
        "How to run it: `run_model.py` in this folder, and docs/deploy.md of nightowl.",
        f"## Formats\n\n{_formats(record)}",
        f"## Data\n\n{_data(record)}",
        f"## Metrics\n\n{_measured(metrics)}",
        f"## Verdict\n\n{verdict.sentence}\n\n{_checks(verdict)}",
        f"## Limits\n\n{_limits(metrics, operating, verdict, limits)}",
        f"## Licence\n\n{_LICENCE}",
    ]
    return "\n\n".join(sections) + "\n"


def _formats(record: BundleRecord) -> str:
    """Those that ship, and why another does not. An engine is made elsewhere, and the bundle has none."""
    lines = [
        f"{name}, {precision}" + (": built from the ONNX where the GPU is" if name == "tensorrt" else "")
        for name, precision in record.formats.items()
    ]
    lines += [f"{name} is left out: {_escaped('; '.join(reasons))}" for name, reasons in record.left_out.items()]
    return "\n".join(f"- {line}" for line in lines)


def _data(record: BundleRecord) -> str:
    changed = ", with changes not committed" if record.dirty else ""
    return (
        f"Dataset version `{record.dataset_version}`: `inputs/manifest.jsonl` names every image. Base weights: "
        f"{record.base.name}. Code: commit `{record.code_commit}`{changed}."
    )


def _measured(metrics: Metrics) -> str:
    return f"On the {metrics.split} split: {metrics.num_images} images with {metrics.num_truth} objects.\n\n{_table(metrics)}"


def _table(metrics: Metrics) -> str:
    rows = ["| class | objects | AP50 | AP50-95 |", "|---|---|---|---|"]
    rows.append(f"| all | {metrics.num_truth} | {_figure(metrics.map50)} | {_figure(metrics.map50_95)} |")
    return "\n".join([*rows, *(_row(each) for each in metrics.classes)])


def _row(each: ClassMetrics) -> str:
    return f"| {_escaped(each.name)} | {each.num_truth} | {_figure(each.ap50)} | {_figure(each.ap50_95)} |"


def _checks(verdict: Verdict) -> str:
    """Every rule of the gate, its figure with the bounds that resampling the images gave, and its limit."""
    rows = ["| rule | figure | bounds | limit | passed |", "|---|---|---|---|---|"]
    return "\n".join([*rows, *(_check(check) for check in verdict.checks)])


def _check(check: Check) -> str:
    bounds = check.interval
    within = f"{bounds.low:.4g} to {bounds.high:.4g}, each at {bounds.confidence:.0%}" if bounds else "-"
    answer = "undecided" if check.undecided else "yes" if check.passed else "no"
    return f"| {_escaped(check.rule)} | {_figure(check.figure)} | {within} | {_figure(check.limit)} | {answer} |"


def _limits(metrics: Metrics, operating: OperatingPoint | None, verdict: Verdict, limits: EvaluateParams) -> str:
    unseen = [each.name for each in metrics.classes if each.num_truth == 0] or list(verdict.not_judged)
    lines = [
        "Measured on images like those of its data, and no others: another camera, light or product is another question.",
        f"Detections below {limits.confidence_floor:g} are not kept; of two of a class that overlap by more than "
        f"{limits.nms_iou:g} the better one stays; at most {limits.max_detections} an image.",
    ]
    if unseen:
        lines.append(f"Not judged, as they do not occur in the {metrics.split} split: {', '.join(map(_escaped, unseen))}.")
    if operating is None or operating.overall is None:
        lines.append("It has no operating point: from which confidence a detection counts is up to whoever uses it.")
    else:
        where = f"(chosen on {operating.split}), where a class has no other"
        lines.append(f"A detection counts from {operating.overall:.3f} {where}.")
    return "\n".join(f"- {line}" for line in lines)


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
