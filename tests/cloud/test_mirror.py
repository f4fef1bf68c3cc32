import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import pytest

from nightowl.cloud.mirror import PullReport, newest, pull
from nightowl.cloud.s3 import S3Storage
from nightowl.cloud.storage import FolderStorage
from nightowl.errors import RemoteError, StorageError
from nightowl.progress import untracked
from tests.cloud.conftest import hasty
from tests.cloud.object_server import ObjectServer, serving


def contents(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def counts(report: PullReport) -> tuple[int, int, int, int]:
    return report.fetched_files, report.added, report.changed, report.removed


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "source", a="one", b="two", c="three")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def pull_folder(source: Path, root: Path, verify: bool = False) -> PullReport:
    return pull(FolderStorage(source), root, progress=untracked, verify=verify)


def test_a_pull_is_a_folder_with_what_is_there(source: Path, root: Path) -> None:
    report = pull_folder(source, root)
    assert contents(report.folder) == contents(source)
    assert (report.num_files, report.num_bytes, report.fetched_bytes) == (3, 11, 11)
    assert counts(report) == (3, 3, 0, 0)
    assert "3 files, 11 bytes; added 3, changed 0, removed 0; fetched 3 files" in str(report)


def test_only_what_changed_moves_and_what_was_read_before_stays_as_it_was(source: Path, root: Path) -> None:
    before = pull_folder(source, root)
    write(source, b="zwei", d="four").joinpath("c").unlink()
    report = pull_folder(source, root)
    assert counts(report) == (2, 1, 1, 1)
    assert contents(report.folder) == {"a": "one", "b": "zwei", "d": "four"}
    assert contents(before.folder) == {"a": "one", "b": "two", "c": "three"}
    assert (report.folder / "a").stat().st_ino == (before.folder / "a").stat().st_ino


def test_a_renamed_object_does_not_move(source: Path, root: Path) -> None:
    pull_folder(source, root)
    (source / "a").rename(source / "renamed")
    assert counts(pull_folder(source, root)) == (0, 1, 0, 1)


def test_a_pull_with_nothing_new_is_one_listing(server: ObjectServer, bucket: S3Storage, root: Path) -> None:
    for number in range(5):
        server.put(f"data/{number}", b"x" * number)
    first = pull(bucket, root, progress=untracked)
    server.requests.clear()
    again = pull(bucket, root, progress=untracked)
    assert server.requests == {"": 1}
    assert again.folder == first.folder
    assert counts(again) == (0, 0, 0, 0)


def test_an_empty_prefix_is_an_error_and_the_mirror_stays(source: Path, root: Path) -> None:
    report = pull_folder(source, root)
    shutil.rmtree(source)
    source.mkdir()
    with pytest.raises(RemoteError, match="no objects there; check the bucket and the prefix"):
        pull_folder(source, root)
    assert newest(root) == report.folder.parent


def test_the_newest_two_snapshots_and_the_one_in_use_are_kept(source: Path, root: Path) -> None:
    reports = [pull_folder(source, root)]
    in_use: list[Path | None] = [reports[0].folder]
    for number in range(4):
        write(source, a=f"number {number}")
        reports.append(pull(FolderStorage(source), root, lambda: in_use[0], progress=untracked))
    assert [report.folder.exists() for report in reports] == [True, False, False, True, True]
    write(source, a="the last")
    pull_folder(source, root)
    assert not reports[0].folder.exists()
    assert {path.read_text() for path in (root / "objects").glob("??/*")} == {"two", "three", "number 3", "the last"}


def test_a_snapshot_cannot_be_written_into_by_accident(source: Path, root: Path) -> None:
    assert (pull_folder(source, root).folder / "a").stat().st_mode & 0o222 == 0


def test_damage_is_found_and_repaired_when_asked_for(source: Path, root: Path) -> None:
    damaged = pull_folder(source, root).folder / "b"
    damaged.chmod(0o644)
    damaged.write_text("tvo")
    assert pull_folder(source, root).fetched_files == 0
    repaired = pull_folder(source, root, verify=True)
    assert repaired.fetched_files == 1
    assert contents(repaired.folder) == contents(source)


def test_an_object_missing_from_the_store_is_fetched_again(source: Path, root: Path) -> None:
    pull_folder(source, root)
    shutil.rmtree(root / "objects")
    write(source, d="four")
    report = pull_folder(source, root)
    assert report.fetched_files == 4
    assert contents(report.folder) == contents(source)


def test_a_file_that_is_also_a_folder_is_refused_and_nothing_is_published(
    server: ObjectServer, bucket: S3Storage, root: Path
) -> None:
    server.put("data/a", b"file")
    server.put("data/a/b", b"in a folder of that name")
    with pytest.raises(RemoteError, match="a/b: another object has this name"):
        pull(bucket, root, progress=untracked)
    assert newest(root) is None


def test_an_object_that_vanishes_during_a_pull_means_another_listing(
    server: ObjectServer, bucket: S3Storage, root: Path
) -> None:
    server.put("data/stays", b"1")
    server.put("data/goes", b"2")

    def go(key: str, attempt: int) -> None:
        if key == "data/goes" and key in server.objects:
            server.remove(key)

    server.fault_of = go
    assert contents(pull(bucket, root, progress=untracked).folder) == {"stays": "1"}
    assert server.requests[""] == 2


