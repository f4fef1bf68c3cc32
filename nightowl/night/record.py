"""A night as records: what it is called, where it runs and of which code, what its stages did, and how it ended."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from nightowl.files import write_atomic, write_record
from nightowl.records import Record
from nightowl.settings import Settings, load_settings
from nightowl.stages.workspace import Workspace


class Night(Record):
    """One night of one detector. `root` is the checkout it was started from, `tree` its own working tree, `source` the data
    folder named for this night. `shares` says that there is a DVC remote."""

    id: str
    detector: str
    root: Path
    tree: Path
    folder: Path
    code_commit: str
    head: str
    dirty: bool
    shares: bool
    source: str | None
    started_at: datetime


class StageRun(Record):
    """How a stage of the night came by its outputs: executed here, or restored from the cache."""

    stage: str
    executed: bool
    seconds: float


class StageBegun(Record):
    """The stage that the night is at, or ended in."""

    stage: str
    at: datetime


_RUNS = TypeAdapter(list[StageRun])


class Pinned(Record):
    """What was pinned for a night. `nothing_new` says why it need not run, if so;
    `still_refused`, that what these inputs make was judged and is not the champion."""

    night_key: str
    champion_version: str | None
    nothing_new: str | None
    still_refused: bool


class Ending(Record):
    """How a night ended, for people and for exit codes. `refused` covers every judged candidate that was not promoted."""

    outcome: Literal["promoted", "refused", "nothing_new"]
    sentence: str
    detector: str
    version: str | None
    champion_version: str | None
    previous_champion: str | None
    report: Path
    still_refused: bool = False


def settings_of(night: Night) -> Settings:
    """The settings of the checkout that the night came from; a source named for this night goes before theirs."""
    settings = load_settings(night.root)
    if night.source is None:
        return settings
    return settings.model_copy(update={"sources": {**settings.sources, night.detector: night.source}})


def workspace_in_tree(night: Night) -> Workspace:
    """The detector in the night's own working tree."""
    return Workspace(night.tree, night.detector, settings_of(night))


def report_of(night: Night) -> Path:
    """Where the page about the night is, or will be."""
    return night.folder / "report.html"


def add_run(night: Night, run: StageRun) -> None:
    """Note that a stage ended well, so that the report of a night that fails later can still tell it."""
    write_atomic(_runs_file(night), _RUNS.dump_json([*runs_of(night), run], indent=2))


def runs_of(night: Night) -> tuple[StageRun, ...]:
    """The stages that ended well so far, in order."""
    path = _runs_file(night)
    return tuple(_RUNS.validate_json(path.read_bytes())) if path.exists() else ()


def begin_run(night: Night, stage: str) -> None:
    """Note that a stage begins now, so that the report of a night that ends in it can tell how long it had run."""
    write_record(_begun_file(night), StageBegun(stage=stage, at=datetime.now(UTC)))


def begun_run(night: Night) -> StageBegun | None:
    """The stage that began last; None before the first."""
    path = _begun_file(night)
    return StageBegun.model_validate_json(path.read_bytes()) if path.exists() else None


def _begun_file(night: Night) -> Path:
    return night.folder / "begun.json"


def _runs_file(night: Night) -> Path:
    return night.folder / "stages.json"
