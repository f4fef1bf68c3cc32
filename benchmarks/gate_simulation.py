"""How often the gate's rules err, tried on models whose truth is known: `python -m benchmarks.gate_simulation`.

False promotions of equal models, the power to see a true gain of two points, and a hundred nights on one reused test set.
The nights are the gate's own: `judge` gives the verdict, `spending_tonight` the error that is left, and the verdict says
whether the reference moves. Prints a table (`decisions`, `power`, `superiority`, `non_inferiority`, `drift` print a part of it)
and draws the power in gate_power.svg; what was measured is in gate_simulation.md.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated_models import CLASSES, World, a_model, a_world, skill_of
from nightowl.evaluation.bootstrap import Paired, Weights, draw_weights, weighted_average_precision
from nightowl.evaluation.budget import Question, Spending, Spent, spending_tonight
from nightowl.evaluation.champion import ChampionRecord
from nightowl.evaluation.comparison import Comparison
from nightowl.evaluation.gate import judge
from nightowl.evaluation.holdout import Holdout
from nightowl.evaluation.intervals import holm, non_inferior, p_value, superior
from nightowl.evaluation.matches import Matches
from nightowl.evaluation.metrics import ClassMetrics, Metrics
from nightowl.evaluation.reference import Reference
from nightowl.evaluation.verdict import Verdict
from nightowl.params import GateParams
from nightowl.report.chart import line_chart
from nightowl.report.content import Series

RESAMPLES, CONFIDENCE, MARGIN = 300, 0.95, 0.02
PAIRS, BCCD_IMAGES = 400, 72
POWER_TRIALS = {72: 100, 150: 60, 300: 40, 600: 30, 1200: 20}  # images to trials
NIGHTS, HISTORIES = 100, 6
DRIFT_IMAGES, DRIFT_SETS, DRIFT_MARGIN, LOSS_A_NIGHT = 150, 3, 0.03, 0.4  # the last in points

Row = tuple[str, str, str]


class Tried(NamedTuple):
    """A model under all resamples: AP (R, T, C), and AP (T, C) on the images themselves."""

    resampled: NDArray[np.float64]
    plain: NDArray[np.float64]


class Bench:
    """One test set with its resamples; every model is tried on the same."""

    def __init__(self, seed: tuple[int, ...], num_images: int) -> None:
        self.num_images = num_images
        self.random = np.random.default_rng(seed)
        self.world: World = a_world(self.random, num_images)
        self.weights: Weights = draw_weights(np.arange(num_images), RESAMPLES, seed[-1])

    def model(self, skill: float) -> Tried:
        matches: Matches = a_model(self.random, self.world, skill)
        once = np.ones((1, self.weights.shape[1]), np.int32)
        return Tried(weighted_average_precision(matches, self.weights), weighted_average_precision(matches, once)[0])


def paired(candidate: Tried, champion: Tried) -> Paired:
    return Paired(CLASSES, candidate.plain, champion.plain, candidate.resampled - champion.resampled)


def difference(candidate: Tried, champion: Tried) -> NDArray[np.float64]:
    return paired(candidate, champion).of_mean()


def a_class_dropped(pair: Paired, limit: float) -> bool:
    p_values = [p_value(pair.of_class_at_50(index), BCCD_IMAGES, -limit) for index in range(len(CLASSES))]
    return any(holm(p_values, 1 - CONFIDENCE))


def false_decisions(worse: float) -> Iterator[Row]:
    """Equal models, and candidates that truly lie at the margin, on 72 images."""
    superior_, not_inferior, dropped, dropped_much = [], [], [], []
    for seed in range(PAIRS):
        bench = Bench((1, seed), BCCD_IMAGES)
        champion, equal, at_margin = bench.model(0), bench.model(0), bench.model(worse)
        superior_.append(superior(difference(equal, champion), BCCD_IMAGES, CONFIDENCE) == "yes")
        not_inferior.append(non_inferior(difference(at_margin, champion), BCCD_IMAGES, MARGIN, CONFIDENCE) == "yes")
        dropped.append(a_class_dropped(paired(equal, champion), 0.0))
        dropped_much.append(a_class_dropped(paired(equal, champion), 0.1))
    on = f"{PAIRS} pairs, {BCCD_IMAGES} images"
    yield f"equal models promoted under superiority at 95 % ({on})", rate(superior_), "at most 7 %"
    yield f"models 2 points worse let through at a margin of 2 points ({on})", rate(not_inferior), "at most 7 %"
    yield f"equal models refused for any drop of a class, Holm at 95 % ({on})", rate(dropped), "at most 7 %"
    yield f"equal models refused for a class's drop beyond 10 points ({on})", rate(dropped_much), "at most 7 %"


def power(better: float) -> Iterator[Row]:
    """How often a true gain of 2 points is seen, and an equal model shown to be no worse than 2 points."""
    curve: dict[str, list[tuple[float, float | None]]] = {"a gain of 2 points shown": [], "equal, shown within 2 points": []}
    for num_images, trials in POWER_TRIALS.items():
        gain, equal = list[bool](), list[bool]()
        for seed in range(trials):
            bench = Bench((2, num_images, seed), num_images)
            champion = bench.model(0)
            gain.append(superior(difference(bench.model(better), champion), num_images, CONFIDENCE) == "yes")
            equal.append(non_inferior(difference(bench.model(0), champion), num_images, MARGIN, CONFIDENCE) == "yes")
        yield f"a true gain of 2 points shown, {num_images} images ({trials} trials)", rate(gain), "grows"
        yield f"an equal model shown to be within 2 points, {num_images} images ({trials} trials)", rate(equal), "grows"
        for points, happened in zip(curve.values(), (gain, equal), strict=True):
            points.append((math.log2(num_images / 72), float(np.mean(happened))))
    Path(__file__).with_name("gate_power.svg").write_text(power_svg(curve), encoding="utf-8")


def power_svg(curve: dict[str, list[tuple[float, float | None]]]) -> str:
    """The power over the number of images, on a logarithmic axis."""
    series = [Series(name=name, points=tuple(points)) for name, points in curve.items()]
    chart = line_chart(
        "power", series, x_label="test images", x_range=(0.0, math.log2(1200 / 72)), y_range=(0.0, 1.0), size=(560, 300)
    )
    low, ends = chart.height - chart.bottom, ("#0064b0", "#c8511b")
    at = [
        chart.left + math.log2(n / 72) / math.log2(1200 / 72) * (chart.width - chart.left - chart.right) for n in POWER_TRIALS
    ]
    parts = [
        f'<text x="{x:.0f}" y="{low + 15:.0f}" text-anchor="middle">{n}</text>' for x, n in zip(at, POWER_TRIALS, strict=True)
    ]
    for tick in chart.y_ticks:
        parts.append(f'<path d="M{chart.left},{tick.at:.1f}H{chart.width - chart.right}" stroke="#ddd"/>')
        parts.append(f'<text x="{chart.left - 6}" y="{tick.at + 3:.1f}" text-anchor="end">{tick.text}</text>')
    for index, (line, colour) in enumerate(zip(chart.lines, ends, strict=True)):
        parts.append(f'<path d="{line.path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        where = f'x="{chart.width - 14:.0f}" y="{low - 30 + 15 * index:.0f}"'
        parts.append(f'<text {where} text-anchor="end" fill="{colour}">{line.name}</text>')
    parts.append(
        f'<text x="{chart.width / 2:.0f}" y="{chart.height - 4:.0f}" text-anchor="middle">{chart.x_label}, log scale</text>'
    )
    size = f'viewBox="0 0 {chart.width + 14:.0f} {chart.height:.0f}" width="{chart.width + 14:.0f}"'
    style = 'font-family="sans-serif" font-size="11" style="background:#fff"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{"".join(parts)}</svg>\n'


@dataclass
class Line:
    """A detector over many nights: who is champion and reference, what was spent, and how good the champion is in truth."""

    gate: GateParams
    bench: Bench
    with_budget: bool
    with_reference: bool
    champion: Tried = field(init=False)
    reference: Tried = field(init=False)
    spent: list[Spent] = field(default_factory=list)
    lost: float = 0.0
    lowest: float = 0.0
    promoted: int = 0

    def __post_init__(self) -> None:
        self.champion = self.reference = self.bench.model(0)

    def night(self, candidate: Tried, points: float) -> None:
        """Judge a candidate that in truth is `points` worse than the champion."""
        name = f"candidate-{len(self.spent)}"
        spending = self._spending(name)
        verdict = self._verdict(name, candidate, spending)
        self.spent.append(Spent(night=name, question=spending.question, alpha=spending.alpha))
        if not verdict.promote:
            return
        self.champion, self.lost, self.promoted = candidate, self.lost + points, self.promoted + 1
        self.lowest = max(self.lowest, self.lost)
        if verdict.renews_reference:
            self.reference = candidate

    def _spending(self, name: str) -> Spending:
        holdout = Holdout(version="test-1", num_images=self.bench.num_images, sketch=("image",))
        question = Question(candidate=name, champion=f"champion-{self.promoted}", reference=None, holdout=holdout)
        past = self.spent if self.with_budget else []
        return spending_tonight(past, question, 1 - self.gate.confidence, self.gate.error_budget)

    def _verdict(self, name: str, candidate: Tried, spending: Spending) -> Verdict:
        record, other = pinned(f"champion-{self.promoted}"), None
        if self.with_reference and self.reference is not self.champion:
            compared = comparison(candidate, self.reference, self.bench.num_images)
            other = Reference(pinned("reference"), metrics(self.reference, "reference", self.bench.num_images), compared)
        return judge(
            self.gate,
            metrics(candidate, name, self.bench.num_images),
            metrics(self.champion, record.weights_sha256, self.bench.num_images),
            record,
            comparison(candidate, self.champion, self.bench.num_images),
            spending,
            other,
        )


def comparison(candidate: Tried, other: Tried, num_images: int) -> Comparison:
    pair = paired(candidate, other)
    of_class = {name: pair.of_class_at_50(index) for index, name in enumerate(CLASSES)}
    return Comparison(pair.of_mean(), num_images, of_class, dict.fromkeys(CLASSES, num_images))


def metrics(tried: Tried, weights: str, num_images: int) -> Metrics:
    classes = tuple(
        ClassMetrics(
            name=name,
            num_truth=num_images,
            ap50=float(tried.plain[0, index]),
            ap50_95=float(tried.plain[:, index].mean()),
            precision=None,
            recall=None,
            best_f1_confidence=None,
        )
        for index, name in enumerate(CLASSES)
    )
    return Metrics(
        model=weights,
        weights_sha256=weights,
        dataset_version="simulated",
        split="test",
        num_images=num_images,
        num_truth=3 * num_images,
        map50=float(tried.plain[0].mean()),
        map75=None,
        map50_95=float(tried.plain.mean()),
        classes=classes,
        seconds_per_image=0.01,
    )


def pinned(weights: str) -> ChampionRecord:
    return ChampionRecord(
        detector="simulated",
        version=weights,
        night_key="",
        classes=CLASSES,
        image_size=640,
        weights_sha256=weights,
        onnx_sha256="",
        dataset_version="",
    )


def gate(**values: object) -> GateParams:
    """Only the mean is judged here, so that a line tells of the budget and the reference alone."""
    return GateParams.model_validate({"min_map50": 0.0, "max_drop_class_ap50": 1.0, "min_test_images": 1, **values})


def budget(rule: str) -> Iterator[Row]:
    """A hundred nights of equal models, one test set, by the whole gate: at 5 % every night, and with the budget."""
    what = "promotions" if rule == "non_inferiority" else "false promotions"
    for with_budget in (False, True):
        lines = [equal_nights(seed, gate(rule=rule), with_budget) for seed in range(HISTORIES)]
        name = f"{what} in {NIGHTS} nights of equal models, {rule}, {'budget of 1' if with_budget else '5 % every night'}"
        told = f"{np.mean([line.promoted for line in lines]):.1f} ({', '.join(str(line.promoted) for line in lines)})"
        limit = "at most 1 on average" if with_budget and rule == "superiority" else "for comparison"
        yield f"{name} ({HISTORIES} test sets)", told, limit
    spent = sum(each.alpha for each in lines[0].spent)
    yield f"budget spent after {NIGHTS} nights, {rule}", f"{spent:.3f}", "below 1"


def equal_nights(seed: int, params: GateParams, with_budget: bool) -> Line:
    line = Line(params, Bench((3, seed), BCCD_IMAGES), with_budget, with_reference=True)
    for _ in range(NIGHTS):
        line.night(line.bench.model(0), 0.0)
    return line


def drift(skill_at: Callable[[float], float]) -> Iterator[Row]:
    """Each night's candidate is in truth a little worse than the champion: how far does the champion sink?"""
    allowed = f"at most {DRIFT_MARGIN * 100:.0f} points"
    rules = {
        "non-inferiority to the champion alone": (False, False, "for comparison"),
        "and to a pinned reference": (False, True, allowed),
        "and under the budget": (True, True, allowed),
    }
    setting = (
        f"{LOSS_A_NIGHT} points lost a night, margin {DRIFT_MARGIN * 100:.0f}, {DRIFT_IMAGES} images, {DRIFT_SETS} test sets"
    )
    for rule, (with_budget, with_reference, limit) in rules.items():
        lines = [declining_nights(seed, skill_at, with_budget, with_reference) for seed in range(DRIFT_SETS)]
        lost = ", ".join(f"{line.lowest:.1f}" for line in lines)
        promoted = np.mean([line.promoted for line in lines])
        told = f"{np.mean([line.lowest for line in lines]):.1f} points ({lost}) in {promoted:.0f} promotions"
        yield f"quality lost in {NIGHTS} nights, {rule} ({setting})", told, limit