def test_a_bucket_that_never_rests_ends_in_an_error(server: ObjectServer, bucket: S3Storage, root: Path) -> None:
    numbers = itertools.count()
    server.put("data/busy", b"0")

    def replace(key: str, attempt: int) -> None:
        if key:
            server.put(key, b"%d" % next(numbers))

    server.fault_of = replace
    with pytest.raises(RemoteError, match=r"data/busy: changed since .*listed 3 times"):
        pull(bucket, root, progress=untracked)
    assert newest(root) is None


def test_what_would_not_fit_is_refused_before_anything_moves(source: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1, 1, 100_000_010))
    with pytest.raises(StorageError, match=r"needs 11 bytes and 100,000,000 to spare, and 100,000,010 are free"):
        pull_folder(source, root)
    assert list((root / "objects").glob("??/*")) == []


PULLING = """
import sys
from pathlib import Path
from nightowl.cloud.mirror import pull
from nightowl.cloud.s3 import S3Storage
from nightowl.cloud.s3_access import Access
from nightowl.cloud.storage import Place
print(pull(S3Storage(Place("bucket", "data/"), Access(sys.argv[1])), Path(sys.argv[2])))
"""


def a_pulling_process(endpoint: str, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PULLING, endpoint, str(root)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fill(server: ObjectServer, number: int) -> dict[str, bytes]:
    draw = random.Random(0)
    wanted = {f"{n % 7}/{n:04}": draw.randbytes(2000) for n in range(number)}
    for key, body in wanted.items():
        server.put(f"data/{key}", body)
    return wanted


def as_pulled(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_pull_that_is_killed_again_and_again_goes_on_and_ends_whole(root: Path) -> None:
    with serving(ObjectServer(latency_seconds=0.05)) as server:
        wanted, seed = fill(server, 1500), random.randrange(1000)
        draw, kills = random.Random(seed), 0
        for _ in range(3):
            process = a_pulling_process(server.endpoint, root)
            before, deadline = sum(server.requests.values()), time.monotonic() + 30
            until = before + draw.randrange(1, 600)
            while sum(server.requests.values()) < until and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
            process.communicate()
            assert newest(root) is None or as_pulled(newest(root) / "files") == wanted, f"seed {seed}"  # type: ignore[operator]
        ours = pull(hasty(server.endpoint), root, progress=untracked)
        assert as_pulled(ours.folder) == wanted, f"seed {seed}"
        fetched = sum(count for key, count in server.requests.items() if key)
        assert fetched <= 1500 + kills * 64 * 4, "what had arrived was not fetched again"


def test_two_pulls_at_once_are_one_after_the_other(root: Path) -> None:
    with serving(ObjectServer()) as server:
        wanted, may_go = fill(server, 300), threading.Event()
        server.fault_of = lambda key, attempt: "slow_down" if key and not may_go.is_set() else None
        first = a_pulling_process(server.endpoint, root)
        while not server.requests and first.poll() is None:
            time.sleep(0.01)
        second = a_pulling_process(server.endpoint, root)
        assert second.stderr is not None
        assert "waiting for it to end" in second.stderr.readline()
        may_go.set()
        ends = [process.communicate(timeout=60) for process in (first, second)]
        assert [process.returncode for process in (first, second)] == [0, 0], ends
        assert re.search(r"added 0, changed 0, removed 0; fetched 0 files", ends[1][0])
        found = newest(root)
        assert found is not None
        assert found.name == "000001"
        assert as_pulled(found / "files") == wanted


def test_an_interrupted_pull_does_not_wait_for_a_server_that_says_slow_down(root: Path) -> None:
    with serving(ObjectServer()) as server:
        fill(server, 100)
        server.fault_of = lambda key, attempt: "slow_down" if key else None
        process = a_pulling_process(server.endpoint, root)
        deadline = time.monotonic() + 30
        while len(server.requests) < 10 and time.monotonic() < deadline:
            time.sleep(0.01)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        assert "KeyboardInterrupt" in said
        assert time.monotonic() - begun < 10


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone", "binary", "another order"])
def test_a_damaged_listing_of_the_snapshot_before_costs_no_byte_and_no_pull(source: Path, root: Path, damage: str) -> None:
    first = pull_folder(source, root)
    listing = first.folder.parent / "listing.jsonl"
    content = listing.read_bytes()
    damages = {
        "flipped": content.replace(b'"', b"#", 1),
        "cut": content[: len(content) // 2],
        "gone": None,
        "binary": bytes(range(256)),
        "another order": b"".join(reversed(content.splitlines(keepends=True))),
    }
    listing.unlink()
    if damages[damage] is not None:
        listing.write_bytes(damages[damage] or b"")
    (root / "snapshots" / "000001.bak").mkdir()
    for verify in (False, True):
        again = pull_folder(source, root, verify)
        assert contents(again.folder) == contents(source)
        assert again.fetched_files == 0
