"""Tiles of large images in the prepared cache: the pixels of their place, each image decoded once for all of them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nightowl.data.cache import whole
from nightowl.data.images import load_bgr
from nightowl.data.manifest import Image
from nightowl.data.tiling import all_tiles, windows_of
from nightowl.errors import DataError
from nightowl.params import TilingParams
from tests.data.cache.caches import SIZE, a_source

TILING = TilingParams(size_px=SIZE, overlap=0.25)


def test_a_tile_has_the_pixels_of_its_place_and_each_image_is_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = a_source(tmp_path / "source", 4)
    tiles = list(all_tiles(source.images, TILING))
    decoded: Counter[str] = Counter()
    verified = whole.verified_bytes

    def counting(folder: Path, image: Image) -> bytes:
        decoded[image.path] += 1
        return verified(folder, image)

    monkeypatch.setattr(whole, "verified_bytes", counting)
    packed = replace(source, images=tuple(tiles)).build(tmp_path / "home")
    assert len(packed) == sum(len(windows_of(image.width, image.height, TILING)) for image in source.images) > 8
    for number, tile in enumerate(tiles):
        assert tile.window is not None
        x, y, width, height = tile.window
        pixels = load_bgr(source.folder / tile.path)[y : y + height, x : x + width]
        if (width, height) == (SIZE, SIZE):
            np.testing.assert_array_equal(packed.image(number), pixels)
    assert sum(decoded.values()) <= 2 * len(source.images), "once to forecast, once to build"


def test_a_whole_image_and_its_tiles_lie_beside_each_other(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source", 2)
    before = source.build(tmp_path / "home").image(0).copy()
    replace(source, images=tuple(all_tiles(source.images, TILING))).build(tmp_path / "home")
    np.testing.assert_array_equal(source.build(tmp_path / "home").image(0), before)


def test_a_tile_outside_its_image_is_an_error(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source", 1)
    (wide, *_) = all_tiles([replace(source.images[0], width=640)], TILING)
    assert wide.window is not None
    outside = replace(wide, window=wide.window._replace(x=600))
    with pytest.raises(DataError, match="pin the inputs again"):
        replace(source, images=(outside,)).build(tmp_path / "home")
