"""Would machines start? Everything that can be known before one is asked for: who asks, the clock, the bucket, image, network,
kinds of machine, quotas, prices and rights. Nothing is created."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from nightowl.cloud.ec2_facts import (
    bucket_region,
    caller,
    find_image,
    find_subnets,
    group_admits_only_itself,
    offered,
    placement_score,
    profile_role,
)
from nightowl.cloud.ec2_session import Aws
from nightowl.cloud.storage import parse_url
from nightowl.errors import RemoteError
from nightowl.machine_settings import MachineSettings
from nightowl.machines.findings import Finding, looked_at
from nightowl.machines.policies import NOWHERE, Places
from nightowl.machines.price import in_usd, read_prices
from nightowl.machines.quota import check_quota
from nightowl.machines.rights import check_rights

_CLOCK_SECONDS = 60.0  # AWS refuses at 5 minutes, and leases are compared with this clock
_LOW_SCORE = 3  # of 10
Check = Callable[[MachineSettings, Aws], Iterator[Finding]]


def preflight(
    settings: MachineSettings, aws: Aws, s3_endpoint: str | None = None, places: Places = NOWHERE
) -> Iterator[Finding]:
    """A finding for each thing, as it is looked at. Without usable credentials there is one finding only. `places`: see
    `policies.values_of`."""
    try:
        arn = caller(aws)
    except RemoteError as error:
        yield Finding(what="credentials", state="wrong", said=str(error))
        return
    yield Finding(what="credentials", state="fine", said=arn)
    yield from _clock(aws)
    needed: dict[str, Check] = {"image": _image, "network": _network, "instance profile": _profile, "machines": _machines}
    good_to_know: dict[str, Check] = {"quota": check_quota, "capacity": _capacity, "price": _price}
    if s3_endpoint is None:  # another store than AWS's has no region
        needed = {"board": _board, **needed}
    for what, check in (needed | good_to_know).items():
        yield from looked_at(what, partial(check, settings, aws), what in needed)
    yield from looked_at("rights", partial(check_rights, settings, aws, arn, places), needed=False)


def _clock(aws: Aws) -> Iterator[Finding]:
    ahead = aws.ahead_seconds
    if ahead is None:
        yield Finding(what="clock", state="unknown", said="AWS did not say what time it is")
    elif abs(ahead) > _CLOCK_SECONDS:
        side = "ahead of" if ahead > 0 else "behind"
        said = f"this machine's clock is {abs(ahead):.0f} s {side} AWS's: set it (timedatectl set-ntp true)"
        yield Finding(what="clock", state="wrong", said=said)
    else:
        yield Finding(what="clock", state="fine", said=f"within {max(1, round(abs(ahead)))} s of AWS's")


def _board(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    bucket = parse_url(settings.board).bucket
    region = bucket_region(aws, bucket)
    if region != settings.region:
        said = f"bucket {bucket} is in {region}, the machines are to be in {settings.region}: choose a bucket in their region"
        yield Finding(what="board", state="wrong", said=said)
    else:
        yield Finding(what="board", state="fine", said=f"bucket {bucket} is in {region}")


def _image(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    image = find_image(aws, settings.image)
    yield Finding(what="image", state="fine", said=f"{settings.image} is {image.id}")


def _network(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    subnets = find_subnets(aws, settings.subnets)
    vpc, closed = group_admits_only_itself(aws, settings.security_group)
    elsewhere = [subnet.id for subnet in subnets if subnet.vpc != vpc]
    if elsewhere:
        said = f"{', '.join(elsewhere)} not in {vpc}, the VPC of {settings.security_group}: name a security group of theirs"
        yield Finding(what="network", state="wrong", said=said)
    elif not closed:
        said = f"{settings.security_group} admits others than itself: remove those rules; nodes need only each other"
        yield Finding(what="network", state="wrong", said=said)
    else:
        zones = ", ".join(sorted(subnet.zone for subnet in subnets))
        yield Finding(what="network", state="fine", said=f"{zones}; {settings.security_group} admits only itself")


def _profile(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    role = profile_role(aws, settings.instance_profile)
    if role is None:
        said = f"there is no instance profile {settings.instance_profile} with a role: see docs/permissions.md"
        yield Finding(what="instance profile", state="wrong", said=said)
    else:
        yield Finding(what="instance profile", state="fine", said=role)


def _machines(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    zones = [subnet.zone for subnet in find_subnets(aws, settings.subnets)]
    there = offered(aws, settings.instance_types, zones)
    missing = [kind for kind in settings.instance_types if not any(kind == each for each, _ in there)]
    if len(missing) == len(settings.instance_types):
        said = f"AWS has no {', '.join(missing)} in {', '.join(zones)}: name other instance_types or subnets"
        yield Finding(what="machines", state="wrong", said=said)
    else:
        but = f"; not there: {', '.join(missing)}" if missing else ""
        had = ", ".join(kind for kind in settings.instance_types if kind not in missing)
        yield Finding(what="machines", state="fine", said=f"{had} in {', '.join(zones)}{but}")


def _capacity(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    score = placement_score(aws, settings.instance_types, settings.nodes)
    if score is None or score < _LOW_SCORE:
        said = "AWS says nothing about it" if score is None else f"AWS expects little: {score} of 10; it may take long"
        yield Finding(what="capacity", state="unknown", said=said)
    else:
        yield Finding(what="capacity", state="fine", said=f"AWS expects to have it: {score} of 10")


def _price(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    """What all nodes cost an hour at most, at spot; at full price where that may come."""
    zones = [subnet.zone for subnet in find_subnets(aws, settings.subnets)]
    prices = read_prices(aws, settings.instance_types, datetime.now(UTC))
    dearest = prices.dearest_now(settings.instance_types, zones)
    if settings.on_demand != "never":
        full = [prices.full[kind] for kind in settings.instance_types]
        dearest = None if None in full else max(price for price in full if price is not None)
    total, cap = None if dearest is None else dearest * settings.nodes, settings.cost_cap_usd_per_hour
    said = f"{in_usd(total)} USD an hour for {settings.nodes} at most"
    if cap is not None and (total is None or total > cap):
        yield Finding(what="price", state="wrong", said=f"{said}; cost_cap_usd_per_hour is {cap:g}")
    else:
        yield Finding(what="price", state="unknown" if total is None else "fine", said=said)
