import gc
import os
from pathlib import Path

import pytest

from nightowl.data.cache.place import LOCK, holding
from nightowl.data.cache.prune import Pruned, Stored, Version, plan_prune, prune
from nightowl.data.cache.verify import verify
from nightowl.progress import untracked
from tests.data.cache.caches import Source, a_source

DAY = 86_400.0
NOW = 1_000 * DAY


def version(name: str, days: float, *shards: str, is_open: bool = False) -> Version:
    return Version(Path(name), 1, 1, frozenset(map(Path, shards)), NOW - days * DAY, is_open)


def shard(name: str, days: float = 50) -> Stored:
    return Stored(Path(name), 10, NOW - days * DAY)


@pytest.mark.parametrize(
    ("versions", "shards", "max_bytes", "gone", "dropped", "why"),
    [
        ([], [], None, "", "", "nothing there"),
        ([version("a", 1, "1")], [shard("1")], None, "", "", "used lately"),
        ([version("a", 31, "1")], [shard("1")], None, "a", "1", "too old"),
        ([version("a", 31, "1", is_open=True)], [shard("1")], 0, "", "", "a reader has it open"),
        ([version("a", 0.01, "1")], [shard("1")], 0, "", "", "used within the hour"),
        ([version("a", 31, "1", "2"), version("b", 1, "2")], [shard("1"), shard("2")], None, "a", "1", "2 is shared"),
        ([version("a", 5, "1"), version("b", 6, "2")], [shard("1"), shard("2")], 10, "b", "2", "the least recently used"),
        ([version("a", 5, "1"), version("b", 6, "1")], [shard("1")], 10, "", "", "shared bytes count once"),
        ([version("a", 5, "1"), version("b", 6, "2")], [shard("1"), shard("2")], 0, "ba", "12", "all of it"),
        ([version("a", 5, "1")], [shard("1"), shard("2", 2)], None, "", "", "a killed build's, young"),
        ([version("a", 5, "1")], [shard("1"), shard("2", 31)], None, "", "2", "a killed build's, old"),
        ([version("a", 5, "1")], [shard("1"), shard("2", 2)], 10, "", "2", "a killed build's go before a version does"),
    ],
)
def test_what_goes(
    versions: list[Version], shards: list[Stored], max_bytes: int | None, gone: str, dropped: str, why: str
) -> None:
    found = plan_prune(versions, shards, NOW, 30 * DAY, max_bytes)
    assert ("".join(str(v.index) for v in found[0]), "".join(str(s.folder) for s in found[1])) == (gone, dropped), why


def aged(source: Source, home: Path, days: float) -> None:
    """Build it, as if that had been some days ago."""
    index = source.build(home).index
    gc.collect()
    moment = index.stat().st_mtime - days * DAY
    os.utime(index, (moment, moment))


def test_an_old_version_goes_and_what_a_newer_one_shares_stays(tmp_path: Path) -> None:
    home = tmp_path / "home"
    old, new = a_source(tmp_path / "source", 6), a_source(tmp_path / "source", 4, seed=1)
    aged(old, home, 40)
    aged(Source(new.folder, (*old.images[:1], *new.images)), home, 1)
    assert prune(home, 30 * DAY, None) == Pruned(num_versions=1)
    assert sum(found.num_images for found in verify(home, untracked)) == 10, "the old shard holds an image that the new needs"
    done = prune(home, 0.5 * DAY, None)
    assert (done.num_versions, done.num_shards) == (1, 2) and done.num_bytes > 0
    assert verify(home, untracked) == []


def test_what_a_reader_has_open_stays_until_it_is_closed(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 3), tmp_path / "home"
    aged(source, home, 40)
    packed = source.build(home)
    os.utime(packed.index, (0, 0))
    assert prune(home, DAY, 0) == Pruned()
    assert packed.image(0).size
    del packed
    gc.collect()
    assert prune(home, DAY, 0).num_versions == 1


def test_nothing_is_pruned_while_somebody_builds(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 3), tmp_path / "home"
    aged(source, home, 40)
    with holding(home / LOCK, exclusive=False):
        assert prune(home, DAY, None) == Pruned(was_busy=True)


def test_a_home_without_a_cache_has_nothing_to_prune(tmp_path: Path) -> None:
    assert prune(tmp_path / "none", DAY, None) == Pruned()
    assert not (tmp_path / "none").exists()


def test_an_index_that_cannot_be_read_goes_with_age_and_stops_nobody(tmp_path: Path) -> None:
    source, home = a_source(tmp_path / "source", 3), tmp_path / "home"
    packed = source.build(home)
    broken = packed.index.with_name("broken.parquet")
    broken.write_bytes(b"PAR1")
    assert prune(home, DAY, None) == Pruned()
    os.utime(broken, (0, 0))
    assert prune(home, DAY, None) == Pruned(num_versions=1)
    assert len(source.build(home)) == 3
