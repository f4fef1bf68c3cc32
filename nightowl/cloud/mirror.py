"""A remote prefix, mirrored: each pull that finds something new publishes a snapshot, a folder that never changes again.

    objects/            what was fetched, named by content; a killed pull goes on from here
    snapshots/000007/   files/ (hard links to objects) and listing.jsonl, published by one rename

A reader has the old snapshot or the new one, never half a pull. A pull that finds nothing new costs one listing. Snapshots
other than the newest two and those in use are removed by a later pull.
"""

import fcntl
import filecmp
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nightowl.cloud.bulk import fetch_all
from nightowl.cloud.listing import read_listing, write_listing
from nightowl.cloud.objects import ObjectStore, is_sound, make_folder
from nightowl.cloud.plan import Plan, plan_pull, side_by_side
from nightowl.cloud.storage import ObjectChanged, RemoteObject, Storage
from nightowl.errors import RemoteError, StorageError
from nightowl.progress import Track, track

ROUNDS = 3
KEPT_SNAPSHOTS = 2
SPARE_BYTES = 100_000_000
LISTING = "listing.jsonl"


class Moved(NamedTuple):
    """A number of files and of bytes, counted up one by one: a list of sizes would cost more than the plan."""

    num_files: int = 0
    num_bytes: int = 0

    def and_one(self, num_bytes: int | None) -> "Moved":
        """With a file of `num_bytes`; None stands for one that did not move."""
        return self if num_bytes is None else Moved(self.num_files + 1, self.num_bytes + num_bytes)


@dataclass(frozen=True)
class PullReport:
    """What a pull found and did. `folder` holds `num_files` of `num_bytes`; `fetched_*` is what moved."""

    url: str
    folder: Path
    num_files: int
    num_bytes: int
    fetched_files: int
    fetched_bytes: int
    added: int
    changed: int
    removed: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.url}: {self.num_files} files, {self.num_bytes:,} bytes; added {self.added}, changed {self.changed}, "
            f"removed {self.removed}; fetched {self.fetched_files} files, {self.fetched_bytes:,} bytes in {self.seconds:.1f} s"
        )


def pull(
    storage: Storage,
    root: Path,
    in_use: Callable[[], Path | None] = lambda: None,
    progress: Track = track,
    verify: bool = False,
) -> PullReport:
    """Bring the mirror at `root` to what `storage` holds now; waits for another pull into it.

    `in_use` says which snapshot's files somebody reads, so that they stay. `verify` reads every file of the newest snapshot
    again, and publishes another one without the damage that ETags can tell (those that are an MD5).

    Raises:
        RemoteError: by the storage; when it is empty; when it goes on changing while it is pulled.
        StorageError: before anything is fetched, when it would not fit on the disk.
    """
    begun = time.monotonic()
    with _alone(root):
        for _ in range(ROUNDS):
            try:
                return _pull(storage, root, in_use, progress, verify, begun)
            except ObjectChanged as error:
                last = error
    raise RemoteError(f"{last}; listed {ROUNDS} times, and each time something changed meanwhile: pull when nobody is writing")


def newest(root: Path) -> Path | None:
    """The newest snapshot's folder (with `files` and `listing.jsonl` in it), or None before the first pull."""
    return max((root / "snapshots").glob("[0-9]*"), default=None, key=lambda path: int(path.name))


def store_of(root: Path) -> ObjectStore:
    """The objects of the mirror at `root`."""
    return ObjectStore(root / "objects", root / "arriving")


