"""The end of a night, said where people look: the terminal or log, and the name of the flow run's final state."""

from prefect.client.schemas.objects import State
from prefect.states import Completed

from nightowl.night.record import Ending
from tasks.say import say

_STATE_NAMES = {"promoted": "Promoted", "refused": "Refused", "nothing_new": "NothingNew"}


def finish(ending: Ending) -> State:
    """The final state of the flow run, named after what came of it; completed either way, as a refusal is a result."""
    say(ending.sentence)
    return Completed(data=ending, name=_STATE_NAMES[ending.outcome], message=ending.sentence)
