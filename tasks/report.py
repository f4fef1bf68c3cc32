"""The page about a night, whatever its end. It is written for people; the registry holds what machines need."""

from datetime import UTC, datetime

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.data.manifest import read_manifest
from nightowl.errors import DataError, NightowlError
from nightowl.evaluation.champion import read_champion
from nightowl.night.cut_short import failure_of
from nightowl.night.record import Ending, Night, report_of, runs_of, workspace_in_tree
from nightowl.night.rented import rented_by
from nightowl.report.annotators import write_lists
from nightowl.report.collect import collect
from nightowl.report.content import NightFacts, StageTiming
from nightowl.report.page import write_report
from tasks.say import say


@task(name="report", cache_policy=NO_CACHE)
def report(night: Night, ending: Ending) -> None:
    """Write the report of a night that came to its end, and beside it the labels to look at again."""
    facts = _facts(night).model_copy(
        update={
            "ending": ending.outcome,
            "sentence": ending.sentence,
            "registered_version": ending.version,
            "previous_champion": ending.previous_champion,
        }
    )
    workspace = workspace_in_tree(night)
    content = collect(workspace, facts)
    write_report(report_of(night), content)
    if content.doubts is not None:
        write_lists(night.folder, content.doubts.listed, read_manifest(workspace.dataset))


def report_failure(night: Night, error: BaseException) -> None:
    """Write the report of a night that was cut short. A fault in doing so must not hide the fault that it is about."""
    failure = failure_of(night, error)
    facts = _facts(night).model_copy(update={"sentence": failure.message, "failure": failure, **_champion(night)})
    try:
        write_report(report_of(night), collect(workspace_in_tree(night), facts))
    except (OSError, NightowlError, ValueError) as fault:
        say(f"the report of this night could not be written: {fault}")
        return
    say(f"report    {report_of(night)}")


def _champion(night: Night) -> dict[str, object]:
    """What the night pinned of the champion, where it came as far as that."""
    try:
        standing = read_champion(workspace_in_tree(night).champion)
    except DataError:
        return {"champion_known": False}
    return {"previous_champion": standing.version if standing else None}


def _facts(night: Night) -> NightFacts:
    return NightFacts(
        night_id=night.id,
        started_at=night.started_at,
        seconds=(datetime.now(UTC) - night.started_at).total_seconds(),
        code_commit=night.head,
        dirty=night.dirty,
        ending="failed",
        sentence="",
        rented=rented_by(night),
        stages=tuple(StageTiming(stage=r.stage, executed=r.executed, seconds=r.seconds) for r in runs_of(night)),
    )
