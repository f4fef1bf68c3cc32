"""Where the caches of a home lie, and the locks that builders, readers and pruning hold; all are the kernel's and go with
their process."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import cv2
import PIL

from nightowl.data.cache.forms import Form
from nightowl.errors import DataError
from nightowl.files import canonical_json, sha256_bytes, write_atomic

FORMAT = 1
FOLDER = "prepared"
KIND = "kind.json"
LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Place:
    """A cache of one kind: `shards/` with the images and `datasets/` with an index for each dataset version."""

    folder: Path

    @property
    def shards(self) -> Path:
        return self.folder / "shards"

    @property
    def datasets(self) -> Path:
        return self.folder / "datasets"

    def index(self, key: str) -> Path:
        """The index of a dataset version."""
        return self.datasets / f"{key}.parquet"

    def form(self) -> Form:
        """Raises DataError when it cannot be read."""
        path = self.folder / KIND
        try:
            values = json.loads(path.read_bytes())
            if values["format"] != FORMAT or values["form"] not in ("raw", "jpeg"):
                raise ValueError(f"format {values['format']}, form {values['form']}; expected format {FORMAT}")
            return Form(values["form"], values["quality"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: not a prepared cache of this version ({error}); remove {self.folder}") from error


def describe(form: Form) -> dict[str, str | int]:
    """The kind of a cache: all that decides the bytes of an image besides its source file and its size."""
    versions = {"pillow": PIL.__version__, "opencv": cv2.__version__}
    return {"format": FORMAT, "form": form.name, "quality": form.quality, **versions}


def make_place(root: Path, form: Form) -> Place:
    """The cache of that kind under `root`, made when it is not there."""
    kind = describe(form)
    place = Place(root / f"{form.name}-{sha256_bytes(canonical_json(kind).encode())[:12]}")
    for folder in (place.shards, place.datasets):
        folder.mkdir(parents=True, exist_ok=True)
    said = json.dumps(kind, indent=2).encode() + b"\n"
    if not (place.folder / KIND).exists() or (place.folder / KIND).read_bytes() != said:  # the folder's name decides
        write_atomic(place.folder / KIND, said)
    return place


def places(root: Path) -> list[Place]:
    """Every cache under `root`."""
    return [Place(path.parent) for path in sorted(root.glob(f"*/{KIND}"))]


def open_lock(path: Path) -> IO[str]:
    """Open the file that is the lock, without holding it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o644), "r+")


@contextmanager
def holding(path: Path, exclusive: bool = True) -> Iterator[IO[str]]:
    """Hold the lock `path`, waiting for it; shared with others who share it, or alone."""
    with open_lock(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield file


@contextmanager
def trying(path: Path) -> Iterator[bool]:
    """Hold the lock alone if nobody else has it: whether it is held."""
    with open_lock(path) as file:
        yield try_alone(file)


def try_alone(file: IO[str]) -> bool:
    """Turn an open lock into one held alone, if nobody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def share(file: IO[str]) -> None:
    """Hold an open lock together with others who share it, waiting for one who has it alone."""
    fcntl.flock(file, fcntl.LOCK_SH)
