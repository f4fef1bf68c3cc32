"""Which runs of this machine may be forgotten: what they made is in the cache, and only the newest are asked about again."""

from nightowl.cloud.bucket import FolderBucket
from nightowl.machines.board import Board, runs

KEPT_RUNS = 5


def forgettable(boards: FolderBucket, but: str) -> list[str]:
    """The runs that have ended, without the newest KEPT_RUNS of them and the run `but`."""
    ended = [(end.at, run_id) for run_id in runs(boards) if run_id != but and (end := Board(boards, run_id).end()) is not None]
    return [run_id for _, run_id in sorted(ended, reverse=True)[KEPT_RUNS:]]
