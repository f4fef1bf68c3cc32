"""The stage around the gate: what it reads, and what it publishes."""

from pathlib import Path

import numpy as np
import pytest

from nightowl.data.blobs import BlobStore
from nightowl.data.manifest import Box, Image, Manifest, write_manifest
from nightowl.errors import DataError, StageFailed
from nightowl.evaluation.budget import Question, Spent, write_history
from nightowl.evaluation.champion import write_champion
from nightowl.evaluation.choose_operating import choose_operating_point
from nightowl.evaluation.cost import ArtefactCost, Cost
from nightowl.evaluation.detections import Detections, read_detections, write_detections
from nightowl.evaluation.evaluate import Subject, evaluate
from nightowl.evaluation.holdout import holdout_of
from nightowl.evaluation.instrument import this_instrument
from nightowl.evaluation.operating_figures import OperatingFigures
from nightowl.evaluation.slices import SliceFacts, Slices, slices_of
from nightowl.evaluation.truth import truth_of
from nightowl.evaluation.truth_table import write_truth
from nightowl.evaluation.verdict import Verdict
from nightowl.files import write_atomic, write_record
from nightowl.params import EvaluateParams, GateParams, OperatingParams, Params, SliceRule
from nightowl.settings import Settings, home_of
from nightowl.stages.gate import run
from nightowl.stages.workspace import Workspace
from tests.evaluation.test_gate import pinned

