"""The code of a run as one file for its nodes: a commit, the inputs pinned for it, and how the shared cache is reached.

The same content gives the same bytes, whenever and wherever it is packed, so that its digest names the run's code.
"""

import gzip
import io
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from nightowl.errors import UserError

_MODE, _EXECUTABLE = 0o644, 0o755


def code_archive(root: Path, commit: str, beside: Mapping[str, bytes]) -> bytes:
    """A .tar.gz of the files of `commit` in the repository at `root`; those in `beside`, by their paths, are laid over them.

    Raises:
        UserError: git cannot read the commit, or it holds a link, which nodes refuse.
    """
    files = {**{name: (content, mode) for name, content, mode in _committed(root, commit)}}
    files |= {name: (content, _MODE) for name, content in beside.items()}
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", filename="", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, (content, mode) in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def tree_id(root: Path, commit: str) -> str:
    """The id of what `commit` holds, whenever it was made: two snapshots of the same files have one."""
    return _git(root, "rev-parse", f"{commit}^{{tree}}").decode().strip()


def _committed(root: Path, commit: str) -> Iterator[tuple[str, bytes, int]]:
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "--format=tar", commit))) as tar:
        for member in tar:
            if member.isdir():
                continue
            content = tar.extractfile(member) if member.isfile() else None
            if content is None:
                raise UserError(f"{root}: {member.name}: a link cannot be sent to rented machines; put the file itself there")
            yield member.name, content.read(), _EXECUTABLE if member.mode & 0o100 else _MODE


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False)
    if done.returncode != 0:
        raise UserError(f"{root}: git {arguments[0]} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
