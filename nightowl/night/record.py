"""A night as a record: what it is called, where it runs, and of which code."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from nightowl.evaluation.metrics import Record


class Night(Record):
    """One night of one detector. `root` is the checkout it was started from, `tree` its own working tree."""

    id: str
    detector: str
    root: Path
    tree: Path
    folder: Path
    code_commit: str
    head: str
    dirty: bool
    started_at: datetime


class StageRun(Record):
    """How a stage of the night came by its outputs: executed here, or restored from the cache."""

    stage: str
    executed: bool
    seconds: float


class Pinned(Record):
    """What was pinned for a night. `nothing_new` says why it need not run, if so."""

    night_key: str
    dataset_version: str
    num_images: int
    champion_version: str | None
    nothing_new: str | None


class Ending(Record):
    """How a night ended, for people and for exit codes. `refused` covers every judged candidate that was not promoted."""

    outcome: Literal["promoted", "refused", "nothing_new"]
    sentence: str
    detector: str
    version: str | None
    champion_version: str | None
    report: Path
