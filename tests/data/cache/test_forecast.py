import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from nightowl.data.cache.forecast import Forecast, forecast, memory_note, raw_bytes, require_room
from nightowl.data.cache.forms import Form
from nightowl.data.manifest import Image
from nightowl.errors import StorageError
from tests.data.cache.caches import RAW, a_source

GB = 10**9


def images(num: int) -> list[Image]:
    return [Image(f"{n}", f"{n:064x}", 1, 640, 480, "train", ()) for n in range(num)]


def test_raw_bytes_are_counted_exactly(tmp_path: Path) -> None:
    source = a_source(tmp_path / "source", 10)
    source.build(tmp_path / "home")
    stored = sum(path.stat().st_size for path in (tmp_path / "home").rglob("pixels.bin"))
    assert raw_bytes(source.images, RAW.image_size, RAW.rule) == stored


@pytest.mark.parametrize(
    ("num", "sampled", "why"), [(1, 1, "the only one"), (10, 1, "few"), (320, 10, "one in 32"), (10_000, 32, "at most 32")]
)
def test_a_few_images_taken_evenly_stand_for_all(num: int, sampled: int, why: str) -> None:
    seen = list[Image]()

    def prepare(image: Image) -> bytes:
        seen.append(image)
        return bytes(1_000)

    found = forecast(images(num), Form("jpeg", 95), 10 * num, prepare)
    assert (found.num_sampled, len(seen)) == (sampled, sampled), why
    assert found.num_bytes == (1_000 + 64) * num
    assert forecast(images(num), Form("raw"), 10 * num, prepare).num_bytes == 10 * num
    assert (found.seconds is None) is (sampled < 8), "the first image is no measure of the others"


def test_no_image_is_made_where_nothing_would_be_judged_by_it() -> None:
    def prepare(image: Image) -> bytes:
        raise AssertionError(image)

    assert forecast(images(200), Form("raw"), 12, prepare) == Forecast(200, 0, 12, None)


def test_it_says_bytes_seconds_and_their_basis() -> None:
    assert str(Forecast(24, 1, 1_400_000, None)) == "preparing 24 images: 1.4 MB"
    assert str(Forecast(4_000, 32, 3_700_000_000, 41.2)) == (
        "preparing 4000 images: 3.7 GB, about 41 s (judged by 32 images made first)"
    )


@pytest.mark.parametrize(
    ("form", "free", "limit", "kept", "said"),
    [
        ("raw", 5 * GB, None, GB, None),
        ("raw", 5 * GB, 4 * GB, 0, None),
        ("raw", 3 * GB, None, 0, r"needs 3\.9 GB for 100 images, 3\.0 GB are free.*prepare\.cache: jpeg.*set NIGHTOWL_HOME"),
        ("jpeg", 3 * GB, None, 0, r"3\.0 GB are free; free some space, or set NIGHTOWL_HOME"),
        ("raw", 5 * GB, 3 * GB, 0, r"cache_max_gb allows 3\.0 GB; set prepare\.cache: jpeg.*or raise it"),
        ("jpeg", 5 * GB, 4 * GB, GB, r"this dataset version needs 4\.9 GB, .* allows 4\.0 GB; raise it"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_ways_out(
    form: str, free: int, limit: int | None, kept: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    expected, kind = Forecast(100, 4, 4 * GB - 10**8, 1.0), Form("raw") if form == "raw" else Form("jpeg", 95)
    if said is None:
        require_room(expected, kind, Path("/cache"), limit, kept)
    else:
        with pytest.raises(StorageError, match=said):
            require_room(expected, kind, Path("/cache"), limit, kept)


@pytest.mark.parametrize(("available", "noted"), [(None, False), (5 * GB, False), (4 * GB, False), (3 * GB, True)])
def test_raw_images_that_do_not_fit_into_memory_are_said(available: int | None, noted: bool) -> None:
    assert (memory_note(4 * GB, available) is not None) is noted