LOTS = [SliceRule(name="lot", pattern="^([0-9])")]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A night without a champion, measured."""
    made = Workspace(tmp_path, "demo", Settings(home=tmp_path / "home"))
    keep_evaluation(made, a_dataset(), "candidate", 0.6)
    for path, content in ((made.champion, "null\n"), (made.reference, "null\n"), (made.decisions, "[]\n")):
        write_atomic(path, content)
    made.out("gate").mkdir(parents=True)
    return made


def test_the_verdict_is_published_and_said(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    run(Params(), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.promote and verdict.basis == "first_model"
    assert capsys.readouterr().out == f"verdict: {verdict.sentence}\n"


def test_a_refusal_is_a_result_and_not_a_failure(workspace: Workspace) -> None:
    run(Params(gate=GateParams(min_map50=0.9)), workspace, workspace.out("gate"))
    assert Verdict.model_validate_json(workspace.verdict.read_bytes()).outcome == "refuse"


@pytest.mark.parametrize(
    ("gate", "rule", "reason"),
    [
        (GateParams(max_p99_seconds_per_image=0.03), "seconds an image, p99", "its slowest calls are too slow"),
        (GateParams(max_model_bytes=5_000_000), "model size", "too large for where it goes"),
        (GateParams(max_p99_seconds_per_image=0.05, max_model_bytes=6_000_000), None, "within both"),
    ],
)
def test_a_budget_of_time_or_size_refuses_by_what_the_export_measured(
    gate: GateParams, rule: str | None, reason: str, workspace: Workspace
) -> None:
    onnx = ArtefactCost(name="onnx", required=True, seconds_per_image=0.01, p99_seconds_per_image=0.04, num_bytes=5_300_000)
    large = onnx.model_copy(update={"name": "openvino", "required": False, "num_bytes": 7_000_000})
    write_record(workspace.cost, Cost(artefacts=(onnx, large), champion_seconds_per_image=None))
    run(Params(gate=gate), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert list(verdict.left_out) == ["openvino"], "too slow or too large, and not required"
    assert verdict.promote is (rule is None), reason
    assert [check.rule for check in verdict.checks if not check.passed] == ([rule] if rule else [])


def test_a_champion_that_was_not_measured_tonight_stops_it(workspace: Workspace) -> None:
    write_record(workspace.champion, pinned(("open",)))
    with pytest.raises(StageFailed, match="not measured tonight"):
        run(Params(), workspace, workspace.out("gate"))


@pytest.mark.parametrize(
    ("champion", "candidate", "outcome", "reason"),
    [
        (0.9, 0.3, "refuse", "much is lost"),
        (0.3, 0.9, "promote", "much is gained"),
        (0.9, 0.9, "undecided", "about as much is found, on 40 images only"),
    ],
)
def test_a_night_is_judged_from_the_kept_detections(
    champion: float, candidate: float, outcome: str, reason: str, workspace: Workspace
) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, dataset)
    write_record(workspace.champion, pinned(("open", "gone")))
    for whose, share in (("candidate", candidate), ("champion", champion)):
        keep_evaluation(workspace, dataset, whose, share)
    run(Params(gate=GateParams(min_map50=0)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert (verdict.outcome, verdict.basis) == (outcome, "against_champion"), verdict.sentence
    check = next(check for check in verdict.checks if check.rule == "mAP50-95 drop")
    assert check.interval is not None and check.figure is not None
    assert check.interval.low <= check.figure <= check.interval.high


def test_a_decision_spends_of_what_the_pinned_past_has_left(workspace: Workspace) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, dataset)
    write_champion(workspace.champion, pinned(("open",)))
    for whose, share in (("candidate", 0.9), ("champion", 0.3)):
        keep_evaluation(workspace, dataset, whose, share)
    question = Question(candidate="another", champion="champion-weights", reference=None, holdout=holdout_of(dataset))
    write_history(workspace.decisions, [Spent(night="before", question=question, alpha=0.4)])
    run(Params(gate=GateParams(min_map50=0)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.spending is not None
    assert verdict.spending.alpha == pytest.approx(0.05 * 0.6)
    assert verdict.spending.question == question.model_copy(update={"candidate": "candidate-weights"})
    run(Params(gate=GateParams(min_map50=0, rule="point")), workspace, workspace.out("gate"))
    assert Verdict.model_validate_json(workspace.verdict.read_bytes()).spending is None, "figures alone show nothing"


@pytest.mark.parametrize(("share", "outcome"), [(0.9, "refuse"), (0.3, "promote")])
def test_a_candidate_better_than_the_champion_must_hold_against_the_reference(
    share: float, outcome: str, workspace: Workspace
) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, dataset)
    champion = pinned(("open",))
    write_champion(workspace.champion, champion)
    write_champion(workspace.reference, champion.model_copy(update={"version": "1", "weights_sha256": "reference-weights"}))
    for whose, found in (("candidate", 0.6), ("champion", 0.3), ("reference", share)):
        keep_evaluation(workspace, dataset, whose, found)
    run(Params(gate=GateParams(min_map50=0)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert (verdict.outcome, verdict.reference_version) == (outcome, "1"), verdict.sentence
    assert verdict.renews_reference == (outcome == "promote")
    assert ("version 1, the reference," in verdict.sentence) == (outcome == "refuse")


@pytest.mark.parametrize(
    ("then", "outcome", "reason"),
    [(0.3, "promote", "the champion measures as it did"), (0.6, "undecided", "it measured otherwise when it was made")],
)
def test_a_champion_that_measures_otherwise_than_when_it_was_made_leaves_it_undecided(
    then: float, outcome: str, reason: str, workspace: Workspace
) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, dataset)
    keep_evaluation(workspace, dataset, "champion", then)
    blobs = BlobStore(home_of(workspace.settings) / "blobs")
    kept, manifest = blobs.put(workspace.detections("champion")), blobs.put(workspace.dataset)
    here = this_instrument(EvaluateParams())
    before = here.model_copy(update={"libraries": {**here.libraries, "torch": "1.0"}})
    made = {"detections_sha256": kept, "dataset_version": manifest, "instrument": before}
    write_champion(workspace.champion, pinned(("open",)).model_copy(update=made))
    for whose, share in (("candidate", 0.9), ("champion", 0.3)):
        keep_evaluation(workspace, dataset, whose, share)
    write_record(workspace.instrument, here)
    run(Params(gate=GateParams(min_map50=0)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.outcome == outcome, reason
    (check,) = (check for check in verdict.checks if check.rule == "canary")
    assert check.passed == (outcome == "promote")
    assert ("(torch 1.0 -> " in check.detail) == (outcome == "undecided")


def test_detections_of_other_images_than_todays_are_refused(workspace: Workspace) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, a_dataset(39))
    write_record(workspace.champion, pinned(("open",)))
    for whose in ("candidate", "champion"):
        keep_evaluation(workspace, dataset, whose, 0.9)
    with pytest.raises(StageFailed, match="not measured on the test images of today"):
        run(Params(), workspace, workspace.out("gate"))


def a_dataset(num_images: int = 40) -> Manifest:
    """Three objects an image of the class `open`, and of `spur`, which the champion does not know."""
    boxes = tuple(Box(i % 2, 20.0 * i, 0.0, 20.0 * i + 15, 15.0) for i in range(6))
    images = tuple(Image(f"{i:02}.png", f"{i:064}", 1, 120, 120, "test", boxes) for i in range(num_images))
    return Manifest(("open", "spur"), images, "by hand")


def keep_evaluation(workspace: Workspace, dataset: Manifest, whose: str, share: float) -> None:
    """What the stage evaluate keeps of a model that finds this share of the objects, each of them whole."""
    classes = dataset.classes if whose == "candidate" else ("open",)
    truth = truth_of(dataset.classes, dataset.of("test"), classes)
    hits = np.random.default_rng(1).random(len(truth.class_id)) < share
    scores = np.full(hits.sum(), 0.9, np.float32)
    boxes = truth.boxes_xyxy[hits].astype(np.float32)
    found = Detections(classes, truth.images, truth.image_index[hits], truth.class_id[hits], scores, boxes)
    subject = Subject(whose, f"{whose}-weights", dataset.version(), "test", 0.01)
    made = evaluate(truth, found, subject, max_detections=300, confusion_confidence=0.25)
    write_record(workspace.metrics(whose), made.metrics)
    write_detections(workspace.detections(whose), found)
    if whose == "candidate":
        chosen = choose_operating_point(truth, found, dataset.version(), OperatingParams())
        write_record(workspace.operating, chosen)
        write_truth(workspace.truth, truth)
        write_record(workspace.slices, Slices(slices=slices_of(dataset.of("test"), LOTS, SliceFacts())))


def test_the_rates_at_the_operating_point_are_published_beside_the_verdict(workspace: Workspace) -> None:
    run(Params(), workspace, workspace.out("gate"))
    figures = OperatingFigures.model_validate_json(workspace.operating_test.read_bytes())
    assert (figures.num_images, [one.name for one in figures.classes]) == (40, ["open", "spur"])
    assert figures.overall.miss.value == pytest.approx(0.4, abs=0.1)
    assert figures.overall.overkill.value is None  # test holds no good image


def test_a_limit_that_the_images_show_to_be_broken_refuses(workspace: Workspace) -> None:
    run(Params(gate=GateParams(max_miss_rate=0.01)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.outcome == "refuse" and "miss rate is" in verdict.sentence


def test_a_limit_for_which_test_holds_no_images_leaves_it_undecided(workspace: Workspace) -> None:
    run(Params(gate=GateParams(max_overkill_rate=0.5)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.sentence == "Undecided: overkill rate could not be measured: test holds no images without an object."


def test_a_lot_that_lost_what_is_not_allowed_refuses_though_the_whole_did_not(workspace: Workspace) -> None:
    dataset = a_dataset()
    write_manifest(workspace.dataset, dataset)
    write_record(workspace.champion, pinned(("open",)))
    keep_evaluation(workspace, dataset, "candidate", 0.95)
    keep_evaluation(workspace, dataset, "champion", 0.95)
    found = read_detections(workspace.detections("candidate"))
    lost = (found.image_index >= 30) & (np.arange(len(found)) % 3 > 0)
    write_detections(workspace.detections("candidate"), found.select(~lost))
    run(Params(gate=GateParams(margin=1.0, max_drop_class_ap50=1.0)), workspace, workspace.out("gate"))
    verdict = Verdict.model_validate_json(workspace.verdict.read_bytes())
    assert verdict.outcome == "refuse", verdict.sentence
    assert [check.rule for check in verdict.checks if not check.passed] == ["mAP50 drop: slice lot=3"]


@pytest.mark.parametrize(("content", "message"), [(None, "no pinned champion"), ("{}", "not the record of a champion")])
def test_inputs_that_are_not_pinned_are_said(content: str | None, message: str, workspace: Workspace) -> None:
    workspace.champion.unlink()
    if content is not None:
        write_atomic(workspace.champion, content)
    with pytest.raises(DataError, match=message):
        run(Params(), workspace, workspace.out("gate"))
