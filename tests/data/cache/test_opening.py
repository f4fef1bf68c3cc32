from pathlib import Path

import numpy as np
import pytest

from nightowl.data.cache.opening import open_cache
from nightowl.data.images import load_bgr
from nightowl.data.manifest import Manifest
from nightowl.data.pin import build_manifest
from nightowl.data.resize import letterbox_size, resized, training_size
from nightowl.errors import StorageError
from nightowl.params import DataParams, PrepareParams
from nightowl.settings import Settings
from tests.datasets import a_dataset, write_yolo_dataset


@pytest.fixture
def pinned(tmp_path: Path) -> tuple[Manifest, Path]:
    source = write_yolo_dataset(tmp_path / "source", a_dataset(6, 4, 2))
    return build_manifest(source, DataParams(), tmp_path / "stat.json")[0], source


def test_each_split_is_there_in_the_order_of_the_manifest(pinned: tuple[Manifest, Path], tmp_path: Path) -> None:
    manifest, source = pinned
    params, settings = PrepareParams(image_size=96), Settings(home=tmp_path / "home")
    for split, by_rule in (("train", training_size), ("val", letterbox_size)):
        packed = open_cache(manifest, split, source, params, settings)
        assert len(packed) == len(manifest.of(split))
        for number, image in enumerate(manifest.of(split)):
            expected = resized(load_bgr(source / image.path), by_rule(image.width, image.height, 96))
            assert np.array_equal(packed.image(number), expected)


def test_the_jpeg_form_is_for_training_and_val_stays_exact(pinned: tuple[Manifest, Path], tmp_path: Path) -> None:
    manifest, source = pinned
    params, settings = PrepareParams(image_size=96, cache="jpeg", jpeg_quality=90), Settings(home=tmp_path / "home")
    train, val = (open_cache(manifest, split, source, params, settings) for split in ("train", "val"))
    assert bytes(train.stored(0)[:2]) == b"\xff\xd8"
    first = manifest.of("val")[0]
    assert np.array_equal(val.image(0), resized(load_bgr(source / first.path), letterbox_size(first.width, first.height, 96)))


def test_what_is_prepared_is_not_prepared_again(
    pinned: tuple[Manifest, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest, source = pinned
    params, settings = PrepareParams(image_size=96), Settings(home=tmp_path / "home")
    open_cache(manifest, "train", source, params, settings)
    assert "preparing 6 images" in capsys.readouterr().err
    open_cache(manifest, "train", source, params, settings)
    assert capsys.readouterr().err == ""
    open_cache(manifest, "train", source, PrepareParams(image_size=64), settings)
    assert "preparing 6 images" in capsys.readouterr().err, "another size is another image"


def test_nothing_is_prepared_that_the_limit_does_not_allow(pinned: tuple[Manifest, Path], tmp_path: Path) -> None:
    manifest, source = pinned
    with pytest.raises(StorageError, match=r"cache_max_gb allows 0\.1 MB"):
        open_cache(manifest, "train", source, PrepareParams(image_size=96), Settings(home=tmp_path, cache_max_gb=0.0001))
