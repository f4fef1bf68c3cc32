import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest

from nightowl.data import images
from nightowl.data.images import Size, load_bgr, read_size, verified_path
from nightowl.data.manifest import Image
from nightowl.errors import DataError
from nightowl.files import sha256_file
from tests.datasets import HEIGHT, WIDTH, paint, write_image


def save(path: Path, pixels: npt.NDArray[np.generic], mode: str | None = None, kind: str | None = None) -> Path:
    picture = PIL.Image.fromarray(pixels)
    (picture.convert(mode) if mode else picture).save(path, format=kind)
    return path


def test_pixels_come_as_blue_green_red(tmp_path: Path) -> None:
    red = np.zeros((4, 6, 3), np.uint8)
    red[..., 0] = 255
    bgr = load_bgr(save(tmp_path / "red.png", red))
    assert bgr.shape == (4, 6, 3) and bgr.dtype == np.uint8 and bgr.flags.c_contiguous
    assert bgr[0, 0].tolist() == [0, 0, 255]


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_size_and_pixels_are_those_that_a_viewer_shows(tmp_path: Path, orientation: int, suffix: str) -> None:
    path = write_image(tmp_path / f"a.{suffix}", orientation=orientation)
    turned = orientation >= 5
    expected = Size(HEIGHT, WIDTH) if turned else Size(WIDTH, HEIGHT)
    assert read_size(path) == expected
    assert load_bgr(path).shape == (expected.height, expected.width, 3)


def test_orientation_6_is_a_quarter_turn_to_the_right(tmp_path: Path) -> None:
    upright = load_bgr(write_image(tmp_path / "a.png"))
    assert np.array_equal(load_bgr(write_image(tmp_path / "b.png", orientation=6)), np.rot90(upright, k=-1))


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("L", "grey is repeated"), ("1", "black and white"), ("P", "a palette"), ("RGBA", "alpha is dropped"), ("LA", "both")],
)
def test_every_mode_becomes_8_bit_bgr(tmp_path: Path, mode: str, reason: str) -> None:
    path = save(tmp_path / "a.png", paint((), seed=1), mode)
    assert load_bgr(path).shape == (HEIGHT, WIDTH, 3), reason


def test_alpha_is_dropped_and_not_blended(tmp_path: Path) -> None:
    clear = np.full((2, 2, 4), (10, 20, 30, 0), np.uint8)
    assert load_bgr(save(tmp_path / "clear.png", clear))[0, 0].tolist() == [30, 20, 10]


def test_cmyk_is_converted(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jpg", np.full((16, 16, 3), (250, 5, 5), np.uint8), "CMYK")
    blue, _, red = load_bgr(path)[8, 8].tolist()
    assert red > 200 and blue < 60


@pytest.mark.parametrize("suffix", ["png", "tif"])
def test_of_16_bits_the_upper_8_are_kept(tmp_path: Path, suffix: str) -> None:
    path = save(tmp_path / f"a.{suffix}", np.full((3, 5), 0xABCD, np.uint16))
    assert np.unique(load_bgr(path)).tolist() == [0xAB]


def test_float_images_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = save(tmp_path / "a.tif", np.ones((3, 5), np.float32))
    with pytest.raises(DataError, match=r"a\.tif: pixels of mode F \(32 bits\); expected 8 or 16 bits a channel: convert it"):
        load_bgr(path)


def truncated() -> bytes:
    out = io.BytesIO()
    PIL.Image.fromarray(paint((), seed=2)).save(out, "JPEG")
    return out.getvalue()[:-200]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read as an image: not an image of a known kind"),
        (b"<html>not found</html>", "cannot be read as an image: not an image of a known kind"),
        (truncated(), "cannot be read as an image: image file is truncated"),
    ],
)
def test_what_cannot_be_decoded_whole_is_an_error_with_its_path(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "bad.jpg"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as raised:
        load_bgr(path)
    assert str(path) in str(raised.value)


def test_an_absent_image_is_a_data_error(tmp_path: Path) -> None:
    for read in (read_size, load_bgr):
        with pytest.raises(DataError, match=r"absent\.jpg: no such file or directory"):
            read(tmp_path / "absent.jpg")


def test_more_pixels_than_the_limit_are_refused_from_the_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MAX_PIXELS", 100)
    with pytest.raises(DataError, match="64x48 pixels; at most 100 are read"):
        read_size(write_image(tmp_path / "large.png"))


def test_a_lying_suffix_is_no_obstacle(tmp_path: Path) -> None:
    path = save(tmp_path / "a.jpg", paint((), seed=3), kind="PNG")
    assert read_size(path) == Size(WIDTH, HEIGHT)


def test_a_verified_path_is_that_of_the_pinned_content(tmp_path: Path) -> None:
    path = write_image(tmp_path / "a.png")
    pinned = Image("a.png", sha256_file(path), path.stat().st_size, WIDTH, HEIGHT, "train", ())
    assert verified_path(tmp_path, pinned) == path
    write_image(path, seed=9)
    with pytest.raises(DataError, match="image changed since it was pinned: expected sha256"):
        verified_path(tmp_path, pinned)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        verified_path(tmp_path, pinned)
