"""What ends badly ends in a clear error or in a repaired state, and never in other pixels."""

import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import pytest

from nightowl.data.cache import forecast
from nightowl.data.cache.damage import DAMAGED
from nightowl.data.cache.forms import Form
from nightowl.data.cache.packed import PackedImages, checks_of
from nightowl.data.cache.place import KIND
from nightowl.data.cache.prune import prune
from nightowl.data.cache.reading import open_packed
from nightowl.data.cache.recipe import Recipe
from nightowl.data.cache.shards import INDEX, MARKER, PIXELS
from nightowl.data.cache.verify import verify
from nightowl.data.manifest import Box
from nightowl.errors import DataError, StorageError
from nightowl.progress import untracked
from tests.data.cache.caches import RAW, Source, a_source

T = TypeVar("T")
JPEG = replace(RAW, form=Form("jpeg", 95))


def in_a_process(work: Callable[[], None]) -> int:
    """Start `work` in a fork of this process; its id. It ends with 0, or with 1 after an error."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:  # noqa: BLE001 - a process border
            os._exit(1)
        os._exit(0)
    return process


def status_of(process: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def slowly(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """A progress that takes 10 ms an item, so that a build lasts long enough to be killed."""
    for item in items:
        time.sleep(0.01)
        yield item


def pixels_of(packed: PackedImages) -> list[bytes]:
    return [packed.image(number).tobytes() for number in range(len(packed))]


def shards_of(home: Path) -> list[Path]:
    return sorted(home.glob("*/shards/[!.]*"))


def test_a_build_killed_at_random_moments_goes_on_and_ends_with_the_same_pixels(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 40), tmp_path / "home"
    expected = pixels_of(source.build(tmp_path / "uninterrupted"))
    draw, killed = random.Random(0), 0
    for _ in range(12):
        process = in_a_process(lambda: source.build(home, shard_bytes=70_000, progress=slowly) and None)
        time.sleep(draw.uniform(0, 0.4))
        os.kill(process, signal.SIGKILL)
        killed += status_of(process) == -signal.SIGKILL
        assert all(found.is_whole and not found.num_damaged for found in verify(home, untracked))
    assert killed > 0, "the kills came while it built"
    assert pixels_of(source.build(home)) == expected
    assert not list(home.glob("*/shards/.*")), "nothing is left of the killed"
    assert sum(found.num_images for found in verify(home, untracked)) == 40, "nothing was made twice"


def test_two_builds_at_once_make_each_image_once(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 40), tmp_path / "home"
    processes = [in_a_process(lambda: source.build(home, shard_bytes=200_000) and None) for _ in range(4)]
    assert [status_of(process) for process in processes] == [0, 0, 0, 0]
    assert sum(found.num_images for found in verify(home, untracked)) == 40
    assert pixels_of(source.build(home)) == pixels_of(source.build(tmp_path / "alone"))


def test_builds_of_different_versions_run_side_by_side_and_share_what_they_make(tmp_path: Path) -> None:
    first, second, home = a_source(tmp_path / "a", 20), a_source(tmp_path / "b", 20, seed=1), tmp_path / "home"
    processes = [in_a_process(lambda source=source: source.build(home) and None) for source in (first, second)]
    assert [status_of(process) for process in processes] == [0, 0]
    for source in (first, second):
        for image in source.images:
            (source.folder / image.path).unlink()
    assert len(Source(first.folder, (*first.images, *second.images)).build(home)) == 40, "nothing is decoded again"


def flip(path: Path, where: int) -> None:
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("recipe", [RAW, JPEG], ids=["raw", "jpeg"])
@pytest.mark.parametrize("where", [0, 1_000, -1])
def test_a_flipped_bit_is_found_when_it_is_read_and_only_its_image_is_made_anew(
    tmp_path: Path, where: int, recipe: Recipe, capsys: pytest.CaptureFixture[str]
) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    expected = pixels_of(source.build(home, recipe))
    flip(shards_of(home)[0] / PIXELS, where)
    packed = source.build(home, recipe)
    for number in range(2):
        assert pixels_of(packed) == expected, "made from the source, at each reading"
        assert capsys.readouterr().err.count("its prepared image is damaged") == 1 - number, "and said once"
    said = list[str]()
    assert pixels_of(source.build(home, recipe, say=said.append)) == expected
    assert said and said[0].startswith("preparing 1 image:"), said
    assert capsys.readouterr().err == ""


def test_a_worker_finds_damage_too(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    expected = pixels_of(source.build(home))
    flip(shards_of(home)[0] / PIXELS, 0)
    sent = pickle.loads(pickle.dumps(source.build(home)))
    assert pixels_of(sent) == expected


def test_what_a_worker_is_sent_does_not_grow_with_the_labels(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    labelled = replace(source, images=tuple(replace(i, boxes=(Box(0, 1.5, 2.5, 9.25, 8.125),) * 500) for i in source.images))
    sent, bare = (pickle.dumps(each.build(home)) for each in (labelled, source))
    assert len(sent) == len(bare)
    assert len(pickle.dumps(labelled.images)) > 2 * len(sent), "there is something to be left out"


def test_damage_without_a_source_to_make_it_from_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    index = source.build(home).index
    flip(shards_of(home)[0] / PIXELS, 0)
    (first,) = shards_of(home)
    with pytest.raises(DataError, match="image 0 is damaged; prepare the images again"):
        open_packed(index).image(0)
    packed = source.build(home)
    assert packed.image(0).any(), "the build made it anew"
    (second,) = set(shards_of(home)) - {first}
    flip(second / PIXELS, 0)
    packed = source.build(home)
    (source.folder / source.images[0].path).unlink()
    with pytest.raises(DataError, match=source.images[0].path):
        packed.image(0)


def test_verifying_finds_damage_which_a_reader_then_refuses_and_a_build_repairs(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    packed = source.build(home)
    expected = pixels_of(packed)
    flip(shards_of(home)[0] / PIXELS, 5)
    assert [(found.is_whole, found.num_damaged) for found in verify(home, untracked)] == [(True, 1)]
    assert [(found.is_whole, found.num_damaged) for found in verify(home, untracked)] == [(True, 0)], "it counts no more"
    with pytest.raises(DataError, match="1 images are damaged; prepare the images again"):
        open_packed(packed.index)
    assert pixels_of(source.build(home)) == expected


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda shard: (shard / MARKER).unlink(), "no marker"),
        (lambda shard: (shard / MARKER).write_text("{"), "half a marker"),
        (lambda shard: flip(shard / INDEX, 100), "an index of another digest"),
        (lambda shard: os.truncate(shard / PIXELS, 1_000), "a short file"),
        (lambda shard: (shard / PIXELS).unlink(), "no images"),
    ],
)
def test_a_shard_that_is_not_whole_does_not_exist(tmp_path: Path, damage: Callable[[Path], None], why: str) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    packed = source.build(home)
    expected = pixels_of(packed)
    damage(shards_of(home)[0])
    if why != "an index of another digest":  # the version's own index says where the images lie
        with pytest.raises(DataError, match="not whole; prepare the images again"):
            open_packed(packed.index)
    assert [found.is_whole for found in verify(home, untracked)] == [False], why
    assert pixels_of(source.build(home)) == expected, why


def test_a_broken_index_of_a_version_is_an_error_and_a_build_writes_it_anew(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    packed = source.build(home)
    packed.index.write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not an index of prepared images"):
        open_packed(packed.index)
    assert len(source.build(home)) == 5


def test_a_disk_that_fills_up_ends_the_build_and_keeps_what_was_whole(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 40), tmp_path / "home"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
        with pytest.raises(OSError, match="File too large"):
            source.build(home, shard_bytes=70_000)

    Source(source.folder, source.images[:3]).build(home)
    before = shards_of(home)
    assert status_of(in_a_process(limited)) == 0
    assert (
        shards_of(home) == before and not list(home.glob("*/shards/.*")) and len(list(home.glob("*/datasets/*.parquet"))) == 1
    )
    assert pixels_of(source.build(home)) == pixels_of(source.build(tmp_path / "alone"))


def test_what_would_not_fit_is_refused_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    monkeypatch.setattr(forecast.shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    with pytest.raises(
        StorageError, match=r"needs 16.8 MB for 5 images, 1.0 MB are free; .*prepare.cache: jpeg.*NIGHTOWL_HOME"
    ):
        source.build(home)
    assert not list(home.rglob(PIXELS)) and not list(home.rglob(DAMAGED))


CAPPED = """
import os, resource, sys
from dataclasses import replace
from pathlib import Path
import numpy as np
from tests.data.cache.caches import RAW, a_source
source, home = a_source(Path(sys.argv[1]), 60), Path(sys.argv[2])
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # one thread, one image under way
replace(source, images=source.images[:2]).build(home.with_name("first"))  # imports what it needs
status = Path("/proc/self/status").read_text().splitlines()
held = int(next(line for line in status if line.startswith("VmData:")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (held + 60_000_000, resource.RLIM_INFINITY))
packed = source.build(home, replace(RAW, image_size=1024), shard_bytes=100_000_000)
assert packed.num_bytes > 120_000_000
assert sum(int(packed.image(number).sum()) for number in range(len(packed))) > 0
try:
    np.ones(100_000_000, np.uint8)
except MemoryError:
    print("capped")
"""


def test_memory_does_not_grow_with_the_images_neither_in_building_nor_in_reading(tmp_path: Path) -> None:
    # In a process of its own: one forked from here begins with whatever other tests have left free in its heap.
    command = [sys.executable, "-c", CAPPED, str(tmp_path / "source"), str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "capped\n"


def test_an_image_is_checked_once_and_not_by_each_rank(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    packed = source.build(home)
    expected = pixels_of(packed)
    flip(shards_of(home)[0] / PIXELS, 5)
    again = source.build(home, check_after_seconds=600)
    assert pixels_of(again) != expected, "another rank relies on what was checked a moment ago"
    os.utime(checks_of(packed.index), (time.time() - 700,) * 2)
    assert pixels_of(source.build(home, check_after_seconds=600)) == expected


def test_checks_that_cannot_be_shared_are_made_by_each(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 5), tmp_path / "home"
    packed = source.build(home)
    expected = pixels_of(packed)
    flip(shards_of(home)[0] / PIXELS, 5)
    checks_of(packed.index).unlink()
    assert pixels_of(pickle.loads(pickle.dumps(packed))) == expected
    checks_of(packed.index).write_bytes(b"\1" * 4)
    assert pixels_of(pickle.loads(pickle.dumps(packed))) == expected, "those of another number of images"


def test_whatever_small_file_of_a_cache_is_damaged_the_pixels_are_the_same(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 8), tmp_path / "home"
    expected = pixels_of(source.build(home))
    (shard,) = shards_of(home)
    flip(shard / PIXELS, 0)
    assert pixels_of(source.build(home)) == expected  # from now on there is a list of damaged images
    assert pixels_of(source.build(home)) == expected
    draw = random.Random(0)
    files = [path.relative_to(home) for path in home.rglob("*") if path.is_file() and path.name != PIXELS]
    small = sorted(path for path in files if (home / path).stat().st_size)
    assert {path.name for path in small} >= {DAMAGED, INDEX, MARKER, KIND}
    for path in small:
        for number in range(12):
            again = shutil.copytree(home, tmp_path / f"{path.name}-{number}")
            content = bytearray((again / path).read_bytes())
            place = draw.randrange(len(content))
            content[place:] = [content[:0], content[place + 1 :], bytes([content[place] ^ 4]) + content[place + 1 :]][
                number % 3
            ]
            (again / path).write_bytes(content)
            prune(again, 1e9, None)
            verify(again, untracked)
            assert pixels_of(source.build(again)) == expected, (path, number)
            shutil.rmtree(again)


def test_a_clock_that_was_set_back_does_not_put_off_the_check_of_bytes(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 6), tmp_path / "home"
    built = source.build(home)
    expected, checks = pixels_of(built), checks_of(built.index)
    tomorrow = time.time() + 86_400
    os.utime(checks, (tomorrow, tomorrow))
    flip(shards_of(home)[0] / PIXELS, 0)
    assert pixels_of(source.build(home, check_after_seconds=600)) == expected
