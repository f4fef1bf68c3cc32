"""The end of a night, said where people look: the terminal or log, and the name of the flow run's final state."""

from prefect.client.schemas.objects import State
from prefect.states import Completed

from nightowl.night.record import Ending
from tasks.say import say

_STATE_NAMES = {"promoted": "Promoted", "refused": "Refused", "nothing_new": "NothingNew"}


def finish(ending: Ending) -> State:
    """The final state of the flow run: completed either way, named after what came of it. A refusal is a result, not a fault."""
    say(ending.sentence)
    return Completed(data=ending, name=_STATE_NAMES[ending.outcome], message=ending.sentence)
