"""Labels worth a second look, for the annotators: a model is wrong more often than a label, but these are cheap to look at.

Three kinds, the most suspicious first: a confident detection where nothing is labelled; one where another class is labelled;
an object that neither the candidate nor the champion finds, at however low a confidence. Pure.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nightowl.evaluation.changes import corners
from nightowl.evaluation.detections import Detections
from nightowl.evaluation.truth import FALSE_ALARM, Truth, match, overlaps
from nightowl.records import Record

CONFIDENT, SAME_PLACE = 0.6, 0.5  # score from which a detection speaks against a label; IoU from which two boxes are one thing
Why = Literal["no label", "another label", "never found"]


class Suspicion(Record):
    """One label to look at, box_xyxy in pixels of the image as seen. `name` is the class to expect there, `labelled` the class
    that the label says (None: there is no label); `score` is the detection's, None where there is none."""

    image: str
    why: Why
    name: str
    labelled: str | None
    score: float | None
    box_xyxy: tuple[float, float, float, float]


def suspicious_labels(truth: Truth, candidate: Detections, others: Sequence[Detections] = ()) -> tuple[Suspicion, ...]:
    """What to look at again in the labels. `others` are detections of other models, which may know fewer classes."""
    assert truth.images == candidate.images and truth.classes == candidate.classes
    confident = candidate.from_confidence(CONFIDENT)
    found = [*_without_label(truth, confident), *_never_found(truth, [candidate, *others])]
    order: tuple[Why, ...] = ("no label", "another label", "never found")
    return tuple(sorted(found, key=lambda each: (order.index(each.why), -(each.score or 0.0), each.image)))


def _without_label(truth: Truth, confident: Detections) -> Iterator[Suspicion]:
    """Detections that lie on no label of their class: nor on another one that a better detection has found already."""
    matched = match(truth, confident)
    for i in np.flatnonzero(matched == FALSE_ALARM):
        here = np.flatnonzero(truth.image_index == confident.image_index[i])
        table = overlaps(confident.boxes_xyxy[i : i + 1], truth.boxes_xyxy[here], truth.ignore[here])[0]
        own = truth.class_id[here] == confident.class_id[i]
        if (table[own] >= SAME_PLACE).any():
            continue  # a second detection of an object that is labelled: the model's fault
        best = int(np.argmax(table)) if len(here) else -1
        other = truth.classes[truth.class_id[here[best]]] if best >= 0 and table[best] >= SAME_PLACE else None
        yield Suspicion(
            image=confident.images[confident.image_index[i]],
            why="another label" if other else "no label",
            name=confident.classes[confident.class_id[i]],
            labelled=other,
            score=round(float(confident.score[i]), 4),
            box_xyxy=corners(confident.boxes_xyxy[i]),
        )


def _never_found(truth: Truth, models: Sequence[Detections]) -> Iterator[Suspicion]:
    found = np.zeros(len(truth.class_id), np.bool_)
    for detections in models:
        found |= _found_by(truth, detections.with_classes(truth.classes))
    for i in np.flatnonzero(~found & ~truth.ignore):
        name = truth.classes[truth.class_id[i]]
        yield Suspicion(
            image=truth.images[truth.image_index[i]],
            why="never found",
            name=name,
            labelled=name,
            score=None,
            box_xyxy=corners(truth.boxes_xyxy[i]),
        )


def _found_by(truth: Truth, detections: Detections) -> NDArray[np.bool_]:
    matched = match(truth, detections)
    found = np.zeros(len(truth.class_id), np.bool_)
    found[matched[matched >= 0]] = True
    return found
