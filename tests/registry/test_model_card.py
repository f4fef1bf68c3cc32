"""MODEL_CARD.md: figures with their bounds, limits, licence; nothing that was not measured is shown as a number."""

from pathlib import Path

from nightowl.evaluation.intervals import Interval
from nightowl.evaluation.operating import ClassThreshold, OperatingPoint
from nightowl.evaluation.operating_figures import Figures, OperatingFigures
from nightowl.evaluation.rates import Rate
from nightowl.evaluation.timings import ArtefactSpeed, Speed, Timing
from nightowl.evaluation.verdict import Check, Verdict
from nightowl.params import EvaluateParams
from nightowl.registry.model_card import Measured, model_card
from tests.bundles import Made, bundle, metrics

DROP = Check(
    rule="mAP50-95 drop",
    passed=True,
    figure=-0.012,
    limit=0.02,
    detail="",
    interval=Interval(low=-0.03, high=0.01, confidence=0.95),
)


def test_a_card_has_data_metrics_with_bounds_limits_and_licence(tmp_path: Path) -> None:
    _, record = bundle(tmp_path, Made())
    verdict = Verdict(
        outcome="promote",
        basis="against_champion",
        sentence="Promoted: better.",
        checks=(DROP,),
        candidate_sha256="0",
        champion_version="3",
        not_judged=("spur",),
    )
    point = OperatingPoint(
        split="val",
        dataset_version="1",
        overall=0.31,
        classes=(ClassThreshold(name="open", confidence=None), ClassThreshold(name="spur", confidence=0.2)),
    )
    rate = Rate(events=1, trials=8, value=0.125, interval=Interval(low=0.01, high=0.5, confidence=0.95))
    none = Rate(events=0, trials=0, value=None, interval=None)
    overall, spur = (
        Figures(name=name, confidence=least, miss=rate, false_positives=rate, escape=rate, overkill=none)
        for name, least in ((None, 0.31), ("spur", 0.2))
    )
    on_test = OperatingFigures(
        split="test", num_images=30, num_independent=30, confidence=0.95, overall=overall, classes=(spur,)
    )
    timing = Timing(batch=1, num_calls=100, p50_seconds=0.005, p95_seconds=0.006, p99_seconds=0.007, images_per_second=200)
    speed = Speed(cpu="a processor", threads=1, artefacts=(ArtefactSpeed(name="onnx", timings=(timing,)),))
    card = model_card(record, Measured(metrics("0", 0.8), point, on_test, speed), verdict, EvaluateParams())
    for said in (
        "| all | 9 | 0.8 | 0.8 |",
        "| mAP50-95 drop | -0.012 | -0.03 to 0.01, each at 95% | 0.02 | yes |",
        "30 images with 9 objects",
        f"`{record.dataset_version}`",
        "Not judged, as they do not occur in the test split: spur",
        "A detection counts from 0.310 (chosen on val); spur from 0.200.",
        "| all | 0.31 | 0.125 (0.01 to 0.5) | 0.125 (0.01 to 0.5) | 0.125 (0.01 to 0.5) | not measured |",
        "| spur | 0.2 |",
        "| onnx | 1 | 5 | 7 | 200 |",
        "GNU AGPL version 3",
        "Promoted: better.",
    ):
        assert said in card


def test_what_was_not_measured_is_no_number(tmp_path: Path) -> None:
    folder, _ = bundle(tmp_path, Made(map50=None))
    card = (folder / "MODEL_CARD.md").read_text()
    assert "| all | 9 | not measured | not measured |" in card
    assert "It has no operating point" in card and "no rate was measured" in card
    assert "## Speed\n\nNot measured." in card
    assert (folder / "run_model.py").read_text().startswith('"""Runs a nightowl model anywhere')
