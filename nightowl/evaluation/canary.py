"""The canary: the standing champion measured tonight against the same champion when it was made, on the images of both.

The model did not change, and neither did those images, so a difference of its figures is the effect of what measures: other
libraries, other code, another machine. Then a candidate's figures are not comparable with what people remember, and that is
said before anything is promoted. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nightowl.data.manifest import Image, Manifest
from nightowl.evaluation.bootstrap import weighted_average_precision
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.instrument import Instrument
from nightowl.evaluation.matches import precompute_matches
from nightowl.evaluation.truth import Truth, truth_of
from nightowl.evaluation.verdict import Check
from nightowl.params import GateParams

RULE = "canary"


@dataclass(frozen=True)
class Canary:
    """mAP50-95 of the champion `before` and `tonight`, on `num_images` images that both saw (None without any truth there);
    `changed` names what measures otherwise than it did, `on_purpose` that params of `evaluate` are among it."""

    version: str
    num_images: int
    before: float | None
    tonight: float | None
    changed: tuple[str, ...]
    on_purpose: bool


def sing(
    version: str,
    kept: tuple[Detections, Manifest, Instrument],
    tonight: tuple[Detections, Manifest, Instrument],
    max_detections: int,
) -> Canary:
    """The champion's kept detections and tonight's, each with the dataset they were made on and the instrument that made them.

    An image is the same where its digest is, whatever it is called; labels and classes are those of tonight.
    """
    (then, old_data, old), (now, data, new) = kept, tonight
    names = _same_images(then, old_data, now, data)
    images = [image for image in data.of("test") if image.path in names]
    truth = truth_of(data.classes, images, now.classes)
    past = _on(then.with_classes(now.classes), {names[image.path]: i for i, image in enumerate(images)}, truth)
    present = _on(now, {image.path: i for i, image in enumerate(images)}, truth)
    return Canary(
        version,
        len(images),
        _mean(truth, past, max_detections),
        _mean(truth, present, max_detections),
        new.differs_from(old),
        on_purpose=new.params != old.params,
    )


def canary_check(gate: GateParams, canary: Canary) -> Check:
    """The check of the verdict: undecided where the difference is beyond `gate.max_canary_gap` and nobody chose it.

    `figure` is the absolute difference, None where there was nothing to compare: then it passes, and says so.
    """
    limit = gate.max_canary_gap
    if canary.before is None or canary.tonight is None:
        detail = (
            f"version {canary.version} could not be compared with itself: none of its labelled test images is in test tonight"
        )
        return Check(rule=RULE, passed=True, figure=None, limit=limit, detail=detail)
    gap = abs(canary.tonight - canary.before)
    passed = gap <= limit or canary.on_purpose or not gate.canary_blocks
    detail = _in_words(canary, gap > limit)
    return Check(rule=RULE, passed=passed, figure=gap, limit=limit, detail=detail, undecided=not passed)


def _in_words(canary: Canary, beyond: bool) -> str:
    assert canary.before is not None and canary.tonight is not None
    on = f"on the {canary.num_images} test images that it was measured on before"
    if not beyond:
        return f"version {canary.version} has mAP50-95 {canary.tonight:.3f} tonight, {canary.before:.3f} when it was made, {on}"
    cause = ", ".join(canary.changed) or "nothing that is known has changed; perhaps another machine or device"
    why = "params of evaluate were changed" if canary.on_purpose else "an effect of what measures, not of a model"
    figures = f"{canary.tonight:.3f} tonight and had {canary.before:.3f} when it was made"
    return f"version {canary.version} has mAP50-95 {figures}, {on}: {why} ({cause})"


def _same_images(then: Detections, old: Manifest, now: Detections, new: Manifest) -> dict[str, str]:
    """Tonight's path to the path of then, of every image that both have looked at; of copies, one."""
    before = {image.sha256: image.path for image in _seen(then, old)}
    tonight = {image.sha256: image.path for image in _seen(now, new)}
    return {path: before[sha256] for sha256, path in tonight.items() if sha256 in before}


def _seen(detections: Detections, dataset: Manifest) -> list[Image]:
    seen = set(detections.images)
    return [image for image in dataset.images if image.path in seen]


def _on(detections: Detections, places: Mapping[str, int], truth: Truth) -> Detections:
    """The detections on the images of `places`, numbered by it and called as in the truth."""
    place = np.array([places.get(path, -1) for path in detections.images], np.int32)
    index = place[detections.image_index] if len(detections) else detections.image_index
    chosen = detections.select(index >= 0)
    return replace(chosen, images=truth.images, image_index=index[index >= 0])


def _mean(truth: Truth, detections: Detections, max_detections: int) -> float | None:
    if not truth.counts().sum():
        return None
    once = np.ones((1, len(truth.images)), np.int32)
    return float(np.nanmean(weighted_average_precision(precompute_matches(truth, detections, max_detections), once)))
