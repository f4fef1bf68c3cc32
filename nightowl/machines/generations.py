"""Who trains with whom: what the next generation of a run should be, decided from what the board shows.

Every node computes the same from the same view, and one conditional put decides between views that differ. No clock of one
machine is compared with that of another: a heartbeat is as old as the time since an onlooker saw it change.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nightowl.machines.job import Job
from nightowl.machines.records import Generation, Member, NodeBeat

FEWER_AFTER_SECONDS = 90.0  # a replacement takes minutes to come; so long the others wait before they go on without it
_LOWEST_PORT, _NUM_PORTS = 20000, 10000  # below those that Linux gives to whoever asks for any
_AT_WORK = ("training", "running")
_LEFT = ("leaving", "gone")


@dataclass(frozen=True)
class Sight:
    """A heartbeat, and for how long it has not changed. `alive`: it was seen to change at all, so it is not one that a node
    left behind that is no more."""

    beat: NodeBeat
    silent_seconds: float
    alive: bool


@dataclass
class Lookout:
    """Watches heartbeats for changes."""

    _seen: dict[str, tuple[NodeBeat, float, bool]] = field(default_factory=dict)

    def look(self, beats: Sequence[NodeBeat], at: float) -> dict[str, Sight]:
        """The beats by instance; `at`: seconds of a clock that only goes forward."""
        for beat in beats:
            before = self._seen.get(beat.instance)
            if before is None or before[0] != beat:
                self._seen[beat.instance] = (beat, at, before is not None)
        self._seen = {beat.instance: self._seen[beat.instance] for beat in beats}
        return {name: Sight(beat, at - since, alive) for name, (beat, since, alive) in self._seen.items()}


def lost_members(generation: Generation, sights: Mapping[str, Sight], old_seconds: float) -> dict[int, str]:
    """The ranks that are gone or silent, and what is known of each, in words."""
    lost = {}
    for member in generation.members:
        sight = sights.get(member.instance)
        if sight is None:
            lost[member.rank] = f"node {member.rank} ({member.instance}) has no heartbeat"
        elif sight.beat.state in _LEFT:
            lost[member.rank] = f"node {member.rank} ({member.instance}) leaves: {sight.beat.said or sight.beat.state}"
        elif sight.silent_seconds > old_seconds:
            lost[member.rank] = f"node {member.rank} ({member.instance}) has been silent for {sight.silent_seconds:.0f} s"
    return lost


def next_generation(
    job: Job, newest: Generation | None, sights: Mapping[str, Sight], waited_seconds: float, now: datetime
) -> Generation | str:
    """The generation after `newest`, which has ended; or why to wait, in words. `waited_seconds`: since there is none.

    It is of all the nodes that the job wants, or after a while of as many as there are, where that is enough. Nobody begins
    while a member of the last one still commits: what it saves is gone on from.
    """
    present = {
        name: sight for name, sight in sights.items() if sight.alive and sight.silent_seconds <= job.heartbeat_old_seconds
    }
    busy = [name for name, sight in present.items() if sight.beat.state in _AT_WORK]
    if busy:
        return f"waiting for {', '.join(sorted(busy))} to save and end"
    ready = [sight.beat for sight in present.values() if sight.beat.state == "ready"]
    if len(ready) < job.min_nodes:
        return f"{len(ready)} of {job.min_nodes} nodes are there"
    if len(ready) < job.nodes and waited_seconds < FEWER_AFTER_SECONDS:
        return (
            f"{len(ready)} of {job.nodes} nodes are there; going on with them in {FEWER_AFTER_SECONDS - waited_seconds:.0f} s"
        )
    number = newest.number + 1 if newest else 1
    chosen = sorted(ready, key=lambda beat: _order(beat, newest))[: job.nodes]
    return Generation(
        number=number,
        members=tuple(Member(instance=beat.instance, rank=rank, address=beat.address) for rank, beat in enumerate(chosen)),
        port=port_of(job.run_id, number),
        opened_at=now,
        reason=f"{len(chosen)} of {job.nodes} nodes",
    )


def room_for_more(job: Job, generation: Generation, sights: Mapping[str, Sight]) -> bool:
    """Whether a generation of fewer nodes than wanted could be one of more now."""
    inside = {member.instance for member in generation.members}
    spare = [
        name
        for name, sight in sights.items()
        if name not in inside
        and sight.alive
        and sight.beat.state == "ready"
        and sight.silent_seconds <= job.heartbeat_old_seconds
    ]
    return len(inside) < job.nodes and bool(spare)


def port_of(run_id: str, number: int) -> int:
    """Where rank 0 of a generation is met: another one for each, so that what is left of one is not met by the next."""
    digest = hashlib.sha256(f"{run_id}/{number}".encode()).digest()
    return _LOWEST_PORT + int.from_bytes(digest[:4], "big") % _NUM_PORTS


def _order(beat: NodeBeat, newest: Generation | None) -> tuple[int, str]:
    """Who was there before keeps its place: it has images prepared, and rank 0 the checkpoints."""
    rank = newest.rank_of(beat.instance) if newest else None
    return (len(newest.members) if newest and rank is None else rank or 0, beat.instance)
