"""Questions to kept detections are answered as if only those images had been evaluated."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nightowl.cli import app
from nightowl.errors import DataError, UserError
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.detections import write_detections
from nightowl.evaluation.evaluate import evaluate
from nightowl.evaluation.question import answer, narrow, read_kept
from nightowl.evaluation.slices import Slice, Slices
from nightowl.evaluation.truth import FALSE_ALARM, match, truth_of
from nightowl.evaluation.truth_table import write_truth
from nightowl.files import write_record
from nightowl.params import OperatingParams
from tests.evaluation.scenes import CLASSES, a_scene
from tests.evaluation.test_evaluate import SUBJECT

IMAGES, DETECTIONS = a_scene(4, num_images=30)
TRUTH = truth_of(CLASSES, IMAGES)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a bundle holds of an evaluation."""
    write_detections(tmp_path / "detections.parquet", DETECTIONS)
    write_truth(tmp_path / "truth.parquet", TRUTH)
    write_record(tmp_path / "slices.json", Slices(slices=(Slice(name="lot=1", images=TRUTH.images[5:20]),)))
    write_record(tmp_path / "operating.json", choose_operating_point(TRUTH, DETECTIONS, "1" * 64, OperatingParams()))
    return tmp_path


def test_a_slice_is_measured_as_if_only_its_images_had_been(folder: Path) -> None:
    kept = narrow(read_kept(folder), "lot=1")
    found = answer(kept, None, 300).measured.metrics
    inside = np.isin(DETECTIONS.image_index, np.arange(5, 20))
    alone = DETECTIONS.select(inside)
    alone = replace(alone, images=TRUTH.images[5:20], image_index=alone.image_index - 5)
    expected = evaluate(truth_of(CLASSES, IMAGES[5:20]), alone, SUBJECT, max_detections=300, confusion_confidence=0.5).metrics
    assert (found.num_images, found.num_truth) == (15, expected.num_truth)
    assert (found.map50, found.map50_95, found.sizes) == (expected.map50, expected.map50_95, expected.sizes)


def test_a_pattern_and_a_slice_narrow_together(folder: Path) -> None:
    kept = narrow(read_kept(folder), "lot=1", "^01")
    assert kept.truth.images == TRUTH.images[10:20] == kept.detections.images


def test_another_confidence_gives_other_rates(folder: Path) -> None:
    kept = read_kept(folder)
    rates = answer(kept, 0.4, 300).rates
    matched = match(TRUTH, DETECTIONS.from_confidence(0.4))
    assert rates is not None and rates.overall.false_positives.events == (matched == FALSE_ALARM).sum()
    own = answer(kept, None, 300).rates
    assert own is not None and own.overall.confidence != 0.4


@pytest.mark.parametrize(
    ("slice_name", "pattern", "message"),
    [
        ("lot=2", None, "no such slice; there are lot=1"),
        (None, "x", "no image is left of 30"),
        ("lot=1", "^02", "no image is left"),
    ],
)
def test_what_leaves_nothing_to_measure_is_said(
    folder: Path, slice_name: str | None, pattern: str | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        narrow(read_kept(folder), slice_name, pattern)


def test_a_folder_without_detections_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"expected detections\.parquet or candidate\.parquet"):
        read_kept(tmp_path)
    write_detections(tmp_path / "candidate.parquet", DETECTIONS)
    with pytest.raises(DataError, match=r"truth\.parquet: expected a table of labels"):
        read_kept(tmp_path)


def test_the_command_prints_every_class_and_every_rate(folder: Path) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(folder), "--slice", "lot=1", "--confidence", "0.4"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("15 images, ")
    assert [line.split()[0] for line in lines[3:7]] == list(CLASSES)
    assert lines[6].split()[1:] == ["0", "-", "-", "-", "-"]  # a class that never occurs has no figure, and no zero
    assert "never from 0.400: missed unknown (none to count), false positives an image" in done.output


def test_a_pattern_that_is_none_is_refused(folder: Path) -> None:
    done = CliRunner().invoke(app, ["evaluate", str(folder), "--pattern", "("])
    assert isinstance(done.exception, UserError) and "not a regular expression" in str(done.exception)
