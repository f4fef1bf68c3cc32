"""The champion against itself, when what measures has changed."""

from dataclasses import replace

import numpy as np
import pytest

from nightowl.data.manifest import Image, Manifest
from nightowl.evaluation.canary import Canary, canary_check, sing
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.evaluate import Subject, evaluate
from nightowl.evaluation.gate import judge
from nightowl.evaluation.instrument import Instrument, this_instrument
from nightowl.evaluation.truth import truth_of
from nightowl.files import sha256_bytes
from nightowl.params import EvaluateParams, GateParams
from tests.evaluation.scenes import a_scene
from tests.evaluation.test_drops import varying
from tests.evaluation.test_gate import measured, pinned

HERE = Instrument(libraries={"torch": "2.15.0"}, code_sha256="c" * 64, params={"nms_iou": "0.7"})
BEFORE = HERE.model_copy(update={"libraries": {"torch": "2.14.1"}})


def a_night(seed: int = 1, num_images: int = 30) -> tuple[Detections, Manifest]:
    """A champion's detections and the dataset that they were made on; every image has a digest of its own."""
    images, detections = a_scene(seed, num_images)
    named = tuple(replace(image, sha256=sha256_bytes(image.path.encode())) for image in images)
    return detections, Manifest(detections.classes, named, "by hand")


def shaken(detections: Detections, pixels: float) -> Detections:
    noise = np.random.default_rng(0).normal(0, pixels, detections.boxes_xyxy.shape).astype(np.float32)
    corners = np.sort((detections.boxes_xyxy + noise).reshape(-1, 2, 2), axis=1)
    return replace(detections, boxes_xyxy=corners.reshape(-1, 4))


def test_the_figures_are_the_evaluators_own() -> None:
    detections, dataset = a_night()
    other = shaken(detections, 3)
    canary = sing("3", (other, dataset, BEFORE), (detections, dataset, HERE), 300)
    for found, figure in ((other, canary.before), (detections, canary.tonight)):
        truth = truth_of(dataset.classes, dataset.of("test"))
        metrics = evaluate(
            truth, found, Subject("m", "w", "d", "test", 0.1), max_detections=300, confusion_confidence=0.3
        ).metrics
        assert figure == pytest.approx(metrics.map50_95, abs=1e-6)
    assert canary.changed == ("torch 2.14.1 -> 2.15.0",)


def test_only_images_of_both_count_whatever_they_are_called_and_however_they_are_ordered() -> None:
    detections, dataset = a_night()
    whole = sing("3", (detections, dataset, HERE), (detections, dataset, HERE), 300)
    assert (whole.before, whole.num_images) == (whole.tonight, 30)
    renamed = replace(dataset, images=tuple(replace(i, path=f"moved/{i.path}") for i in dataset.images))
    moved = replace(detections, images=tuple(f"moved/{path}" for path in detections.images))
    assert sing("3", (detections, dataset, HERE), (moved, renamed, HERE), 300) == whole
    fewer = replace(dataset, images=dataset.images[::-1][:12])
    place = {image.path: index for index, image in enumerate(fewer.images)}
    index = np.array([place.get(detections.images[i], -1) for i in detections.image_index], np.int32)
    chosen = detections.select(index >= 0)
    few = replace(chosen, images=tuple(place), image_index=index[index >= 0])
    canary = sing("3", (detections, dataset, HERE), (few, fewer, HERE), 300)
    assert (canary.num_images, canary.before) == (12, canary.tonight)


def test_an_image_whose_content_changed_is_not_the_same() -> None:
    detections, dataset = a_night(num_images=10)
    edited = replace(dataset, images=tuple(replace(i, sha256=i.sha256[::-1]) for i in dataset.images))
    canary = sing("3", (detections, dataset, HERE), (detections, edited, HERE), 300)
    assert (canary.num_images, canary.before, canary.tonight) == (0, None, None)
    check = canary_check(GateParams(), canary)
    assert check.passed and check.figure is None
    assert "could not be compared with itself" in check.detail


