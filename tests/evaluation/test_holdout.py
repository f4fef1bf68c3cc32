"""When two test sets are one, for the error budget."""

from dataclasses import replace

import pytest

from nightowl.data.manifest import Box, Image, Manifest
from nightowl.evaluation.holdout import holdout_of, is_same, share_in_common
from nightowl.files import sha256_bytes

BOX = Box(0, 1.0, 2.0, 30.0, 40.0)


def a_dataset(numbers: range, folder: str = "a", box: Box = BOX) -> Manifest:
    images = (Image(f"{folder}/{n:05}.png", sha256_bytes(f"{n}".encode()), 1, 64, 64, "test", (box,)) for n in numbers)
    return Manifest(("open",), tuple(images), "by hand")


def test_the_version_is_of_what_images_and_labels_hold_and_not_of_where_they_lie() -> None:
    dataset = a_dataset(range(30))
    version = holdout_of(dataset).version
    assert holdout_of(a_dataset(range(30), folder="b")).version == version
    assert holdout_of(replace(dataset, images=dataset.images[::-1])).version == version
    others = (a_dataset(range(29)), a_dataset(range(30), box=Box(0, 1.0, 2.0, 30.0, 41.0)), replace(dataset, classes=("shut",)))
    assert version not in {holdout_of(other).version for other in others}


def test_train_and_val_do_not_count() -> None:
    dataset = a_dataset(range(30))
    more = replace(dataset.images[0], path="t.png", sha256="0" * 64, split="train")
    assert holdout_of(replace(dataset, images=(*dataset.images, more))) == holdout_of(dataset)


@pytest.mark.parametrize(
    ("one", "other", "share", "same", "reason"),
    [
        (range(40), range(40), 1.0, True, "the same images"),
        (range(40), range(42), 40 / 42, True, "two images were added"),
        (range(40), range(20, 60), 1 / 3, False, "half of the images were replaced"),
        (range(40), range(40, 80), 0.0, False, "all of them were"),
        (range(5000), range(200, 5200), 4800 / 5200, True, "a large one changed a little, by its sketch"),
        (range(5000), range(2500, 7500), 1 / 3, False, "a large one changed by half, by its sketch"),
        (range(0), range(0), 0.0, True, "no image at all is no error here: that is said elsewhere"),
    ],
)
def test_a_test_set_that_mostly_stays_is_the_same_one(one: range, other: range, share: float, same: bool, reason: str) -> None:
    first, second = holdout_of(a_dataset(one)), holdout_of(a_dataset(other))
    assert share_in_common(first, second) == pytest.approx(share, abs=1e-9 if len(one) <= 50 else 0.1), reason
    assert share_in_common(second, first) == share_in_common(first, second)
    assert is_same(first, second) == same, reason
