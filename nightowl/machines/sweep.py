"""Ending everything that carries a run's tag, and counting what is left until it is nothing.

A round asks AWS what is there and ends it; rounds follow until two in a row find nothing. It may be stopped at any point, by
anything: the next round, of whomever, goes on from what is there.
"""

import time
from collections.abc import Callable

from nightowl.cloud.ec2_groups import delete_group, groups_with
from nightowl.cloud.ec2_instances import (
    delete_interface,
    delete_volume,
    instances_with,
    interfaces_with,
    terminate,
    volumes_with,
)
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.ec2_tags import OURS, RUN
from nightowl.cloud.ec2_templates import delete_template, templates_with
from nightowl.machines.engine import Remains

TIMEOUT_SECONDS, PAUSE_SECONDS = 600.0, 5.0
_LOOKS = 2  # AWS's answers may be seconds old


def sweep(
    aws: Aws,
    run_id: str,
    timeout_seconds: float = TIMEOUT_SECONDS,
    pause_seconds: float = PAUSE_SECONDS,
    sleep: Callable[[float], object] = time.sleep,
) -> Remains:
    """End it all; returns what is left after `timeout_seconds`: nothing, unless AWS is slow or does not let us."""
    rounds, clean = max(_LOOKS, int(timeout_seconds / pause_seconds)), 0
    for number in range(rounds):
        remains = _round(aws, run_id)
        clean = clean + 1 if remains.nothing else 0
        if clean == _LOOKS:
            break
        if number < rounds - 1:
            sleep(pause_seconds)
    return remains


def _round(aws: Aws, run_id: str) -> Remains:
    """End what is there; returns what that was. Groups go first, as they would replace machines; the template last, as groups
    start machines from it."""
    tags = {**OURS, RUN: run_id}
    groups, instances = groups_with(aws, tags), instances_with(aws, tags)
    for group in groups:
        if not group.ending:
            delete_group(aws, group.name)
    terminate(aws, [instance.id for instance in instances if instance.costs])
    volumes, interfaces = volumes_with(aws, tags), interfaces_with(aws, tags)
    for volume, is_free in volumes:
        if is_free:
            delete_volume(aws, volume)
    for interface, is_free in interfaces:
        if is_free:
            delete_interface(aws, interface)
    templates = templates_with(aws, tags)
    for template in templates if not groups else ():
        delete_template(aws, template.name)
    return Remains(
        instances=tuple(instance.id for instance in instances),
        groups=tuple(group.name for group in groups),
        templates=tuple(template.name for template in templates),
        others=tuple(each for each, _ in (*volumes, *interfaces)),
    )
