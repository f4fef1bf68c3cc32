"""How an image looks, small enough to keep for each of a hundred thousand: what two images are compared by.

A look is made of the decoded pixels as seen, so a copy that was stored turned or in another format looks the same. It depends
on the content alone and is kept by the content's digest (see `look_store`).
"""

from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from nightowl.data.images import Storage, decode_small_grey

SIDE = 32  # pixels of the thumbnail
_LOW = 8  # lowest frequencies a direction that the hash keeps


class Look(NamedTuple):
    """How the image is stored, its perceptual hash of 64 bits, and SIDE * SIDE grey levels, row by row."""

    storage: Storage
    hash: int
    thumbnail: bytes


def look_at(content: bytes, name: str) -> Look:
    """The look of an encoded image. Raises DataError, naming `name`, when it does not decode whole."""
    storage, thumbnail = decode_small_grey(content, name, SIDE)
    return Look(storage, perceptual_hash(thumbnail), thumbnail.tobytes())


def perceptual_hash(thumbnail: npt.NDArray[np.uint8]) -> int:
    """64 bits, one for each of the 8 x 8 lowest frequencies of a SIDE x SIDE thumbnail: is it above their median?

    The DCT hash of C. Zauner, Implementation and Benchmarking of Perceptual Image Hash Functions (2010). Brightness and
    contrast do not matter to it: the constant term is left out of the median and is always 0.
    """
    low = np.asarray(cv2.dct(thumbnail.astype(np.float32)))[:_LOW, :_LOW].ravel()
    bits = low > np.median(low[1:])
    bits[0] = False
    return int.from_bytes(np.packbits(bits).tobytes(), "big")
