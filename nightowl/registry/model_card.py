"""MODEL_CARD.md: what a version is, for people who only have the bundle. Every figure is from its records."""

from dataclasses import dataclass

from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.evaluation.operating import OperatingPoint
from nightowl.evaluation.operating_figures import Figures, OperatingFigures
from nightowl.evaluation.rates import Rate
from nightowl.evaluation.timings import Speed
from nightowl.evaluation.verdict import Check, Verdict
from nightowl.params import EvaluateParams
from nightowl.registry.record import BundleRecord

_LICENCE = """Made with nightowl and ultralytics, both under the GNU AGPL version 3. Inside a company it may be used freely.
Whoever gives it to others, or lets others use it over a network, owes them the complete source. Ultralytics holds that this
extends to models trained with it, and sells another licence."""


@dataclass(frozen=True)
class Measured:
    """What was measured of a version. `on_test`: at its operating point; None without one. `speed`: None where not timed."""

    metrics: Metrics
    operating: OperatingPoint | None
    on_test: OperatingFigures | None
    speed: Speed | None


def model_card(record: BundleRecord, measured: Measured, verdict: Verdict, limits: EvaluateParams) -> str:
    """The card as Markdown."""
    metrics, operating = measured.metrics, measured.operating
    sections = [
        f"# {record.detector}, night {record.night_id}",
        f"Detects {', '.join(record.classes)} on images brought to {record.image_size} x {record.image_size} pixels. "
        "How to run it: `python run_model.py IMAGE...` in this folder, or `from run_model import Detector`; docs/deploy.md of "
        "nightowl says more.",
        f"## Formats\n\n{_formats(record)}",
        f"## Data\n\n{_data(record)}",
        f"## Metrics\n\n{_measured(metrics)}",
        f"## At its operating point\n\n{_on_test(measured.on_test)}",
        f"## Speed\n\n{_speed(measured.speed)}",
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


def _on_test(figures: OperatingFigures | None) -> str:
    """From which confidence each class counts, and what that gives on test; rates with their bounds."""
    if figures is None:
        return "It has none: from which confidence a detection counts is up to whoever uses it, and no rate was measured."
    rows = [
        "| class | counts from | missed objects | false positives an image | escapes | overkill |",
        "|---|---|---|---|---|---|",
    ]
    rows += [_rates(each) for each in (figures.overall, *figures.classes)]
    said = (
        f"On {figures.num_images} images of {figures.split}, at IoU 0.5, bounds at {figures.confidence:.0%}. "
        "Escape: an image with an object on which nothing is detected. Overkill: one without on which something is."
    )
    return f"{said}\n\n" + "\n".join(rows)


def _rates(each: Figures) -> str:
    rates = (each.miss, each.false_positives, each.escape, each.overkill)
    cells = ("all" if each.name is None else _escaped(each.name), _figure(each.confidence), *map(_rate, rates))
    return f"| {' | '.join(cells)} |"


def _rate(rate: Rate) -> str:
    bounds = f" ({rate.interval.low:.3g} to {rate.interval.high:.3g})" if rate.interval else ""
    return f"{_figure(rate.value)}{bounds}"


def _speed(speed: Speed | None) -> str:
    """Of the network alone, as the machine of the night had it."""
    if speed is None:
        return "Not measured."
    rows = ["| artefact | batch | p50, ms | p99, ms | images a second |", "|---|---|---|---|---|"]
    rows += [
        f"| {_escaped(artefact.name)} | {at.batch} | {1000 * at.p50_seconds:.3g} | {1000 * at.p99_seconds:.3g} | "
        f"{at.images_per_second:.3g} |"
        for artefact in speed.artefacts
        for at in artefact.timings
    ]
    return f"The network alone, on {_escaped(speed.cpu)}, {speed.threads} thread(s); yours is another.\n\n" + "\n".join(rows)


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
        own = [f"{_escaped(each.name)} from {each.confidence:.3f}" for each in operating.classes if each.confidence is not None]
        apart = f"; {', '.join(own)}" if own else ""
        lines.append(f"A detection counts from {operating.overall:.3f} (chosen on {operating.split}){apart}.")
    return "\n".join(f"- {line}" for line in lines)


def _figure(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.4g}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
