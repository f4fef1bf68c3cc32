"""A listing as a file: one canonical JSON row an object, in the order of their keys. Equal listings are equal files.

Keys come from outside: one that would leave the root, or that no file can be called, is refused by name.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from nightowl.cloud.storage import RemoteObject
from nightowl.errors import RemoteError

_LONGEST_NAME_BYTES = 255
_row = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_UNFIT = re.compile(r"[\\\x00-\x1f\x7f]")


class Amount(NamedTuple):
    """A number of files and of bytes, counted up one by one: a list of sizes would cost more than the plan."""

    num_files: int = 0
    num_bytes: int = 0

    def and_one(self, num_bytes: int | None) -> "Amount":
        """With a file of `num_bytes`; None stands for one that does not count."""
        return self if num_bytes is None else Amount(self.num_files + 1, self.num_bytes + num_bytes)


def write_listing(path: Path, objects: Iterable[RemoteObject], url: str) -> Amount:
    """Write the objects that are files, and say how much they are; what consoles make to show an empty folder (`name/`, no
    bytes) is left out.

    Raises:
        RemoteError: for a key that `fault_of_key` objects to, or when the server lists out of order.
    """
    before, written = "", Amount()
    with path.open("w", encoding="utf-8") as file:
        for found in objects:
            if found.num_bytes == 0 and (found.key == "" or found.key.endswith("/")):
                continue
            fault = fault_of_key(found.key)
            if fault:
                raise RemoteError(f"{url}: the key {found.key!r} {fault}; nothing was pulled: rename or remove that object")
            if found.key <= before:
                raise RemoteError(f"{url}: listed {found.key!r} after {before!r}, out of order (a directory bucket?)")
            before = found.key
            file.write(_row(found) + "\n")
            written = written.and_one(found.num_bytes)
    return written


def read_listing(path: Path) -> Iterator[RemoteObject]:
    """The rows, one after the other; none of them is kept."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            key, num_bytes, etag = json.loads(line)
            yield RemoteObject(key, num_bytes, etag)


def is_listing(path: Path) -> bool:
    """Is the file one that `write_listing` can have written, row by row and in order?"""
    before = ""
    try:
        for found in read_listing(path):
            if not isinstance(found.key, str) or fault_of_key(found.key) or found.key <= before:
                return False
            if type(found.num_bytes) is not int or not isinstance(found.etag, str):
                return False
            before = found.key
    except (OSError, ValueError, TypeError, RecursionError):
        return False
    return True


def fault_of_key(key: str) -> str | None:
    """Why `key` cannot be a file inside the mirror, or None."""
    if _UNFIT.search(key):
        return "holds a backslash or a control character"
    parts = key.split("/")
    if key.startswith("/") or ".." in parts:
        return "would leave the folder that is pulled into"
    if "" in parts or "." in parts:
        return "has an empty or '.' folder in it"
    if any(len(part.encode()) > _LONGEST_NAME_BYTES for part in parts):
        return f"has a part longer than {_LONGEST_NAME_BYTES} bytes"
    return None