def declining_nights(seed: int, skill_at: Callable[[float], float], with_budget: bool, with_reference: bool) -> Line:
    line = Line(gate(margin=DRIFT_MARGIN), Bench((4, seed), DRIFT_IMAGES), with_budget, with_reference)
    for _ in range(NIGHTS):
        line.night(line.bench.model(skill_at(-line.lost - LOSS_A_NIGHT)), LOSS_A_NIGHT)
    return line


def rate(happened: list[bool]) -> str:
    return f"{np.mean(happened):.1%}"


def main() -> None:
    """Print the table of the parts that are named on the command line, or of all."""
    start = time.process_time()
    parts: dict[str, Callable[[], Iterator[Row]]] = {
        "decisions": lambda: false_decisions(skill_of(-2)),
        "power": lambda: power(skill_of(2)),
        "superiority": lambda: budget("superiority"),
        "non_inferiority": lambda: budget("non_inferiority"),
        "drift": lambda: drift(partial(_skill_of_points, skill_of(-2))),
    }
    print("| what | measured | allowed |\n|---|---|---|")
    for name in sys.argv[1:] or parts:
        for row in parts[name]():
            print(f"| {' | '.join(row)} |", flush=True)
    print(f"{time.process_time() - start:.0f} s of one core, {RESAMPLES} resamples a pair", file=sys.stderr)


def _skill_of_points(worse: float, points: float) -> float:
    """Nearly a line over the few points that matter; `worse` is the skill two points below."""
    return points * -worse / 2


if __name__ == "__main__":
    main()
