"""The reaper as a task: it may be tried again at any time, as it looks anew at what is there."""

from datetime import UTC, datetime
from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.cloud.ec2_session import Aws
from nightowl.errors import StageFailed
from nightowl.machines.reach import machines_of
from nightowl.machines.reaper import in_words, reap
from nightowl.night.checkout import checkout_root
from nightowl.settings import load_settings
from tasks.say import say


@task(name="reap", retries=2, retry_delay_seconds=60, cache_policy=NO_CACHE)
def reap_overdue() -> list[str]:
    """End what is past its deadline; returns what was done, in lines. Raises StageFailed when something is left or unclear."""
    machines = machines_of(load_settings(checkout_root(Path.cwd())))
    harvest = reap(Aws(machines.region, machines.endpoint_ec2), datetime.now(UTC))
    lines = in_words(harvest)
    for line in lines:
        say(line)
    if not harvest.clean:
        raise StageFailed("; ".join(lines))
    return lines
