"""The images that INT8 is calibrated on: every class, a stable choice, all when there are few."""

import pytest

from nightowl.data.manifest import Box, Image
from nightowl.export.calibration import choose


def image(number: int, *classes: int) -> Image:
    boxes = tuple(Box(class_id, 0, 0, 9, 9) for class_id in classes)
    return Image(f"{number:05}.jpg", f"{number:064x}", 1, 64, 64, "train", boxes)


COMMON = [image(number, 0) for number in range(1000)]
RARE = [image(number, 1) for number in range(2000, 2005)]
EMPTY = [image(number) for number in range(3000, 3200)]
ALL = COMMON + RARE + EMPTY


@pytest.mark.parametrize("num", [20, 100, 500])
def test_every_class_is_there_and_so_are_images_without_objects(num: int) -> None:
    chosen = choose(ALL, num)
    assert len(chosen) == len({each.path for each in chosen}) == num
    assert set(RARE) <= set(chosen), "a class of five images needs all of them"
    assert any(not each.boxes for each in chosen)
    assert [each.path for each in chosen] == sorted(each.path for each in chosen)


def test_few_images_are_all_taken() -> None:
    assert choose(RARE, 500) == tuple(RARE)
    assert choose([], 500) == ()


def test_the_choice_is_of_contents_not_of_order_and_new_images_change_little() -> None:
    chosen = choose(ALL, 100)
    assert choose(list(reversed(ALL)), 100) == chosen
    grown = choose([*ALL, image(9999, 0)], 100)
    assert len(set(grown) - set(chosen)) <= 1


def test_many_classes_share_what_places_there_are() -> None:
    wide = [image(number, number % 50) for number in range(5000)]
    counts = [sum(box.class_id == c for each in choose(wide, 200) for box in each.boxes) for c in range(50)]
    assert min(counts) >= 2
