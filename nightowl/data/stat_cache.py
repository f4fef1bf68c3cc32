"""What is known of files that have not changed since they were read: path, size and modification time stand for the content.

A file changed within the last two seconds is not remembered: a second change could leave its time as it is. The cache is
published in one rename; a broken one, or one of another folder, counts as empty and costs only time.
"""

import json
import time
from dataclasses import dataclass
from pathlib import Path

from nightowl.data.images import Size
from nightowl.files import canonical_json, write_atomic

FORMAT = 1
SETTLED_AFTER_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Facts:
    """An image file's content digest, length, and size in pixels as seen."""

    sha256: str
    num_bytes: int
    size: Size


Stamp = tuple[int, int]
Known = dict[str, tuple[Stamp, Facts]]


def stamp_of(path: Path) -> Stamp:
    """Length in bytes and modification time in nanoseconds. Raises OSError."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def load_known(cache: Path, root: Path) -> Known:
    """What `cache` knows of the files in `root`, by path inside it; empty when it is absent, broken or of another folder."""
    try:
        values = json.loads(cache.read_bytes())
        if values["format"] != FORMAT or values["root"] != str(root.resolve()):
            return {}
        return {path: ((row[0], row[1]), Facts(row[2], row[0], Size(row[3], row[4]))) for path, row in values["files"].items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}


def save_known(cache: Path, root: Path, known: Known, now_ns: int | None = None) -> None:
    """Publish `known`, without what changed too recently."""
    settled_before = (time.time_ns() if now_ns is None else now_ns) - SETTLED_AFTER_NS
    files = {
        path: [stamp[0], stamp[1], facts.sha256, *facts.size]
        for path, (stamp, facts) in known.items()
        if stamp[1] < settled_before
    }
    write_atomic(cache, canonical_json({"format": FORMAT, "root": str(root.resolve()), "files": files}))
