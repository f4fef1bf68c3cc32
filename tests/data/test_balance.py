from dataclasses import replace

import pytest

from nightowl.data.balance import check_balance, drift_findings
from nightowl.data.drift import Drift
from nightowl.data.manifest import SPLITS, Box, Image, Manifest


def manifest(*boxes: tuple[int, ...], classes: tuple[str, ...] = ("a", "b")) -> Manifest:
    """One image in each split for each tuple of class ids."""
    images = [
        Image(f"{split}{n}", "", 1, 99, 99, split, tuple(Box(c, 1, 1, 9, 9) for c in found))
        for split in SPLITS
        for n, found in enumerate(boxes)
    ]
    return Manifest(classes, tuple(images), "rule")


def said(dataset: Manifest) -> list[tuple[str, str]]:
    return [(finding.kind, finding.detail) for finding in check_balance(dataset, 10)]


@pytest.mark.parametrize(
    ("dataset", "found"),
    [
        (manifest((0, 1), ()), []),
        (manifest((0, 0), ()), [("class_without_boxes", "class 'b' has no box in train, val, test")]),
        (manifest((0,) * 10 + (1,), ()), []),
        (manifest((0,) * 11 + (1,), ()), [("class_imbalance", "33 boxes of 'a', 3 of 'b': more than 10 to 1")]),
        (
            manifest((0, 1)),
            [("no_background_images", "each of 3 images has an object: what a model does where there is none is not seen")],
        ),
        (Manifest((), (), "rule"), []),
    ],
)
def test_what_the_labels_say_as_a_whole(dataset: Manifest, found: list[tuple[str, str]]) -> None:
    assert said(dataset) == found


def test_a_class_may_lack_in_one_split_alone_and_a_crowd_is_no_box() -> None:
    dataset = manifest((0, 1), ())
    crowd = replace(dataset.images[0], boxes=(Box(0, 1, 1, 9, 9), Box(1, 1, 1, 9, 9, ignore=True)))
    assert said(replace(dataset, images=(crowd, *dataset.images[1:]))) == [
        ("class_without_boxes", "class 'b' has no box in train")
    ]


def test_only_a_drift_is_a_finding() -> None:
    still = Drift(what="classes", psi=0.1, limit=0.25, drifted=False, sentence="little")
    moved = Drift(what="box sizes", psi=0.5, limit=0.25, drifted=True, sentence="much")
    assert [(f.kind, f.detail) for f in drift_findings([still, moved])] == [("box_size_drift", "box sizes: much")]
