import pytest
from pydantic import ValidationError

from nightowl.data.manifest import Box, Image, Manifest
from nightowl.errors import StageFailed
from nightowl.report.collect import collect, summarise
from nightowl.report.content import ReportContent
from nightowl.stages.workspace import STAGES, Workspace
from tests.report.sample import CLASSES, facts

WHOLE = facts("promoted", sentence="promoted")


def test_a_whole_night_is_read_whole(contents: dict[str, ReportContent]) -> None:
    content = contents["promoted"]
    absent = [name for name in ReportContent.model_fields if getattr(content, name) is None]
    assert absent == []


OF_GATE = {"verdict", "operating"}
OF_EVALUATE = {"candidate", "champion", "curves", "champion_curves", "gallery", "differences", "doubts"}
OF_TRAIN = {"training", "hardware", "model", "history"}


@pytest.mark.parametrize(
    ("done", "absent"),
    [
        (0, OF_GATE | {"export"} | OF_EVALUATE | OF_TRAIN | {"audit"}),
        (1, OF_GATE | {"export"} | OF_EVALUATE | OF_TRAIN),
        (2, OF_GATE | {"export"} | OF_EVALUATE),
        (3, OF_GATE | {"export"}),
        (4, OF_GATE),
    ],
)
def test_what_an_earlier_night_left_behind_is_not_read(finished: Workspace, done: int, absent: set[str]) -> None:
    content = collect(finished, facts("failed", stages=STAGES[:done], sentence="failed"))
    assert {name for name in ReportContent.model_fields if getattr(content, name) is None} == absent


def test_before_anything_was_pinned_the_page_still_has_its_facts(workspace: Workspace) -> None:
    for path in sorted(workspace.inputs.rglob("*")):
        path.unlink()
    content = collect(workspace, facts("failed", stages=(), sentence="no such path"))
    assert (content.data, content.findings, content.lineage.base, content.lineage.champion) == (None, None, None, None)
    assert content.lineage.params_yaml is not None


def test_params_that_cannot_be_read_are_said_and_not_raised(workspace: Workspace) -> None:
    (workspace.root / "params.yaml").write_text("detectors: [demo]\ntrain: {epocs: 3}\n", encoding="utf-8")
    content = collect(workspace, facts("failed", stages=(), sentence="params"))
    assert content.lineage.params_sha256 is None
    assert "epocs" in (content.lineage.params_fault or "")


def test_a_night_without_a_champion_has_no_comparison(workspace: Workspace) -> None:
    workspace.champion.write_text("null\n", encoding="utf-8")
    for path in (workspace.metrics("champion"), workspace.curves("champion"), workspace.detections("champion")):
        path.unlink()
    content = collect(workspace, WHOLE)
    assert (content.champion, content.champion_curves, content.lineage.champion) == (None, None, None)
    assert content.candidate is not None


def test_a_broken_record_is_an_error_and_never_missing(workspace: Workspace) -> None:
    workspace.verdict.write_text("{}", encoding="utf-8")
    with pytest.raises(ValidationError):
        collect(workspace, WHOLE)


def test_a_broken_history_is_an_error(workspace: Workspace) -> None:
    workspace.history.write_text("", encoding="utf-8")
    with pytest.raises(StageFailed, match=r"results\.csv"):
        collect(workspace, WHOLE)


def test_an_image_that_changed_since_it_was_pinned_is_not_shown(workspace: Workspace) -> None:
    for path in (workspace.root / "source").rglob("*.png"):
        path.write_bytes(b"other")
    content = collect(workspace, WHOLE)
    assert content.gallery is not None
    shown = [*content.gallery.worst, *content.gallery.best]
    assert shown and all(thumb.jpeg is None and "changed since it was pinned" in (thumb.note or "") for thumb in shown)


def test_params_are_told_whole_in_their_order(contents: dict[str, ReportContent]) -> None:
    text = contents["promoted"].lineage.params_yaml or ""
    assert text.index("data:") < text.index("prepare:") < text.index("train:") < text.index("export:")
    assert "image_size: 256" in text and "global_batch: 16" in text


def test_a_dataset_in_figures_counts_crowds_apart() -> None:
    boxes = (Box(0, 0, 0, 5, 5), Box(1, 0, 0, 5, 5), Box(1, 0, 0, 9, 9, ignore=True))
    images = (Image("a", "", 1, 9, 9, "train", boxes), Image("b", "", 1, 9, 9, "test", ()))
    data = summarise(Manifest(CLASSES[:2], images, "by folder"), "version")
    assert [(s.split, s.num_images, s.num_empty_images, s.num_boxes) for s in data.splits] == [
        ("train", 1, 0, (1, 1)),
        ("val", 0, 0, (0, 0)),
        ("test", 1, 1, (0, 0)),
    ]
    assert data.num_crowds == 1
