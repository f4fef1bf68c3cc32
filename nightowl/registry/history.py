"""The history of a detector's champions: who was made champion, when, by whom and why, and what was taken back; and whom a
person made the reference.

Pure. An event is written before the alias moves and completed after it, so whenever the writer is killed, the alias says
which of the two happened: `settled` reads such an event as done, or as never come to pass.
"""

import getpass
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from nightowl.records import Record

Action = Literal["promote", "rollback", "withdraw", "reference"]


class Event(Record):
    """One change of champion, or of the reference by hand. `came_from` is the version before, None for the first. `withdraw`
    leaves no champion; its `version` is the one that was."""

    number: int
    action: Action
    version: str
    came_from: str | None
    reason: str
    by: str
    at: datetime
    forced: bool = False
    state: Literal["begun", "done", "abandoned"] = "begun"


def settled(events: Iterable[Event], champion: str | None) -> list[Event]:
    """The events in order. One that was begun and not completed is done if `champion` (the alias) shows it, else abandoned."""
    ordered = sorted(events, key=lambda event: event.number)
    return [_settle(event, ordered, champion) if event.state == "begun" else event for event in ordered]


def champions(events: Sequence[Event]) -> list[str]:
    """The versions that a rollback can go through, oldest first; the last is the champion by the history."""
    stack: list[str] = []
    for event in _moves(events):
        if event.action == "promote":
            stack.append(event.version)
        elif event.action == "withdraw":
            stack = []
        else:
            while stack and stack[-1] != event.version:
                stack.pop()
            stack = stack or [event.version]
    return stack


def taken_back(events: Sequence[Event]) -> set[str]:
    """The versions that a rollback took back or that were withdrawn, and that nobody has promoted since."""
    back: set[str] = set()
    for event in _moves(events):
        if event.action != "promote" and event.came_from is not None:
            back.add(event.came_from)
        if event.action != "withdraw":
            back.discard(event.version)
    return back


def previous_champion(events: Sequence[Event], champion: str) -> str | None:
    """The version to go back to from `champion`, or None when there is none that was not itself taken back."""
    back = taken_back(events)
    stack = champions(events)
    below = stack[: _last_index(stack, champion)] if champion in stack else stack  # moved by hand: the last one we know
    return next((version for version in reversed(below) if version != champion and version not in back), None)


def ever_champion(events: Sequence[Event]) -> set[str]:
    return {event.version for event in _moves(events)}


def _settle(event: Event, ordered: Sequence[Event], champion: str | None) -> Event:
    """Only the newest event can have moved the alias to where it is now."""
    happened = event is ordered[-1] and champion == (None if event.action == "withdraw" else event.version)
    return event.model_copy(update={"state": "done" if happened else "abandoned"})


def _moves(events: Iterable[Event]) -> list[Event]:
    """The changes of champion that came to pass."""
    return [event for event in events if event.state == "done" and event.action != "reference"]


def _last_index(stack: Sequence[str], version: str) -> int:
    return len(stack) - 1 - list(reversed(stack)).index(version)


def user_name() -> str:
    """Who acts, for the history; a container may know no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