def _pull(
    storage: Storage, root: Path, in_use: Callable[[], Path | None], progress: Track, verify: bool, begun: float
) -> PullReport:
    objects = store_of(root)
    objects.prepare()
    scratch = root / "incomplete"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    listing = scratch / LISTING
    write_listing(listing, progress(storage.list(), f"listing {storage.url}"), storage.url)
    if listing.stat().st_size == 0:
        raise RemoteError(f"{storage.url}: no objects there; check the bucket and the prefix (the mirror stays as it is)")
    before = newest(root)
    plan = plan_pull(read_listing(listing), _listed(before))
    damaged = _drop_damaged(before, objects, progress) if before and verify else 0
    fetched = Moved()
    if before is None or damaged or not filecmp.cmp(listing, before / LISTING, shallow=False):
        _check_room(storage, plan, root)
        todo = _lacking(listing, before, objects)
        moved = progress(fetch_all(storage, objects, todo), f"pulling {storage.url}", plan.added + plan.changed + damaged)
        for num_bytes in moved:
            fetched = fetched.and_one(num_bytes)
        _link_all(objects, scratch, progress)
        before = _publish(scratch, root)
        _prune(root, objects, in_use())
    return _report(storage.url, before, plan, fetched, time.monotonic() - begun)


def _listed(snapshot: Path | None) -> Iterable[RemoteObject]:
    return read_listing(snapshot / LISTING) if snapshot else ()


def _check_room(storage: Storage, plan: Plan, root: Path) -> None:
    free = shutil.disk_usage(root).free
    if plan.num_bytes + SPARE_BYTES > free:
        raise StorageError(
            f"{root}: pulling {storage.url} needs {plan.num_bytes:,} bytes and {SPARE_BYTES:,} to spare, "
            f"and {free:,} are free: free some space or set NIGHTOWL_HOME to a larger disk"
        )


def _lacking(listing: Path, before: Path | None, objects: ObjectStore) -> Iterator[RemoteObject]:
    """What has to be looked at: all that is not in the snapshot before, whose objects were on disk when it was published, and
    what has gone from the store since."""
    for now, known in side_by_side(read_listing(listing), _listed(before)):
        if now and (now != known or not os.path.exists(objects.path(now))):
            yield now


def _link_all(objects: ObjectStore, scratch: Path, progress: Track) -> None:
    """Fill the snapshot."""
    made = set()
    for found in progress(read_listing(scratch / LISTING), "linking"):
        target = f"{scratch}/files/{found.key}"
        folder = target.rpartition("/")[0]
        if folder not in made:
            made.add(folder)
            make_folder(folder, found)
        objects.link(found, target)


def _publish(scratch: Path, root: Path) -> Path:
    """The rename is what makes the snapshot; its content is on disk before."""
    before = newest(root)
    target = root / "snapshots" / f"{int(before.name) + 1 if before else 1:06}"
    target.parent.mkdir(exist_ok=True)
    os.sync()
    scratch.rename(target)
    return target


def _prune(root: Path, objects: ObjectStore, in_use: Path | None) -> None:
    numbered = sorted((root / "snapshots").glob("[0-9]*"), key=lambda path: int(path.name))
    for old in numbered[:-KEPT_SNAPSHOTS]:
        if in_use is None or not in_use.is_relative_to(old.resolve()):
            going = root / "incomplete"
            old.rename(going)  # whoever looks for it finds it whole or not at all
            shutil.rmtree(going)
    objects.drop_unlinked()


def _drop_damaged(snapshot: Path, objects: ObjectStore, progress: Track) -> int:
    """Forget the objects whose file in the snapshot is not what its ETag says; returns their number."""

    def damaged(found: RemoteObject) -> bool:
        return not is_sound(f"{snapshot}/files/{found.key}", found)

    rows = progress(read_listing(snapshot / LISTING), "verifying")
    gone = [found for found in rows if damaged(found)]
    for found in gone:
        Path(objects.path(found)).unlink(missing_ok=True)
    return len(gone)


def _report(url: str, snapshot: Path, plan: Plan, fetched: Moved, seconds: float) -> PullReport:
    there = Moved()
    for found in read_listing(snapshot / LISTING):
        there = there.and_one(found.num_bytes)
    return PullReport(
        url=url,
        folder=snapshot / "files",
        num_files=there.num_files,
        num_bytes=there.num_bytes,
        fetched_files=fetched.num_files,
        fetched_bytes=fetched.num_bytes,
        added=plan.added,
        changed=plan.changed,
        removed=plan.removed,
        seconds=seconds,
    )


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Hold the mirror's lock, which goes with the process; says so when it has to wait for another's."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another pull into {root} is running: waiting for it to end", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
