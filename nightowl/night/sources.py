"""The data source of a detector as a folder here and now: its own, or the newest snapshot of its mirror after a pull."""

from dataclasses import dataclass
from pathlib import Path

from nightowl.cloud.dvc_cache import pull_tracked
from nightowl.cloud.dvc_tracked import tracked_folder
from nightowl.cloud.mirror import PullReport, pull
from nightowl.cloud.storage import parse_url
from nightowl.data.source import (
    absolute_source,
    is_remote,
    mirror_root,
    pin_snapshot,
    pinned_snapshot,
    record_source,
    source_folder,
    source_of,
    tracked_path,
)
from nightowl.data.stat_cache import load_known, save_known
from nightowl.errors import DataError
from nightowl.settings import Settings, home_of


@dataclass(frozen=True)
class LocalSource:
    """A source by the name it is remembered under, the folder it is in, and what pulling it found, where it is remote."""

    name: str
    folder: Path
    pulled: PullReport | None


def fetch_source(settings: Settings, detector: str, named: str | None = None) -> LocalSource:
    """The data of `detector`, from `named` or else from where it was said to lie; pulled first when that is an address.

    Raises:
        DataError: when nobody said where it lies, or there is nothing.
        SettingsError, RemoteError, StorageError: when an address cannot be pulled.
    """
    name = absolute_source(named) if named else source_of(settings, detector)
    if not is_remote(name):
        return LocalSource(name, Path(name) if named else source_folder(settings, detector), None)
    report = pull_source(settings, detector, name)
    return LocalSource(name, report.folder, report)


def pull_source(settings: Settings, detector: str, url: str, verify: bool = False) -> PullReport:
    """Bring the mirror of `detector` to what is at `url` (s3:// or dvc:) now. What the stages read stays what was pinned.

    Raises:
        DataError: when `url` is a folder.
        SettingsError, RemoteError, StorageError: by `pull` and its storage.
    """
    if not is_remote(url):
        raise DataError(f"{detector}: its data lies in {url}, which is here already; only s3:// and dvc: sources are pulled")
    root, path = mirror_root(settings, detector), tracked_path(url)
    if path is not None:
        return pull_tracked(tracked_folder(path), root, lambda: pinned_snapshot(settings, detector), verify=verify)
    from nightowl.cloud.s3 import S3Storage  # boto3 takes a while to import, and the others do without it
    from nightowl.cloud.s3_access import Access

    storage = S3Storage(parse_url(url), Access(settings.s3_endpoint))
    return pull(storage, root, lambda: pinned_snapshot(settings, detector), verify=verify)


def remember_source(settings: Settings, detector: str, source: LocalSource, named: bool) -> None:
    """Let the stages read this source from now on; `named`: it was given for this time, and is to be the usual one."""
    if named:
        record_source(settings, detector, source.name)
    if source.pulled:
        pin_snapshot(settings, detector, source.folder)


def carry_known(settings: Settings, detector: str, source: LocalSource) -> None:
    """Keep what pinning knows of files that the new snapshot shares with the pinned one, so that they are not read again."""
    before, cache = pinned_snapshot(settings, detector), pins_cache(settings, detector)
    if not source.pulled or before is None or before == source.folder.resolve():
        return
    known = load_known(cache, before)
    shared = {path: facts for path, facts in known.items() if _same_file(before / path, source.folder / path)}
    if shared:
        save_known(cache, source.folder, shared)


def pins_cache(settings: Settings, detector: str) -> Path:
    """Where pinning remembers the files it has read."""
    return home_of(settings) / "pins" / f"{detector}.json"


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return False
