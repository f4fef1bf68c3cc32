import cv2
import numpy as np
import pytest

from nightowl.boards import draw_board
from nightowl.data.look import SIDE, look_at, perceptual_hash
from nightowl.data.near_duplicates import NearPairs, find_near
from tests.data.looking import COPIES, Grey, boards_of_one_layout, copy_of

RADIUS, DIFFERENCE = 8, 0.03


def near(images: list[Grey], max_pairs: int = 1_000_000) -> NearPairs:
    small = [cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for image in images]
    hashes = np.array([perceptual_hash(image) for image in small], np.uint64)
    return find_near(hashes, np.array(small, np.uint8).reshape(len(small), SIDE * SIDE), RADIUS, DIFFERENCE, max_pairs)


BOARDS = [draw_board(0, index, 192).image for index in range(24)]


@pytest.mark.parametrize("how", COPIES)
def test_a_copy_is_found_however_it_was_made(how: str) -> None:
    copies = [copy_of(image, how) for image in BOARDS[:8]]
    found = near([*BOARDS, *copies])
    assert found.pairs.tolist() == [[i, 24 + i] for i in range(8)]
    assert len(found.alike) == 0 and (found.differences <= DIFFERENCE).all()


def test_boards_of_different_layouts_are_no_copies() -> None:
    assert len(near(BOARDS).pairs) == 0


@pytest.mark.parametrize("registration", [0.0, 0.1, 0.3])
def test_boards_of_one_layout_are_alike_and_no_copies(registration: float) -> None:
    found = near(list(boards_of_one_layout(40, registration)))
    assert len(found.pairs) == 0
    assert len(found.alike) > 0


@pytest.mark.parametrize("registration", [0.0, 0.1])
def test_a_copy_is_found_even_among_boards_of_one_layout(registration: float) -> None:
    boards = list(boards_of_one_layout(40, registration))
    copies = [copy_of(image, "jpeg") for image in boards[:10]]
    found = {tuple(pair) for pair in near([*boards, *copies]).pairs.tolist()}
    true = {(i, 40 + i) for i in range(10)}
    assert len(found & true) >= 8 and found <= true


def test_images_without_contrast_are_not_compared() -> None:
    flat = [np.full((64, 64), level, np.uint8) for level in (10, 10, 200)]
    found = near([*flat, *BOARDS[:2]])
    assert len(found.pairs) == len(found.alike) == 0


def test_where_too_many_are_alike_fewer_bits_are_searched_and_that_is_said() -> None:
    boards = list(boards_of_one_layout(40, 0.0))
    assert near(boards).radius == RADIUS
    assert 0 <= near(boards, max_pairs=30).radius < RADIUS
    assert near([BOARDS[0]] * 10, max_pairs=30).radius == -1


def test_no_image_has_no_pair() -> None:
    assert find_near(np.empty(0, np.uint64), np.empty((0, SIDE * SIDE), np.uint8), RADIUS, DIFFERENCE).pairs.shape == (0, 2)


def test_a_turned_copy_with_its_exif_looks_the_same() -> None:
    from tests.data.looking import encoded, png

    image = BOARDS[3]
    turned = encoded(np.ascontiguousarray(np.rot90(image)), "JPEG", quality=95, exif=b"Exif\x00\x00" + _orientation(6))
    one, other = look_at(png(image), "a"), look_at(turned, "b")
    assert (one.hash ^ other.hash).bit_count() <= 2


def _orientation(value: int) -> bytes:
    import PIL.Image

    exif = PIL.Image.Exif()
    exif[0x0112] = value
    return exif.tobytes().removeprefix(b"Exif\x00\x00")
