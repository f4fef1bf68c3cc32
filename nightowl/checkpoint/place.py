"""Where checkpoints lie: the folder in the home, or the folder or S3 prefix that the settings name, one part a detector and in
it one a training.

What was begun with other data, params or code has a part of its own: it is not gone on from, and what differs is said. A
finished training stays until the detector trains anew, so that a failure after it costs no training.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nightowl.checkpoint.commits import COMMITS, IDENTITY, newest_first
from nightowl.checkpoint.copies import commit_names, identity_in, read_commits, remove_all
from nightowl.checkpoint.identity import Identity, differences
from nightowl.checkpoint.plan import Keep
from nightowl.checkpoint.run import Run, Say
from nightowl.cloud.bucket import Bucket, FolderBucket
from nightowl.cloud.s3_bucket import S3Bucket
from nightowl.cloud.storage import SCHEME, parse_url
from nightowl.errors import SettingsError, StageFailed
from nightowl.settings import Settings, home_of

_ABANDONED_SECONDS = 30 * 24 * 3600
_LOCK = ".lock"


@contextmanager
def checkpoint_run(settings: Settings, detector: str, identity: Identity, say: Say) -> Iterator[Run]:
    """Yield the checkpoints of the training `identity` of `detector`, for this process to write; old trainings are removed.

    Raises:
        StageFailed: when another process of this machine trains it now. CheckpointError, RemoteError: as by Run.
    """
    local, mirror = places(settings, detector)
    keep = Keep(settings.checkpoint_keep, settings.checkpoint_keep_every_epochs)
    key = identity.key()
    with held(local.path(key)) as is_held:
        if not is_held:
            raise StageFailed(
                f"{local.path(key)}: this very training is running in another process; wait for it, or stop it first"
            )
        _look_at_others(local, identity, say)
        if mirror is not None:
            _remove_finished(mirror, key)
        for place in (local.under(key), *([mirror.under(key)] if mirror else [])):
            _mend_identity(place, identity, say)
        yield Run(local.under(key), mirror.under(key) if mirror else None, identity, keep, say)


def places(settings: Settings, detector: str) -> tuple[FolderBucket, Bucket | None]:
    """The folder that a detector's checkpoints are written to, and the bucket that mirrors it, if one does."""
    named, local = settings.checkpoints, FolderBucket(local_place(settings, detector))
    if named is None or "://" not in named:
        return local, None
    if not named.startswith(SCHEME):
        raise SettingsError(f"checkpoints: {named}: expected a folder or {SCHEME}BUCKET/PREFIX")
    return local, S3Bucket(parse_url(named), settings.s3_endpoint).under(detector)


def local_place(settings: Settings, detector: str) -> Path:
    """The folder that a detector's checkpoints are written to, one folder in it a training."""
    named = settings.checkpoints
    return (home_of(settings) / "checkpoints" if named is None or "://" in named else Path(named)) / detector


@contextmanager
def held(run: Path) -> Iterator[bool]:
    """Hold the run's lock; yields False when another process does. The system lets go of it however the holder ends."""
    run.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(run / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        yield False
        return
    try:
        yield True
    finally:
        os.close(descriptor)


def _mend_identity(place: Bucket, identity: Identity, say: Say) -> None:
    """Write the identity anew where it is not that of the key which the place is named after: then it is damaged. What the
    commits there belong to, each of them says itself."""
    there = identity_in(place)
    if there is not None and there.key() != identity.key():
        say(f"{place.url}{IDENTITY}: damaged, and written anew")
        place.put(IDENTITY, identity.model_dump_json(indent=2).encode())


def _look_at_others(local: FolderBucket, identity: Identity, say: Say) -> None:
    """Remove trainings that are finished, or that nobody has touched for a month, unless a process holds them; of one that is
    not finished, say why it is not gone on from."""
    for other in sorted(local.root.iterdir()):
        if other.name == identity.key() or not other.is_dir():
            continue
        with held(other) as is_held:
            if not is_held:
                continue
            bucket = FolderBucket(other)
            newest = next(iter(read_commits(bucket)), None)
            if (newest and newest.moment.finished) or time.time() - _touched(other) > _ABANDONED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
                continue
            before = identity_in(bucket)
            if before is not None and newest is not None:
                why = "; ".join(differences(before, identity))
                say(f"a training interrupted after step {newest.moment.step} is not gone on from: {why}")


def _touched(run: Path) -> float:
    """When something was last put there or removed, seconds since 1970."""
    return max(folder.stat().st_mtime for folder in (run, *filter(Path.is_dir, run.iterdir())))


def _remove_finished(mirror: Bucket, key: str) -> None:
    """Remove other trainings from the mirror that are finished; what is not may be going on elsewhere."""
    found = [each.key.partition("/") for each in mirror.list()]
    for other in sorted({name for name, _, inside in found if name != key and inside.startswith(COMMITS)}):
        run = mirror.under(other)
        newest = next(iter(read_commits(run)), None) if newest_first(set(commit_names(run))) else None
        if newest is not None and newest.moment.finished:
            remove_all(run)