def test_of_copies_of_an_image_one_counts() -> None:
    detections, dataset = a_night(num_images=10)
    copied = replace(
        dataset, images=tuple(replace(i, sha256=dataset.images[n // 2].sha256) for n, i in enumerate(dataset.images))
    )
    canary = sing("3", (detections, copied, HERE), (detections, copied, HERE), 300)
    assert (canary.num_images, canary.before) == (5, canary.tonight)


def test_only_the_classes_in_common_tonight_count() -> None:
    detections, dataset = a_night()
    common = detections.with_classes(("b",))
    canary = sing("3", (detections, dataset, HERE), (common, dataset, HERE), 300)
    assert canary.before == canary.tonight is not None


def canary(tonight: float, changed: tuple[str, ...] = ("torch 2.14.1 -> 2.15.0",), on_purpose: bool = False) -> Canary:
    return Canary("3", 70, 0.640, tonight, changed, on_purpose)


@pytest.mark.parametrize(
    ("made", "blocks", "passed", "words", "reason"),
    [
        (canary(0.641), True, True, "has mAP50-95 0.641 tonight, 0.640 when it was made", "within the limit"),
        (canary(0.612), True, False, "an effect of what measures, not of a model (torch 2.14.1 -> 2.15.0)", "an upgrade"),
        (canary(0.660), True, False, "an effect of what measures", "better figures are no better: the model is the same"),
        (canary(0.612), False, True, "an effect of what measures", "said, and does not block where params say so"),
        (canary(0.612, on_purpose=True), True, True, "params of evaluate were changed", "somebody meant it"),
        (canary(0.612, ()), True, False, "nothing that is known has changed; perhaps another machine", "an unknown cause"),
    ],
)
def test_a_gap_is_said_and_blocks(made: Canary, blocks: bool, passed: bool, words: str, reason: str) -> None:
    check = canary_check(GateParams(canary_blocks=blocks), made)
    assert (check.passed, check.undecided) == (passed, not passed), reason
    assert words in check.detail, reason


def test_a_night_whose_instrument_is_in_doubt_is_undecided_and_a_floor_still_refuses() -> None:
    ours, theirs = {"open": 0.7}, {"open": 0.6}
    judged = (measured(ours), measured(theirs, "champion"), pinned(("open",)), varying(ours, theirs, 0.01))
    verdict = judge(GateParams(), *judged, canary=canary(0.612))
    assert verdict.outcome == "undecided"
    assert verdict.sentence.startswith("Undecided: version 3 has mAP50-95 0.612 tonight and had 0.640")
    assert judge(GateParams(), *judged, canary=canary(0.641)).outcome == "promote"
    nothing = Canary("3", 0, None, None, (), on_purpose=False)
    assert judge(GateParams(), *judged, canary=nothing).outcome == "promote", "a new test set has nothing to compare"
    assert judge(GateParams(min_map50=0.9), *judged, canary=canary(0.612)).outcome == "refuse"


def test_the_instrument_knows_its_libraries_its_code_and_its_params() -> None:
    here = this_instrument(EvaluateParams())
    assert {"numpy", "onnxruntime", "torch"} <= set(here.libraries)
    assert here == this_instrument(EvaluateParams())
    other = this_instrument(EvaluateParams(nms_iou=0.6)).model_copy(update={"code_sha256": "0" * 64})
    assert here.differs_from(other) == ("evaluate.nms_iou 0.6 -> 0.7", "the evaluation's code")
    assert here.differs_from(here) == ()


def test_an_image_is_of_the_test_split_only() -> None:
    detections, dataset = a_night(num_images=10)
    extra = Image("t.png", "0" * 64, 1, 8, 8, "train", ())
    grown = replace(dataset, images=(*dataset.images, extra))
    assert sing("3", (detections, dataset, HERE), (detections, grown, HERE), 300).num_images == 10
