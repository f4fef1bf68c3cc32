"""SHA256SUMS of a folder: written last, read by `sha256sum -c`, and held against the files when a bundle is fetched."""

from collections.abc import Iterator
from pathlib import Path

from nightowl.errors import RegistryError
from nightowl.files import sha256_file, write_atomic

NAME = "SHA256SUMS"


def write_sums(folder: Path) -> str:
    """Write the digests of every file below `folder`, in order of path; returns the digest of that list itself."""
    lines = [f"{sha256_file(folder / path)}  {path}\n" for path in sorted(_files(folder))]
    write_atomic(folder / NAME, "".join(lines))
    return sha256_file(folder / NAME)


def verify_sums(folder: Path, sums_sha256: str, where: str) -> None:
    """Hold the files below `folder` against its SHA256SUMS, and that against `sums_sha256`, which the registry keeps.

    Raises:
        RegistryError: naming `where` and the file that is missing, damaged, or not listed.
    """
    if not (folder / NAME).is_file():
        raise RegistryError(f"{where}: {NAME} is missing; the bundle is not whole")
    if sha256_file(folder / NAME) != sums_sha256:
        raise RegistryError(f"{where}: {NAME} is not the one that was registered; the bundle was changed or damaged")
    listed = _listed(folder)
    for path, expected in listed.items():
        if not (folder / path).is_file():
            raise RegistryError(f"{where}: {path} is missing; the bundle is not whole")
        found = sha256_file(folder / path)
        if found != expected:
            raise RegistryError(f"{where}: {path} is damaged: expected SHA-256 {expected[:12]}, found {found[:12]}")
    unlisted = sorted(set(_files(folder)) - listed.keys())
    if unlisted:
        raise RegistryError(f"{where}: {unlisted[0]} is not listed in {NAME}; the bundle was changed")


def verify_as_listed(path: Path) -> None:
    """Hold a file against the SHA256SUMS beside it, where there is one that lists it.

    Raises:
        RegistryError: when it is not the file that was listed.
    """
    listed = _listed(path.parent) if (path.parent / NAME).is_file() else {}
    if path.name in listed and path.is_file() and sha256_file(path) != listed[path.name]:
        raise RegistryError(f"{path}: damaged or exchanged: it is not the file that {path.parent / NAME} lists")


def _listed(folder: Path) -> dict[str, str]:
    """Digests by path."""
    lines = (folder / NAME).read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return {path: digest for digest, _, path in (line.partition("  ") for line in lines)}


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below `folder`, relative to it, without SHA256SUMS itself."""
    for path in folder.rglob("*"):
        if path.is_file() and path != folder / NAME:
            yield path.relative_to(folder).as_posix()
