"""Restate, for each stage, the pinned versions of the libraries that its code imports: libraries/<stage>.txt.

DVC then runs a stage again when a library that it uses changes, and not when another one does. `make lock` calls this;
tests/test_pipeline.py holds the files to the truth.
"""

import re
from copy import deepcopy
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp

from nightowl.files import write_atomic
from nightowl.stages.workspace import STAGES

# What cannot change a result: how a stage is framed, where data and files lie, and the types of values that DVC tracks one by
# one. What they import is theirs.
FRAME = {
    "nightowl",
    "nightowl.checkpoint.place",
    "nightowl.cloud.bucket",
    "nightowl.audit_params",
    "nightowl.data.source",
    "nightowl.errors",
    "nightowl.export_params",
    "nightowl.files",
    "nightowl.notices",
    "nightowl.params",
    "nightowl.progress",
    "nightowl.records",
    "nightowl.section",
    "nightowl.settings",
    "nightowl.stages",
    "nightowl.stages.frame",
    "nightowl.stages.looking_on",
    "nightowl.stages.workspace",
    "nightowl.telemetry",
}
# They check, show and write values, and compute none.
FRAME_LIBRARIES = {"pydantic", "rich"}

ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)(?: ; (.+?))? \\$", re.MULTILINE)


@cache
def import_graph() -> grimp.ImportGraph:
    return grimp.build_graph("nightowl", include_external_packages=True)


def imported_by(stage: str) -> set[str]:
    """Every module, ours or a library's top-level name, that the stage's module imports, directly or through ours."""
    return _computing().find_upstream_modules(f"nightowl.stages.{stage}") - FRAME


@cache
def _computing() -> grimp.ImportGraph:
    """The import graph in which the frame imports nothing."""
    graph = deepcopy(import_graph())
    for module in FRAME & graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            graph.remove_import(importer=module, imported=imported)
    return graph


def libraries_of(stage: str, lock: str) -> list[str]:
    """The lines `name==version`, sorted, of the pinned distributions that the stage imports."""
    pins = pinned(lock)
    owners = packages_distributions()
    ours = {f"nightowl.stages.{stage}"} | {module for module in imported_by(stage) if module.startswith("nightowl")}
    direct = {found for module in ours for found in import_graph().find_modules_directly_imported_by(module)}
    top_levels = {name.partition(".")[0] for name in direct} - {"nightowl"} - FRAME_LIBRARIES
    names = {normal(owner) for top in top_levels for owner in owners.get(top, [])}
    return sorted(line for name in names for line in pins.get(name, []))


def pinned(lock: str) -> dict[str, list[str]]:
    """Normalised name to its pins in requirements.lock; several where the version depends on the Python."""
    found: dict[str, list[str]] = {}
    for name, version, marker in _PINNED.findall(lock):
        found.setdefault(normal(name), []).append(f"{name}=={version}" + (f" ; {marker}" if marker else ""))
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    for stage in STAGES:
        write_atomic(ROOT / "libraries" / f"{stage}.txt", "".join(f"{line}\n" for line in libraries_of(stage, lock)))


if __name__ == "__main__":
    main()
