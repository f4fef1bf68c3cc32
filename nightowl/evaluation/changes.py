"""What changed against the champion: objects newly missed or newly found, false alarms new or gone.

Each model at its own operating point, as it would be used, matched at IoU 0.5 class by class, over the classes that both know.
A false alarm of both, in the same place and of the same class, is no change. Pure: from kept detections, no model runs.

M objects, N detections of the candidate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import FALSE_ALARM, Truth, match
from nightowl.records import Record

ChangeKind = Literal["new_miss", "new_find", "new_false_alarm", "gone_false_alarm"]
WORSE: tuple[ChangeKind, ...] = ("new_miss", "new_false_alarm")


class Change(Record):
    """One change on an image, box_xyxy in its pixels. `score` is that of the detection, None for an object."""

    kind: ChangeKind
    image: str
    name: str
    box_xyxy: tuple[float, float, float, float]
    score: float | None


class ClassChanges(Record):
    """How many changes of each kind a class has; `num_truth` objects, crowds not counted."""

    name: str
    num_truth: int
    new_miss: int
    new_find: int
    new_false_alarm: int
    gone_false_alarm: int


class Changes(Record):
    """Every change, worst images first: those with most new misses and new false alarms."""

    changes: tuple[Change, ...]
    classes: tuple[ClassChanges, ...]

    def count(self, kind: ChangeKind) -> int:
        return sum(change.kind == kind for change in self.changes)


@dataclass(frozen=True, slots=True, eq=False)
class _Outcome:
    """A model at its operating point: which objects it found (M,), and its false alarms."""

    found: NDArray[np.bool_]
    alarms: Detections


def what_changed(
    truth: Truth,
    candidate: Detections,
    candidate_from: float | NDArray[np.float32],
    champion: Detections,
    champion_from: float | NDArray[np.float32],
) -> Changes:
    """The changes on images and classes that all three share; each model's detections count from its own confidence up."""
    assert truth.images == candidate.images == champion.images
    assert truth.classes == candidate.classes == champion.classes
    ours, theirs = (_outcome(truth, d, at) for d, at in ((candidate, candidate_from), (champion, champion_from)))
    counted = ~truth.ignore
    changes = [
        *_objects("new_miss", truth, theirs.found & ~ours.found & counted),
        *_objects("new_find", truth, ours.found & ~theirs.found & counted),
        *_alarms("new_false_alarm", _not_among(ours.alarms, theirs.alarms)),
        *_alarms("gone_false_alarm", _not_among(theirs.alarms, ours.alarms)),
    ]
    return Changes(changes=_worst_first(changes), classes=_per_class(truth, changes))


def _outcome(truth: Truth, detections: Detections, confidence: float | NDArray[np.float32]) -> _Outcome:
    shown = detections.from_confidence(confidence)
    matched = match(truth, shown)
    found = np.zeros(len(truth.class_id), np.bool_)
    found[matched[matched >= 0]] = True
    return _Outcome(found, shown.select(matched == FALSE_ALARM))


def _not_among(alarms: Detections, others: Detections) -> Detections:
    """Those of `alarms` that have no counterpart in `others`, one for one."""
    as_objects = Truth(
        others.classes,
        others.images,
        others.image_index,
        others.class_id,
        others.boxes_xyxy.astype(np.float64),
        np.zeros(len(others), np.bool_),
    )
    return alarms.select(match(as_objects, alarms) == FALSE_ALARM)


def _objects(kind: ChangeKind, truth: Truth, chosen: NDArray[np.bool_]) -> list[Change]:
    return [
        Change(
            kind=kind,
            image=truth.images[truth.image_index[i]],
            name=truth.classes[truth.class_id[i]],
            box_xyxy=corners(truth.boxes_xyxy[i]),
            score=None,
        )
        for i in np.flatnonzero(chosen)
    ]


def _alarms(kind: ChangeKind, alarms: Detections) -> list[Change]:
    return [
        Change(
            kind=kind,
            image=alarms.images[alarms.image_index[i]],
            name=alarms.classes[alarms.class_id[i]],
            box_xyxy=corners(alarms.boxes_xyxy[i]),
            score=round(float(alarms.score[i]), 4),
        )
        for i in range(len(alarms))
    ]


def corners(box: NDArray[np.floating]) -> tuple[float, float, float, float]:
    """A box (4,) as a record holds it: hundredths of a pixel are enough."""
    x1, y1, x2, y2 = (round(float(value), 2) for value in box)
    return x1, y1, x2, y2


def _worst_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    worse: dict[str, int] = {}
    for change in changes:
        worse[change.image] = worse.get(change.image, 0) + (change.kind in WORSE)
    return tuple(sorted(changes, key=lambda each: (-worse[each.image], each.image, each.kind not in WORSE)))


def _per_class(truth: Truth, changes: Sequence[Change]) -> tuple[ClassChanges, ...]:
    def count(name: str, kind: ChangeKind) -> int:
        return sum(each.name == name and each.kind == kind for each in changes)

    return tuple(
        ClassChanges(
            name=name,
            num_truth=int(number),
            new_miss=count(name, "new_miss"),
            new_find=count(name, "new_find"),
            new_false_alarm=count(name, "new_false_alarm"),
            gone_false_alarm=count(name, "gone_false_alarm"),
        )
        for name, number in zip(truth.classes, truth.counts(), strict=True)
    )
