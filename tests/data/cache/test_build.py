from pathlib import Path

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest

from nightowl.data.cache.forms import Form
from nightowl.data.cache.recipe import Recipe
from nightowl.data.images import load_bgr
from nightowl.data.resize import resized, training_size
from nightowl.errors import DataError
from nightowl.evaluation.preprocess import letterbox, padded, plan_letterbox
from tests.data.cache.caches import RAW, SIZE, a_source


def test_the_cache_holds_what_decoding_and_scaling_give_in_order(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    packed = source.build(tmp_path / "home")
    assert len(packed) == len(source.images)
    for number, image in enumerate(source.images):
        expected = resized(load_bgr(source.folder / image.path), training_size(image.width, image.height, SIZE))
        assert np.array_equal(packed.image(number), expected)
        assert packed.original_size(number) == (image.width, image.height)
        assert packed.size(number) == expected.shape[1::-1]
        assert packed.find(image.sha256) == number


def test_what_the_network_sees_of_val_is_the_same_from_the_cache_as_from_the_original(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    packed = source.build(tmp_path / "home", Recipe(SIZE, "letterbox", Form("raw")))
    for number, image in enumerate(source.images):
        expected, plan = letterbox(load_bgr(source.folder / image.path), SIZE)
        planned, inner = plan_letterbox(*packed.original_size(number), SIZE)
        assert planned == plan and inner == packed.size(number)
        square = padded(packed.image(number), planned, SIZE)
        assert np.array_equal(square[..., ::-1].transpose(2, 0, 1).astype(np.float32) / np.float32(255), expected)


def test_the_jpeg_form_keeps_each_image_encoded_at_training_size(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    raw, packed = source.build(tmp_path / "home"), source.build(tmp_path / "home", Recipe(SIZE, "load_image", Form("jpeg", 95)))
    assert packed.num_bytes < raw.num_bytes
    for number in range(len(packed)):
        again = cv2.imdecode(np.frombuffer(packed.stored(number).tobytes(), np.uint8), cv2.IMREAD_COLOR)
        assert np.array_equal(packed.image(number), again)
        assert np.abs(packed.image(number).astype(int) - raw.image(number)).mean() < 4


def test_only_new_images_are_decoded(tmp_path: Path) -> None:
    before, more = a_source(tmp_path / "source"), a_source(tmp_path / "source", 3, seed=1)
    before.build(tmp_path / "home")
    for image in before.images:
        (before.folder / image.path).unlink()
    both = type(before)(before.folder, (*more.images, *before.images))
    said = list[str]()
    packed = both.build(tmp_path / "home", say=said.append)
    assert len(packed) == 13 and said[0].startswith("preparing 3 images: 0.0 MB")
    assert np.array_equal(packed.image(0), resized(load_bgr(more.folder / more.images[0].path), packed.size(0)))


def test_the_same_content_is_kept_once(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source", 2)
    twice = type(source)(source.folder, source.images * 2)
    packed = twice.build(tmp_path / "home")
    assert len(packed) == 4 and np.array_equal(packed.image(1), packed.image(3))
    assert (
        sum(path.stat().st_size for path in (tmp_path / "home").rglob("pixels.bin"))
        == source.build(tmp_path / "home").num_bytes
    )


def test_a_read_only_source_works_and_nothing_is_written_into_it(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    before = sorted(tmp_path.joinpath("source").rglob("*"))
    source.folder.chmod(0o555)
    source.build(tmp_path / "home")
    assert sorted(tmp_path.joinpath("source").rglob("*")) == before
    source.folder.chmod(0o755)


def test_an_image_that_changed_since_it_was_pinned_stops_the_build(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source")
    (source.folder / source.images[7].path).write_bytes(b"other")
    with pytest.raises(DataError, match=r"0-0007\.png: image changed since it was pinned"):
        source.build(tmp_path / "home")
    assert not list((tmp_path / "home").rglob("*.parquet")), "nothing was published"
    assert not list((tmp_path / "home").glob("*/shards/*")) and not list((tmp_path / "home").glob("*/shards/.*"))


@pytest.mark.parametrize("recipe", [RAW, Recipe(SIZE, "load_image", Form("jpeg", 90))])
def test_shards_are_cut_by_bytes_and_read_as_one(tmp_path: Path, recipe: Recipe) -> None:
    source = a_source(tmp_path / "source")
    one = source.build(tmp_path / "one", recipe)
    many = source.build(tmp_path / "many", recipe, shard_bytes=3_000)
    assert len(list((tmp_path / "many").glob("*/shards/*"))) > 3
    assert all(np.array_equal(one.image(number), many.image(number)) for number in range(len(one)))


def test_the_documented_layout_is_read_with_numpy_and_pyarrow_alone(tmp_path: Path) -> None:
    packed = a_source(tmp_path / "source", 5).build(tmp_path / "home")
    shard = next((tmp_path / "home").glob("*/shards/*"))
    for number, row in enumerate(pq.read_table(shard / "index.parquet").to_pylist()):
        assert row["shard"] == shard.name
        pixels = np.memmap(shard / "pixels.bin", np.uint8, "r", row["offset"], (row["height"], row["width"], 3))
        assert np.array_equal(pixels, packed.image(number))
