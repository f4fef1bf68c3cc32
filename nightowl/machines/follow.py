"""Driving a run from here to its end: its lease is renewed, and what its nodes write is said. Where this ends, the run goes on.

The network between here and there may be gone for a while: that is said once, and borne for some minutes. The lease bounds what
a run costs that nobody drives any more.
"""

import time
from collections.abc import Callable

from nightowl.errors import RemoteError
from nightowl.machines.engine import Engine, RunStatus

EVERY_SECONDS = 10.0
PATIENCE_SECONDS = 600.0
_LEAVE_SECONDS = 120.0


class Follower:
    """Says what is new of a run each time that it looks."""

    def __init__(self, engine: Engine, run_id: str, say: Callable[[str], object]) -> None:
        self._engine, self._run_id, self._say = engine, run_id, say
        self._after: dict[str, int] = {}
        self._said = ""

    def look(self) -> RunStatus:
        """Renew the lease, say what is new, and return how the run is."""
        self._engine.renew(self._run_id)
        status = self._engine.status(self._run_id)
        for line in self._engine.logs(self._run_id, dict(self._after)):
            self._after[line.instance] = max(line.number, self._after.get(line.instance, -1))
            self._say(f"{line.instance}: {line.text}")
        sentence = describe(status)
        if sentence != self._said:
            self._said = sentence
            self._say(sentence)
        return status


def follow(
    engine: Engine,
    run_id: str,
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
    every_seconds: float = EVERY_SECONDS,
) -> RunStatus:
    """How the run ended. Raises RemoteError when it could not be asked for longer than PATIENCE_SECONDS."""
    follower, lost_at = Follower(engine, run_id, say), None
    while True:
        try:
            status = follower.look()
        except RemoteError as error:
            if lost_at is None:
                lost_at = clock()
                say(f"{run_id}: not reached, trying again: {error}")
            elif clock() - lost_at > PATIENCE_SECONDS:
                raise
        else:
            lost_at = None
            if status.over:
                return status
        sleep(every_seconds)


def leave(
    engine: Engine,
    run_id: str,
    say: Callable[[str], object],
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """What an operator's wish to end comes to: the nodes are asked, given time to commit, and then ended."""
    engine.cancel(run_id)
    say(f"{run_id}: cancelled; its nodes save what they have")
    until = clock() + _LEAVE_SECONDS
    while clock() < until and not _all_gone(engine, run_id):
        sleep(2.0)
    end(engine, run_id, say)


def _all_gone(engine: Engine, run_id: str) -> bool:
    """Whether every node has left; one that cannot be asked for has not, and is ended all the same when the time is up."""
    try:
        return all(node.state == "gone" for node in engine.status(run_id).nodes)
    except RemoteError:
        return False


def end(engine: Engine, run_id: str, say: Callable[[str], object]) -> None:
    """Have no machine of the run left; what is left all the same is said, with what to do."""
    remains = engine.tear_down(run_id)
    if not remains.nothing:
        left = ", ".join((*remains.instances, *remains.groups, *remains.templates, *remains.others))
        say(f"{run_id}: STILL THERE, and perhaps paid for: {left}; end it with: nightowl machines reap")


def describe(status: RunStatus) -> str:
    """One line for people: how the run is, or how it ended."""
    nodes = [node for node in status.nodes if node.state not in ("gone", "booting")]
    at = next(((node.stage, node.step if node.state == "training" else None) for node in nodes if node.stage), None)
    where = "" if at is None else f", {at[0]}" if at[1] is None else f", {at[0]} at step {at[1]}"
    working = f"{len(nodes)} node{'s' * (len(nodes) != 1)}{where}" if not status.over else ""
    done = f"done: {', '.join(status.stages_done)}" if status.stages_done else ""
    return "; ".join(each for each in (f"{status.run_id}: {status.state}", working, done, status.message) if each)
