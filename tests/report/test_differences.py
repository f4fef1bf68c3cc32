"""What changed, and which labels are in doubt, from the files of a night."""

from pathlib import Path

import numpy as np
import pytest

from nightowl.data.manifest import read_manifest
from nightowl.evaluation.operating import OperatingPoint
from nightowl.files import write_record
from nightowl.report.content import ReportContent
from nightowl.report.differences import MAX_CHANGED, MAX_DOUBTED, differences, label_doubts
from nightowl.report.page import render
from nightowl.stages.workspace import Workspace


def grey(image: object) -> np.ndarray:
    return np.full((20, 20, 3), 128, np.uint8)


def test_the_worst_images_are_drawn_with_their_changes_alone(finished: Workspace) -> None:
    found = differences(finished, read_manifest(finished.dataset), grey)
    assert found is not None
    worse = {c.image for c in found.changes.changes if c.kind in ("new_miss", "new_false_alarm")}
    assert len(found.worst) == min(len(worse), MAX_CHANGED) > 0
    first = found.worst[0]
    assert len(first.boxes) == sum(change.image == first.path for change in found.changes.changes)
    errors = [thumb.num_missed + thumb.num_false for thumb in found.worst]
    assert errors == sorted(errors, reverse=True) and errors[-1] > 0


def test_each_model_counts_from_its_own_confidence(finished: Workspace, workspace: Workspace) -> None:
    dataset = read_manifest(workspace.dataset)
    point = OperatingPoint.model_validate_json(workspace.operating.read_bytes())
    before = differences(workspace, dataset, grey)
    deaf = tuple(each.model_copy(update={"confidence": 1.0}) for each in point.classes)
    write_record(workspace.operating, point.model_copy(update={"classes": deaf}))
    after = differences(workspace, dataset, grey)
    assert before is not None and after is not None
    assert after.changes.count("new_miss") > before.changes.count("new_miss")
    assert after.changes.count("new_false_alarm") == 0


@pytest.mark.parametrize("gone", ["detections", "champion_operating"])
def test_without_a_champion_there_is_nothing_to_differ_from(gone: str, workspace: Workspace) -> None:
    path: Path = workspace.detections("champion") if gone == "detections" else workspace.champion_operating
    path.unlink()
    assert differences(workspace, read_manifest(workspace.dataset), grey) is None


def test_doubted_labels_are_listed_whole_and_the_first_drawn(finished: Workspace) -> None:
    doubts = label_doubts(finished, read_manifest(finished.dataset), grey)
    assert doubts is not None and doubts.listed
    assert len(doubts.pictures) == min(len({each.image for each in doubts.listed}), MAX_DOUBTED)
    assert doubts.pictures[0].path == doubts.listed[0].image


def test_the_page_tells_them(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    assert content.differences and content.doubts and content.operating
    html = render(content)
    assert "newly missed" in html and "Labels worth a second look" in html and "At the operating point" in html
    alone = content.model_copy(update={"differences": None, "doubts": None, "operating": None})
    html = render(alone)
    assert "Not there: the champion was not measured" in html
    assert "the model has no operating point" in html and "would doubt every label" in html
