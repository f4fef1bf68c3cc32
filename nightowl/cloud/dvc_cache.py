"""DVC's cache, filled from its remote with many objects in flight instead of one by one, and what it holds as a storage.

The layout stays DVC's (`files/md5/aa/bb…`, read-only, the list of a folder's files last), so that `dvc status` and
`dvc checkout` find what they expect. An object appears by one rename, verified; a fill that was killed goes on from there.
"""

import io
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import IO

from nightowl.cloud.bulk import fetch_all
from nightowl.cloud.dvc_config import opener, read_config
from nightowl.cloud.dvc_list import rows_of
from nightowl.cloud.dvc_tracked import Tracked
from nightowl.cloud.listing import Amount
from nightowl.cloud.lock import alone
from nightowl.cloud.mirror import PullReport, check_room, pull, store_of
from nightowl.cloud.objects import ObjectStore, is_sound
from nightowl.cloud.storage import FolderStorage, NamedByContent, ObjectChanged, RemoteObject, Storage, Wanted
from nightowl.errors import RemoteLacks
from nightowl.progress import Track, track

_OURS = "nightowl"
Trusted = Callable[[RemoteObject], bool]


def pull_tracked(
    tracked: Tracked,
    root: Path,
    in_use: Callable[[], Path | None] = lambda: None,
    progress: Track = track,
    verify: bool = False,
) -> PullReport:
    """Have the folder in DVC's cache, and bring the mirror at `root` to it: see `mirror.pull`. `verify` reads all of it again.

    Raises:
        DataError: for a remote that is not read here, or a list of files that cannot be one.
        RemoteError: by the remote; RemoteLacks when it lacks something.
        StorageError: before anything is fetched, when it would not fit on the disk.
    """
    begun = monotonic()
    config = read_config(tracked.repo)
    open_remote, mirrored = opener(config, tracked.remote), store_of(root)
    with alone(config.cache / "files" / _OURS):
        cached = CachedFolder(tracked, config.cache)
        fetched = cached.fill(open_remote, lambda found: not verify and os.path.exists(mirrored.path(found)), progress)
        report = pull(cached, root, in_use, progress, verify)
    return replace(report, fetched_files=fetched.num_files, fetched_bytes=fetched.num_bytes, seconds=monotonic() - begun)


def fetch_tracked(tracked: Tracked, progress: Track = track) -> Amount:
    """Have the folder in DVC's cache, every file of it compared with its MD5; returns what moved. Raises as `pull_tracked`;
    without a remote RemoteLacks, when the cache has not got all of it."""
    config = read_config(tracked.repo)
    open_remote = opener(config, tracked.remote) if tracked.remote or config.has_remote else _no_remote
    with alone(config.cache / "files" / _OURS):
        return CachedFolder(tracked, config.cache).fill(open_remote, lambda found: False, progress)


def _no_remote() -> Storage:
    raise RemoteLacks("DVC's cache has not got it, and there is no remote")


class CachedFolder:
    """A tracked folder as a storage: its files are those of the cache, under the names that DVC recorded."""

    def __init__(self, tracked: Tracked, cache: Path) -> None:
        self._tracked, self._cache, self._files = tracked, cache, FolderStorage(cache)
        self._objects = ObjectStore(cache / "files" / "md5", cache / "files" / _OURS / "arriving", _name_in_cache)
        self._list = NamedByContent(f"{_key(tracked.md5)}.dir", tracked.md5)

    @property
    def url(self) -> str:
        return f"dvc:{self._tracked.path}"

    def fill(self, open_remote: Callable[[], Storage], trusted: Trusted, progress: Track) -> Amount:
        """Have everything in the cache; returns what moved. What is there already is read again unless it is `trusted`.

        The remote is opened when something is wanted from it, so with nothing to do nobody is asked.
        """
        if self._objects.has(self._list):
            text, fetched = Path(self._objects.path(self._list)).read_text(encoding="utf-8"), Amount()
        else:
            text = self._download_list(open_remote())
            fetched = Amount(1, len(text.encode()))
        lacking, there = self._lacking(text, trusted)
        if lacking or fetched.num_files:
            self._objects.prepare()
            check_room(self.url, max(0, (self._tracked.num_bytes or 0) - there), self._cache)
            for num_bytes in self._fetch_all(lacking, open_remote, progress):
                fetched = fetched.and_one(num_bytes)
            os.sync()  # DVC trusts what is read-only: it must not find, after a power cut, what is not whole
            self._objects.put(self._list, memoryview(text.encode()))
        return fetched

    def list(self) -> Iterator[RemoteObject]:
        text = Path(self._objects.path(self._list)).read_text(encoding="utf-8")
        for row in sorted(f"{path}\0{md5}" for path, md5 in rows_of(text, self.url)):  # a third of what pairs would take
            path, _, md5 = row.partition("\0")
            num_bytes = _size(self._path(md5))
            if num_bytes is None:
                raise ObjectChanged(f"{self.url}/{path}: gone from DVC's cache")
            yield RemoteObject(path, num_bytes, md5)

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        assert wanted.md5 is not None
        self._files.download(NamedByContent(_key(wanted.md5), wanted.md5), file)

    async def read(self, wanted: Wanted) -> None:
        return None

    def local(self, wanted: Wanted) -> str:
        assert wanted.md5 is not None
        return self._path(wanted.md5)

    def give_up(self) -> None:
        pass

    def _path(self, md5: str) -> str:
        return self._objects.path(NamedByContent(_key(md5), md5))

    def _lacking(self, text: str, trusted: Trusted) -> tuple[bytearray, int]:
        """The MD5s of what is missing or damaged, 16 bytes each, and how many bytes are there."""
        lacking, there = bytearray(), 0
        for path, md5 in rows_of(text, self.url):
            num_bytes = _size(self._path(md5))
            found = RemoteObject(path, num_bytes or 0, md5)
            if num_bytes is not None and (trusted(found) or is_sound(self._path(md5), found)):
                there += num_bytes
            else:
                lacking += bytes.fromhex(md5)
        return lacking, there

    def _download_list(self, remote: Storage) -> str:
        file = io.BytesIO()
        with self._explained(remote):
            remote.download(self._list, file)
        return file.getvalue().decode()

    def _fetch_all(self, lacking: bytearray, open_remote: Callable[[], Storage], progress: Track) -> Iterator[int | None]:
        if not lacking:
            return
        remote, md5s = open_remote(), (lacking[at : at + 16].hex() for at in range(0, len(lacking), 16))
        todo: Iterable[Wanted] = (NamedByContent(_key(md5), md5) for md5 in md5s)
        with self._explained(remote):
            yield from progress(fetch_all(remote, self._objects, todo), f"pulling {self.url}", len(lacking) // 16)

    @contextmanager
    def _explained(self, remote: Storage) -> Iterator[None]:
        try:
            yield
        except ObjectChanged as error:
            raise RemoteLacks(
                f"{error}; {self._tracked.path} needs it, and {remote.url} lacks it or has it damaged: "
                "dvc push where the data was added"
            ) from error


def _key(md5: str) -> str:
    return f"files/md5/{md5[:2]}/{md5[2:]}"


def _name_in_cache(wanted: Wanted) -> str:
    return wanted.key.removeprefix("files/md5/")


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None
