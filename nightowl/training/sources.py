"""Which source files a training runs: what the file it starts from imports, and what those import, within packages.

By reading import statements alone, so that it is the same before and after anything is imported. A module that nothing of it
imports, a reader of another format for instance, may change without a training being begun anew.
"""

import ast
from collections.abc import Collection, Iterator
from pathlib import Path


def imported_sources(start: Path, root: Path, packages: Collection[str], without: Collection[str] = ()) -> list[Path]:
    """`start` and every file of the `packages` (names like `nightowl.data`) that it imports, directly or through them.

    `root` is the folder that module names count from. In order of path; a package's `__init__.py` counts where it is run. The
    modules `without` are left out, and what only they import.
    """
    found, ahead = set[Path](), [start]
    while ahead:
        file = ahead.pop()
        if file not in found:
            found.add(file)
            names = {name for imported in _imports(file) for name in _with_parents(imported)} - set(without)
            ahead += [path for name in names if _within(name, packages) for path in _files(name, root)]
    return sorted(found)


def _imports(file: Path) -> Iterator[str]:
    """The absolute names in its import statements, wherever they stand. Of `from a import b` also a.b: it may be a module."""
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _within(name: str, packages: Collection[str]) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


def _with_parents(name: str) -> Iterator[str]:
    """`a.b.c` and what importing it runs before: `a`, `a.b`."""
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _files(name: str, root: Path) -> Iterator[Path]:
    """The source of the module `name`; nothing where there is none, or it is empty."""
    stem = root.joinpath(*name.split("."))
    return (path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file() and path.stat().st_size)
