"""Pixels and sizes of one image, by one rule wherever an image is read.

An image is what a viewer shows: its EXIF orientation is applied, to its size and to its pixels. Whatever it is stored as, it
becomes 8-bit BGR: grey is repeated, alpha is dropped (not blended), CMYK and palettes are converted, and of 16 bits the upper
8 are kept. 32-bit integer and float images have no such rule and are refused.
"""

import hashlib
import io
from pathlib import Path
from typing import IO, NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import PIL.Image
from PIL.Image import Transpose

from nightowl.data.manifest import Image
from nightowl.errors import DataError
from nightowl.files import open_regular, read_regular

IMAGE_SUFFIXES = frozenset({".bmp", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp"})
MAX_PIXELS = 400_000_000

# Pillow's own guard only warns below twice its limit, which line-scan images pass; `_open` holds MAX_PIXELS strictly instead.
PIL.Image.MAX_IMAGE_PIXELS = None

_ORIENTATION, _BITS_PER_SAMPLE = 0x0112, 0x0102
_UPRIGHT = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
_ON_ITS_SIDE = frozenset({5, 6, 7, 8})
# What Pillow would start another program for (Ghostscript): a data set must start none.
_OF_PROGRAMS = frozenset({"EPS", "WMF"})
# What Pillow raises on broken files, besides OSError: each was seen on truncated or altered headers.
_BROKEN = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, MemoryError)


class Size(NamedTuple):
    """Pixels of an image as seen."""

    width: int
    height: int


class Storage(NamedTuple):
    """How an image is stored: Pillow's names of its format and mode, bits a channel, alpha, EXIF orientation (1: as is)."""

    format: str
    mode: str
    bits: int
    has_alpha: bool
    orientation: int


def read_size(path: Path, name: str | None = None) -> Size:
    """The size as seen, from the header alone. Raises DataError, naming `name` or the path, when it is no readable image."""
    name = name or str(path)
    try:
        with open_regular(path) as file:
            return _size(_open(file, name))
    except OSError as error:
        raise DataError(_unreadable(name, error)) from error


def size_of_bytes(content: bytes, name: str) -> Size:
    """The size as seen of an encoded image. Raises DataError, naming `name`."""
    return _size(_open(io.BytesIO(content), name))


def load_bgr(path: Path) -> npt.NDArray[np.uint8]:
    """Pixels as seen, uint8 (H, W, 3), in the order blue, green, red. Raises DataError when it cannot be decoded whole."""
    try:
        content = read_regular(path)
    except OSError as error:
        raise DataError(_unreadable(str(path), error)) from error
    return decode_bgr(content, str(path))


def decode_bgr(content: bytes, name: str) -> npt.NDArray[np.uint8]:
    """Like `load_bgr`, from encoded bytes; errors name `name`."""
    picture = _open(io.BytesIO(content), name)
    try:
        turn = _UPRIGHT.get(_orientation(picture))
        picture.load()
        rgb = _to_rgb(picture, name)
    except _BROKEN as error:
        raise DataError(_unreadable(name, error)) from error
    upright = rgb if turn is None else rgb.transpose(turn)
    return np.ascontiguousarray(np.asarray(upright, dtype=np.uint8)[:, :, ::-1])


def decode_small_grey(content: bytes, name: str, side: int) -> tuple[Storage, npt.NDArray[np.uint8]]:
    """How an image is stored, and its grey levels as seen, uint8 (side, side), stretched to a square.

    All of the encoded data is read, so that what `decode_bgr` refuses is refused here, too; but a JPEG's pixels are computed
    at as little as an eighth of its size, which is why this is three times as fast. Raises DataError, naming `name`.
    """
    picture = _open(io.BytesIO(content), name)
    try:
        turn = _UPRIGHT.get(_orientation(picture))
        storage = _storage(picture)
        picture.draft("L", (2 * side, 2 * side))
        picture.load()
        grey = _upper_8_bits(picture) if picture.mode.startswith("I;16") else _to_rgb(picture, name).convert("L")
    except _BROKEN as error:
        raise DataError(_unreadable(name, error)) from error
    upright = np.asarray(grey if turn is None else grey.transpose(turn), np.uint8)
    return storage, np.asarray(cv2.resize(upright, (side, side), interpolation=cv2.INTER_AREA), np.uint8)


def verified_path(source: Path, image: Image) -> Path:
    """Where `image` lies under `source`, after its content was compared with the manifest.

    Raises:
        DataError: when it is gone, or its SHA-256 is not the pinned one.
    """
    verified_bytes(source, image)
    return source / image.path


def verified_bytes(source: Path, image: Image) -> bytes:
    """The encoded content of `image`, after it was compared with the manifest. Raises DataError as `verified_path` does."""
    path = source / image.path
    try:
        content = read_regular(path)
    except OSError as error:
        raise DataError(
            f"{path}: pinned in the manifest, but cannot be read ({error.strerror}); restore it or pin the inputs again"
        ) from error
    found = hashlib.sha256(content).hexdigest()
    if found != image.sha256:
        raise DataError(
            f"{path}: image changed since it was pinned: expected sha256 {image.sha256[:12]}…, found {found[:12]}…; "
            "pin the inputs again"
        )
    return content


def _open(file: IO[bytes], name: str) -> PIL.Image.Image:
    try:
        picture = PIL.Image.open(file)
    except _BROKEN as error:
        raise DataError(_unreadable(name, error)) from error
    if picture.format in _OF_PROGRAMS:
        raise DataError(f"{name}: stored as {picture.format}, which another program would have to draw: convert it to pixels")
    width, height = picture.size
    if width * height > MAX_PIXELS:
        raise DataError(f"{name}: {width}x{height} pixels; at most {MAX_PIXELS:,} are read: cut it into tiles")
    return picture


def _size(picture: PIL.Image.Image) -> Size:
    width, height = picture.size
    return Size(height, width) if _orientation(picture) in _ON_ITS_SIDE else Size(width, height)


def _orientation(picture: PIL.Image.Image) -> int:
    """The EXIF orientation still to be applied. Pillow turns TIFF itself; a PNG's counts where it precedes the pixels."""
    if picture.format == "TIFF" or (picture.format == "PNG" and "exif" not in picture.info):
        return 1
    try:
        return int(picture.getexif().get(_ORIENTATION, 1))
    except _BROKEN:
        return 1  # broken metadata around sound pixels: viewers show it unturned


def _to_rgb(picture: PIL.Image.Image, name: str) -> PIL.Image.Image:
    if picture.mode.startswith("I;16"):
        return _upper_8_bits(picture).convert("RGB")
    if picture.mode in ("I", "F"):
        raise DataError(f"{name}: pixels of mode {picture.mode} (32 bits); expected 8 or 16 bits a channel: convert it")
    return picture.convert("RGB")


def _upper_8_bits(picture: PIL.Image.Image) -> PIL.Image.Image:
    return PIL.Image.fromarray((np.asarray(picture).astype(np.uint16) >> 8).astype(np.uint8))


def _storage(picture: PIL.Image.Image) -> Storage:
    has_alpha = "A" in picture.getbands() or "transparency" in picture.info
    return Storage(picture.format or "", picture.mode, _bits(picture), has_alpha, _stored_orientation(picture))


def _bits(picture: PIL.Image.Image) -> int:
    """Bits a channel in the file: Pillow opens 16-bit colour as if it had 8."""
    if picture.mode.startswith("I;16"):
        return 16
    tags = getattr(picture, "tag_v2", {})
    return max(_ints(tags.get(_BITS_PER_SAMPLE, 8))) if picture.format == "TIFF" else _png_bits(picture)


def _png_bits(picture: PIL.Image.Image) -> int:
    tiles = getattr(picture, "tile", ())
    return 16 if picture.format == "PNG" and tiles and "16" in str(tiles[0][3]) else 8


def _ints(value: object) -> tuple[int, ...]:
    return tuple(int(one) for one in value) if isinstance(value, tuple) else (int(str(value)),)


def _stored_orientation(picture: PIL.Image.Image) -> int:
    """The orientation that the metadata say, also where Pillow applies it by itself."""
    try:
        return int(picture.getexif().get(_ORIENTATION, 1))
    except _BROKEN:
        return 1


def _unreadable(name: str, error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:  # without the path in it: `name` says where
        return f"{name}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    detail = "not an image of a known kind" if isinstance(error, PIL.UnidentifiedImageError) else " ".join(str(error).split())
    return f"{name}: cannot be read as an image: {detail or type(error).__name__}"
