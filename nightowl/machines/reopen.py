"""A run that ended without its result, or whose result was lost, may be asked for again: the same inputs are the same run.

What its nodes pushed, wrote and told stays; that it ended is forgotten, and that is the last thing to go, so that a call which
was cut off is simply made again. Which stages are done is forgotten too: what the shared cache has is restored from there, and
what was deleted from it is made again.
"""

from nightowl.machines.board import END, JOB, Board

_FORGOTTEN = ("full_price.json", "ends/", "failures/", "generations/", "nodes/", "cancel.json", JOB)


def reopen(board: Board) -> None:
    """Have the board ready for a new job. No machine of the run may be left."""
    for prefix in _FORGOTTEN:
        for stored in board.bucket.list(prefix):
            board.bucket.delete(stored.key)
    board.bucket.delete(END)
