"""Make a candidate, judge it, and ship it if it is better: by hand, whether or not anything is new."""

from prefect import flow
from prefect.client.schemas.objects import State

from nightowl.night.record import Night, Pinned
from tasks.graph import stage_names
from tasks.inputs import one_night, pin
from tasks.machines import run_on_machines
from tasks.notify import finish
from tasks.registry import promote_or_refuse, register
from tasks.report import report
from tasks.stages import run_stage


@flow(name="retrain", flow_run_name="{detector}")
def retrain(detector: str, source: str | None = None) -> State:
    """Train `detector` on what its source holds now, and promote the result if the gate lets it."""
    with one_night(detector, source) as night:
        pinned = pin(night)
        return make_and_judge(night, pinned)


def make_and_judge(night: Night, pinned: Pinned) -> State:
    """The body that nightly and retrain share."""
    made_elsewhere = run_on_machines(night)
    for stage in stage_names(night.tree):
        run_stage(night, stage, only_restore=stage in made_elsewhere)
    version = register(night, pinned)
    ending = promote_or_refuse(night, pinned, version)
    report(night, ending)
    return finish(ending)
