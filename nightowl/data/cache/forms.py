"""Raw or JPEG: what the stored bytes of an image are."""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from nightowl.errors import DataError

_SAMPLING = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420


@dataclass(frozen=True, slots=True)
class Form:
    """`raw`: the pixels themselves, exact. `jpeg`: encoded anew at `quality` (1 to 100), chroma at half resolution."""

    name: Literal["raw", "jpeg"]
    quality: int = 0

    def encode(self, pixels_bgr: NDArray[np.uint8]) -> bytes:
        if self.name == "raw":
            return pixels_bgr.tobytes()
        options = [cv2.IMWRITE_JPEG_QUALITY, self.quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, _SAMPLING]
        done, encoded = cv2.imencode(".jpg", pixels_bgr, [*options, cv2.IMWRITE_JPEG_OPTIMIZE, 1])
        assert done, "an 8-bit image of three channels encodes"
        return bytes(encoded.data)

    def decode(self, stored: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
        """Pixels BGR (height, width, 3) of the stored bytes (n,): a view of them in the raw form, a new array else."""
        if self.name == "raw":
            return stored.reshape(height, width, 3)
        pixels = cv2.imdecode(stored, cv2.IMREAD_COLOR)
        if pixels is None or pixels.shape != (height, width, 3):
            raise DataError("a prepared image does not decode; find the damage: nightowl data cache verify")
        return np.asarray(pixels, np.uint8)
