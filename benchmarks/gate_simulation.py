"""How often the gate's rules err, tried on models whose truth is known: `python -m benchmarks.gate_simulation`.

False promotions of equal models, the power to see a true gain of two points, and a hundred nights on one reused test set.
Prints a table and saves it in benchmarks/gate_simulation.md.
"""

import datetime
import time
from collections.abc import Callable, Iterator
from itertools import accumulate, repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulated_models import CLASSES, World, a_model, a_world, skill_of
from nightowl.evaluation.bootstrap import Paired, Weights, draw_weights, weighted_average_precision
from nightowl.evaluation.budget import Spent, alpha_tonight, may_replace
from nightowl.evaluation.intervals import holm, non_inferior, p_value, superior
from nightowl.evaluation.matches import Matches

RESAMPLES, CONFIDENCE, MARGIN = 300, 0.95, 0.02
PAIRS, BCCD_IMAGES = 400, 72
POWER_TRIALS = {72: 100, 150: 60, 300: 40, 600: 30, 1200: 20}  # images to trials
NIGHTS, HISTORIES = 100, 6
DRIFT_IMAGES, DRIFT_MARGIN, LOSS_A_NIGHT = 150, 0.03, 0.4  # the last in points

Row = tuple[str, str, str]


class Tried(NamedTuple):
    """A model under all resamples: AP (R, T, C), and AP (T, C) on the images themselves."""

    resampled: NDArray[np.float64]
    plain: NDArray[np.float64]


class Bench:
    """One test set with its resamples; every model is tried on the same."""

    def __init__(self, seed: tuple[int, ...], num_images: int) -> None:
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
    for num_images, trials in POWER_TRIALS.items():
        gain, equal = [], []
        for seed in range(trials):
            bench = Bench((2, num_images, seed), num_images)
            champion = bench.model(0)
            gain.append(superior(difference(bench.model(better), champion), num_images, CONFIDENCE) == "yes")
            equal.append(non_inferior(difference(bench.model(0), champion), num_images, MARGIN, CONFIDENCE) == "yes")
        yield f"a true gain of 2 points shown, {num_images} images ({trials} trials)", rate(gain), "grows"
        yield f"an equal model shown to be within 2 points, {num_images} images ({trials} trials)", rate(equal), "grows"


def budget() -> Iterator[Row]:
    """A hundred nights of equal models, superiority, one test set: with a budget, and at 5 % every night."""
    promotions = {
        "5 % every night": [nights_of_equal_models(seed, repeat(0.05)) for seed in range(HISTORIES)],
        "budget of 1": [nights_of_equal_models(seed, spending()) for seed in range(HISTORIES)],
    }
    for rule, counts in promotions.items():
        limit = "at most 1 on average" if rule.startswith("budget") else "for comparison"
        told = f"{np.mean(counts):.1f} ({', '.join(map(str, counts))})"
        yield f"false promotions in {NIGHTS} nights of equal models, {rule} ({HISTORIES} test sets)", told, limit
    spent = list(accumulate(alpha for alpha, _ in zip(spending(), range(NIGHTS), strict=False)))
    yield f"budget spent after {NIGHTS} nights", f"{spent[-1]:.3f}", "below 1"


def nights_of_equal_models(seed: int, alphas: Iterator[float]) -> int:
    bench = Bench((3, seed), BCCD_IMAGES)
    champion, promoted = bench.model(0), 0
    for _ in range(NIGHTS):
        candidate = bench.model(0)
        if superior(difference(candidate, champion), BCCD_IMAGES, 1 - next(alphas)) == "yes":
            champion, promoted = candidate, promoted + 1
    return promoted


def spending() -> Iterator[float]:
    history: list[Spent] = []
    while True:
        alpha = alpha_tonight(history, "test-1", 1 - CONFIDENCE)
        history.append(Spent(night=str(len(history)), test_version="test-1", alpha=alpha))
        yield alpha


def drift(skill_at: Callable[[float], float]) -> Iterator[Row]:
    """Each night's candidate is truly a little worse than the champion: how far does the champion sink?"""
    rules: dict[str, tuple[bool, Iterator[float], str]] = {
        "non-inferiority to the champion alone": (False, repeat(0.05), "for comparison"),
        "and to a pinned reference": (True, repeat(0.05), f"at most {DRIFT_MARGIN * 100:.0f} points"),
        "and under the budget": (True, spending(), f"at most {DRIFT_MARGIN * 100:.0f} points"),
    }
    setting = f"{LOSS_A_NIGHT} points lost a night, margin {DRIFT_MARGIN * 100:.0f}, {DRIFT_IMAGES} images"
    for rule, (with_reference, alphas, limit) in rules.items():
        lost, promoted = nights_of_decline(skill_at, with_reference, alphas)
        told = f"{lost:.1f} points in {promoted} promotions"
        yield f"quality lost in {NIGHTS} nights, {rule} ({setting})", told, limit


def nights_of_decline(skill_at: Callable[[float], float], with_reference: bool, alphas: Iterator[float]) -> tuple[float, int]:
    """Points that the champion lost in truth, and promotions."""
    bench = Bench((4, 0), DRIFT_IMAGES)
    reference = champion = bench.model(0)
    lost, promoted = 0.0, 0
    for _ in range(NIGHTS):
        candidate = bench.model(skill_at(-lost - LOSS_A_NIGHT))
        to_champion = difference(candidate, champion)
        to_reference = difference(candidate, reference) if with_reference else to_champion
        if may_replace(to_champion, to_reference, DRIFT_IMAGES, DRIFT_MARGIN, 1 - next(alphas)) == "yes":
            champion, lost, promoted = candidate, lost + LOSS_A_NIGHT, promoted + 1
    return lost, promoted


def rate(happened: list[bool]) -> str:
    return f"{np.mean(happened):.1%}"


def main() -> None:
    start = time.process_time()
    worse, better = skill_of(-2), skill_of(2)
    lines = ["| what | measured | allowed |", "|---|---|---|"]
    trials = (
        false_decisions(worse),
        power(better),
        budget(),
        drift(lambda points: points * -worse / 2),  # nearly a line over the few points that matter
    )
    for rows in trials:
        for row in rows:
            lines.append(f"| {' | '.join(row)} |")
            print(lines[-1], flush=True)
    seconds = time.process_time() - start
    head = (
        "# The gate's rules on simulated models\n\n"
        f"`python -m benchmarks.gate_simulation`, {datetime.date.today()}: {seconds:.0f} s of one core, {RESAMPLES} resamples\n"
        "a pair. Blood-cell-like data: three classes, about thirteen objects an image. mAP50-95 is what is compared.\n\n"
    )
    Path(__file__).with_suffix(".md").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    print(f"{seconds:.0f} s of one core")


if __name__ == "__main__":
    main()
