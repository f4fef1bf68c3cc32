"""When to stop trying: a stage that fails at the same step again and again does so of itself, and would only cost money."""

from collections.abc import Sequence

from nightowl.machines.records import StageFailure

TIMES = 3


def poison(failures: Sequence[StageFailure]) -> str | None:
    """Why the run should end, from what one stage met with, in the order of generations; None while another try is worth it.

    Being taken back is nobody's fault and counts for nothing, except that what comes after it is a new beginning; neither
    does a failure count that came later in the training than the one before.
    """
    by_generation = {failure.generation: failure for failure in failures}
    last = [by_generation[number] for number in sorted(by_generation)][-TIMES:]
    if len(last) < TIMES or any(failure.preempted for failure in last) or len({failure.step for failure in last}) > 1:
        return None
    where = f"after step {last[-1].step}" if last[-1].step is not None else "before its first step was saved"
    return f"{last[-1].stage} failed {TIMES} times on end {where}, the last time with: {last[-1].message}"
