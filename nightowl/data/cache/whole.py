"""Decoded source images, of which many parts are wanted one after the other: each is decoded once, few are held."""

import threading
from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import Image, Window

_HELD = 2


class LastDecoded:
    """The images under `source`; the last few of which parts were asked for are kept. Safe to use from many threads."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._held: OrderedDict[str, NDArray[np.uint8]] = OrderedDict()
        self._lock = threading.Lock()

    def pixels(self, image: Image) -> NDArray[np.uint8]:
        """The whole image, BGR (H, W, 3), verified. Raises DataError."""
        if image.window is None:
            return self._decode(image)
        with self._lock:  # whoever wants another part of the same image waits for it
            if image.sha256 not in self._held:
                self._held[image.sha256] = self._decode(image)
                if len(self._held) > _HELD:
                    self._held.popitem(last=False)
            return self._held[image.sha256]

    def _decode(self, image: Image) -> NDArray[np.uint8]:
        return decode_bgr(verified_bytes(self._source, image), image.path)


def cut(pixels: NDArray[np.uint8], window: Window | None) -> NDArray[np.uint8]:
    """The window of an image (H, W, 3), a view; all of it without one."""
    if window is None:
        return pixels
    return pixels[window.y : window.y + window.height, window.x : window.x + window.width]
