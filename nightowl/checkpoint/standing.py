"""How far the training of a detector is saved on this machine: for people, of whoever goes on with it."""

from pathlib import Path

from nightowl.checkpoint.commits import COMMITS, Moment
from nightowl.checkpoint.copies import read_commits
from nightowl.cloud.bucket import FolderBucket


def saved_since(place: Path, since: float) -> Moment | None:
    """Where the training stands that was committed last of those in the folder `place`; None where none was since that moment
    (seconds since 1970), or where nothing is left to train."""
    runs = {run: (run / COMMITS).stat().st_mtime for run in place.glob("*") if (run / COMMITS).is_dir()}
    last = max(runs, key=lambda run: runs[run], default=None)
    if last is None or runs[last] < since:
        return None
    newest = next(iter(read_commits(FolderBucket(last))), None)
    return None if newest is None or newest.moment.finished else newest.moment
