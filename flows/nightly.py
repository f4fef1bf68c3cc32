"""What happens each night, in order."""

from prefect import flow
from prefect.client.schemas.objects import State

from flows.retrain import make_and_judge
from tasks.inputs import one_night, pin
from tasks.notify import finish
from tasks.registry import champion_stands
from tasks.report import report


@flow(name="nightly", flow_run_name="{detector}")
def nightly(detector: str, source: str | None = None) -> State:
    """Retrain `detector` if anything is new, and ship only what is proven better."""
    with one_night(detector, source) as night:
        pinned = pin(night)
        if pinned.nothing_new:
            ending = champion_stands(night, pinned)
            report(night, ending)
            return finish(ending)
        return make_and_judge(night, pinned)
