"""Files kept by what they hold: a store in which a file's name is its SHA-256.

The same content is kept once, however often it is put; what is there is whole, because a file appears by one rename. Base
weights and champions lie here, so that a night depends on a digest and not on somebody's folder.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nightowl.errors import WeightsError
from nightowl.files import sha256_file

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class BlobStore:
    """The store in the folder `root`, which is made when something is first put."""

    root: Path

    def put(self, path: Path) -> str:
        """Keep a copy of the file at `path`; returns its SHA-256. The digest is taken of the copy, so that both agree."""
        self.root.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.root, prefix=".put.")
        os.close(handle)
        copy = Path(name)
        try:
            shutil.copyfile(path, copy)
            sha256 = sha256_file(copy)
            _flush(copy)
            copy.chmod(0o444)
            os.replace(copy, self.path_of(sha256))
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        return sha256

    def path_of(self, sha256: str) -> Path:
        """Where content of that digest lies, or would lie. A digest names no other folder: it is 64 hex digits, checked."""
        if not _SHA256.fullmatch(sha256):
            raise ValueError(f"expected a SHA-256 of 64 lower-case hex digits, got {sha256!r}")
        return self.root / sha256

    def has(self, sha256: str) -> bool:
        return self.path_of(sha256).is_file()

    def verified_path(self, sha256: str, what: str) -> Path:
        """The file of that digest, its content compared with it; `what` names it in errors.

        Raises:
            WeightsError: when it is absent or was altered.
        """
        path = self.path_of(sha256)
        if not path.is_file():
            raise WeightsError(f"{path}: {what} (sha256 {sha256[:12]}…) is not there; pin the inputs again")
        found = sha256_file(path)
        if found != sha256:
            raise WeightsError(
                f"{path}: {what} was altered: expected sha256 {sha256[:12]}…, found {found[:12]}…; "
                "delete the file and pin the inputs again"
            )
        return path


def _flush(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
