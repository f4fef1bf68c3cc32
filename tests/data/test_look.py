import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from nightowl.data.images import Storage, decode_bgr
from nightowl.data.look import SIDE, look_at, perceptual_hash
from nightowl.data.look_store import MAX_FILES, LookStore
from nightowl.errors import DataError
from tests.data.looking import encoded, png

NOISE = np.random.default_rng(0).integers(0, 256, (70, 90, 3), dtype=np.uint8)
SMOOTH = np.kron(np.random.default_rng(1).integers(0, 256, (10, 10, 3), dtype=np.uint8), np.ones((30, 40, 1), np.uint8))


def sixteen_bits(image_format: str) -> bytes:
    out = io.BytesIO()
    PIL.Image.fromarray(NOISE[..., 0].astype(np.uint16) << 8).save(out, image_format)
    return out.getvalue()


def converted(mode: str, image_format: str) -> bytes:
    out = io.BytesIO()
    PIL.Image.fromarray(NOISE).convert(mode).save(out, image_format)
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "storage"),
    [
        (encoded(NOISE, "JPEG"), Storage("JPEG", "RGB", 8, False, 1)),
        (png(NOISE), Storage("PNG", "RGB", 8, False, 1)),
        (converted("L", "PNG"), Storage("PNG", "L", 8, False, 1)),
        (converted("RGBA", "PNG"), Storage("PNG", "RGBA", 8, True, 1)),
        (converted("CMYK", "JPEG"), Storage("JPEG", "CMYK", 8, False, 1)),
        (converted("RGB", "TIFF"), Storage("TIFF", "RGB", 8, False, 1)),
        (sixteen_bits("PNG"), Storage("PNG", "I;16", 16, False, 1)),
        (sixteen_bits("TIFF"), Storage("TIFF", "I;16", 16, False, 1)),
    ],
)
def test_it_says_how_an_image_is_stored(content: bytes, storage: Storage) -> None:
    assert look_at(content, "a").storage == storage


def test_the_thumbnail_is_of_the_grey_levels() -> None:
    thumbnail = np.frombuffer(look_at(png(SMOOTH), "a").thumbnail, np.uint8).reshape(SIDE, SIDE)
    grey = np.asarray(PIL.Image.fromarray(SMOOTH).convert("L"), np.float32)
    assert abs(thumbnail.mean() - grey.mean()) < 1


@pytest.mark.parametrize("image_format", ["JPEG", "PNG", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("progressive", [False, True])
def test_whatever_does_not_decode_whole_has_no_look(image_format: str, progressive: bool) -> None:
    options = {"progressive": True} if progressive and image_format == "JPEG" else {}
    content = encoded(SMOOTH, image_format, **options)
    for share in np.linspace(0.02, 0.998, 60):
        cut = content[: int(share * len(content))]
        assert fault(decode_bgr, cut) == fault(look_at, cut), f"cut at {share:.3f}"


def fault(decode: object, content: bytes) -> bool:
    try:
        decode(content, "a")  # type: ignore[operator]
    except DataError:
        return True
    return False


def test_brightness_and_contrast_do_not_matter_to_the_hash() -> None:
    thumbnail = np.frombuffer(look_at(png(SMOOTH), "a").thumbnail, np.uint8).reshape(SIDE, SIDE)
    dimmer = (thumbnail * 0.5 + 40).astype(np.uint8)
    assert (perceptual_hash(thumbnail) ^ perceptual_hash(dimmer)).bit_count() <= 2


def test_what_was_added_is_there_again_and_what_was_not_asked_for_is_not(tmp_path: Path) -> None:
    store, look = LookStore(tmp_path), look_at(png(NOISE), "a")
    store.add({"a": look, "b": "cannot be read"})
    assert store.load({"a", "b", "c"}) == {"a": look, "b": "cannot be read"}
    assert store.load({"b"}) == {"b": "cannot be read"}


def test_many_passes_are_written_together(tmp_path: Path) -> None:
    store, look = LookStore(tmp_path), look_at(png(NOISE), "a")
    for number in range(MAX_FILES + 3):
        store.add({str(number): look})
    assert store.folder is not None and len(list(store.folder.glob("*.parquet"))) <= MAX_FILES
    assert set(store.load({str(number) for number in range(99)})) == {str(number) for number in range(MAX_FILES + 3)}


def test_a_damaged_file_costs_only_time(tmp_path: Path) -> None:
    store, look = LookStore(tmp_path), look_at(png(NOISE), "a")
    store.add({"a": look})
    assert store.folder is not None
    (path,) = store.folder.glob("*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    store.add({"b": look})
    assert store.load({"a", "b"}) == {"b": look}


def test_without_a_root_nothing_is_kept() -> None:
    store = LookStore(None)
    store.add({"a": "fault"})
    assert store.load({"a"}) == {}
