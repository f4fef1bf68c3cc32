"""What decides the pixels of a prepared image, and how one is made from its source file."""

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nightowl.data.cache.entries import Key, key_of, key_of_version
from nightowl.data.cache.forms import Form
from nightowl.data.cache.whole import LastDecoded, cut
from nightowl.data.images import Size
from nightowl.data.manifest import Image
from nightowl.data.resize import Rule, resized
from nightowl.errors import DataError


@dataclass(frozen=True, slots=True)
class Recipe:
    """The training size, the rule of rounding, and the form that the pixels are kept in."""

    image_size: int
    rule: Rule
    form: Form

    def key(self, image: Image) -> Key:
        return key_of(image, self.image_size, self.rule)

    def key_of_all(self, images: Sequence[Image]) -> str:
        """The name that an index of `images`, in that order, has among those of its form."""
        return key_of_version([self.key(image) for image in images])

    def pixels(self, image: Image, whole: LastDecoded) -> NDArray[np.uint8]:
        """The pixels BGR (h, w, 3) of an image, or of its window, before they take their form. Raises DataError."""
        pixels = cut(whole.pixels(image), image.window)
        if pixels.shape[:2] != (image.height, image.width):
            raise DataError(
                f"{image.path}: {pixels.shape[1]}x{pixels.shape[0]} pixels, the manifest says {image.width}x{image.height}; "
                "pin the inputs again"
            )
        key = self.key(image)
        return resized(pixels, Size(key.width, key.height))

    def stored(self, image: Image, whole: LastDecoded) -> bytes:
        """The bytes that are kept of an image. Raises DataError."""
        return self.form.encode(self.pixels(image, whole))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the images of a dataset version come from: `images`, in its order, whose files lie under `source`."""

    images: Sequence[Image]
    source: Path
    recipe: Recipe

    def stored(self, number: int) -> bytes:
        """The bytes of an image, made from its source again. Raises DataError, as when the source is gone."""
        return self.recipe.stored(self.images[number], LastDecoded(self.source))

    def to_bytes(self) -> bytes:
        """All that `stored` needs, small: workers hold it for the damage that hardly ever comes, and open it only then."""
        without_labels = replace(self, images=tuple(replace(image, boxes=()) for image in self.images))
        return zlib.compress(pickle.dumps(without_labels), 1)

    @classmethod
    def from_bytes(cls, content: bytes) -> "Origin":
        """Only of what this program has sent to itself."""
        found = pickle.loads(zlib.decompress(content))
        assert isinstance(found, cls)
        return found
