"""A remote prefix, mirrored: each pull that finds something new publishes a snapshot, a folder that never changes again.

    objects/            what was fetched, named by content; a killed pull goes on from here
    snapshots/000007/   files/ (hard links to objects) and listing.jsonl, published by one rename

A reader has the old snapshot or the new one, never half a pull. A pull that finds nothing new costs one listing. Snapshots
other than the newest two and those in use are removed by a later pull.
"""

import filecmp
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nightowl.cloud.bulk import fetch_all
from nightowl.cloud.listing import Amount, is_listing, read_listing, write_listing
from nightowl.cloud.lock import alone
from nightowl.cloud.objects import ObjectStore, is_sound, make_folder
from nightowl.cloud.plan import Plan, plan_pull, side_by_side
from nightowl.cloud.storage import ObjectChanged, RemoteObject, Storage
from nightowl.errors import RemoteError, StorageError
from nightowl.progress import Track, track

ROUNDS = 3
KEPT_SNAPSHOTS = 2
SPARE_BYTES = 100_000_000
LISTING = "listing.jsonl"


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
    with alone(root):
        for _ in range(ROUNDS):
            try:
                return _pull(storage, root, in_use, progress, verify, begun)
            except ObjectChanged as error:
                last = error
    raise RemoteError(f"{last}; listed {ROUNDS} times, and each time something changed meanwhile: pull when nobody is writing")


def newest(root: Path) -> Path | None:
    """The newest snapshot's folder (with `files` and `listing.jsonl` in it), or None before the first pull."""
    return max(_numbered(root), default=None, key=lambda path: int(path.name))


def _numbered(root: Path) -> list[Path]:
    """All snapshots; what else somebody put beside them is passed over."""
    return [path for path in (root / "snapshots").glob("[0-9]*") if path.name.isdecimal()]


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
    there = write_listing(listing, progress(storage.list(), f"listing {storage.url}"), storage.url)
    if there == Amount():
        raise RemoteError(f"{storage.url}: no objects there; check the bucket and the prefix (the mirror stays as it is)")
    before, fetched, plan = newest(root), Amount(), Plan()
    same = before is not None and _are_equal(listing, before / LISTING)
    if before and not same and not is_listing(before / LISTING):
        before = None  # damaged: as if nothing had been pulled; the objects that are here stay, where they are sound
        _forget_unsound(listing, objects, progress)
    damaged = _drop_damaged(before, objects, progress) if before and verify else 0
    if before is None or damaged or not same:
        plan = plan_pull(read_listing(listing), _listed(before))
        if not _by_links(storage, listing, root):
            check_room(storage.url, plan.num_bytes, root)
        todo = _lacking(listing, before, objects)
        moved = progress(fetch_all(storage, objects, todo), f"pulling {storage.url}", plan.added + plan.changed + damaged)
        for num_bytes in moved:
            fetched = fetched.and_one(num_bytes)
        _link_all(objects, scratch, progress)
        before = _publish(scratch, root)
        _prune(root, objects, in_use())
    return _report(storage.url, before, there, plan, fetched, time.monotonic() - begun)


def _forget_unsound(listing: Path, objects: ObjectStore, progress: Track) -> None:
    """Remove the objects that are not what the listing says."""
    for found in progress(read_listing(listing), "verifying"):
        if not is_sound(objects.path(found), found):
            Path(objects.path(found)).unlink(missing_ok=True)


def _are_equal(listing: Path, before: Path) -> bool:
    return before.exists() and filecmp.cmp(listing, before, shallow=False)


def _listed(snapshot: Path | None) -> Iterable[RemoteObject]:
    return read_listing(snapshot / LISTING) if snapshot else ()


def _by_links(storage: Storage, listing: Path, root: Path) -> bool:
    """Are its files linked to where they are, so that they take no room?"""
    local = storage.local(next(iter(read_listing(listing))))
    return local is not None and os.stat(local).st_dev == os.stat(root).st_dev


def check_room(url: str, num_bytes: int, root: Path) -> None:
    """Raises StorageError when `num_bytes` would not fit on the disk that `root` is on."""
    free = shutil.disk_usage(root).free
    if num_bytes + SPARE_BYTES > free:
        raise StorageError(
            f"{root}: pulling {url} needs {num_bytes:,} bytes and {SPARE_BYTES:,} to spare, "
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
    numbered = sorted(_numbered(root), key=lambda path: int(path.name))
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


def _report(url: str, snapshot: Path, there: Amount, plan: Plan, fetched: Amount, seconds: float) -> PullReport:
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
