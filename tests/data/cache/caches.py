"""A small source with sides that do not divide, its manifest, and builds of it that say nothing."""

from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import PIL.Image

from nightowl.data.cache.build import Means, build_cache
from nightowl.data.cache.forms import Form
from nightowl.data.cache.packed import PackedImages
from nightowl.data.cache.reading import open_packed
from nightowl.data.cache.recipe import Origin, Recipe
from nightowl.data.manifest import Image
from nightowl.files import sha256_file
from nightowl.progress import untracked

SIZE = 64
RAW = Recipe(SIZE, "load_image", Form("raw"))
QUIET = Means(say=lambda line: None, progress=untracked, check_after_seconds=0)
SHAPES = ((80, 53), (53, 80), (64, 64), (128, 96), (31, 20))


@dataclass(frozen=True)
class Source:
    """Image files in `folder`, as the manifest names them."""

    folder: Path
    images: tuple[Image, ...]

    def build(self, home: Path, recipe: Recipe = RAW, **means: object) -> PackedImages:
        origin = Origin(self.images, self.folder, recipe)
        return open_packed(build_cache(origin, home, replace(QUIET, **means)), origin)


def a_source(folder: Path, num: int = 10, seed: int = 0) -> Source:
    """`num` PNGs of coloured clouds, of several shapes; another seed gives other pixels under other names."""
    folder.mkdir(parents=True, exist_ok=True)
    return Source(folder, tuple(_image(folder, seed, number) for number in range(num)))


def _image(folder: Path, seed: int, number: int) -> Image:
    width, height = SHAPES[number % len(SHAPES)]
    path = folder / f"{seed}-{number:04}.png"
    coarse = np.random.default_rng((seed, number)).integers(0, 256, (5, 5, 3), dtype=np.uint8)
    pixels = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    PIL.Image.fromarray(pixels).save(path)
    return Image(path.name, sha256_file(path), path.stat().st_size, width, height, "train", ())
