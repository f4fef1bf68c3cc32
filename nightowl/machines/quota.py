"""Does the account's quota of vCPUs leave room for a run's machines, beside what it runs already?"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nightowl.cloud.ec2_facts import vcpus
from nightowl.cloud.ec2_quotas import quota_code, quota_vcpus, vcpus_in_use
from nightowl.cloud.ec2_session import Aws
from nightowl.machine_settings import MachineSettings
from nightowl.machines.findings import Finding


class Room(NamedTuple):
    """vCPUs that machines of one type need, what the quota allows, and what the account uses of it."""

    who: str
    needed: int
    quota: float
    used: int


def check_quota(settings: MachineSettings, aws: Aws) -> Iterator[Finding]:
    """For spot, and for full price where that may come: one of the types within its quota is enough."""
    sizes = vcpus(aws, settings.instance_types)
    for full_price in [False] if settings.on_demand == "never" else [False, True]:
        codes = {kind: code for kind in sizes if (code := quota_code(kind, full_price))}
        quotas = {code: quota_vcpus(aws, code) for code in set(codes.values())}
        used = vcpus_in_use(aws, full_price) if quotas else {}
        rooms = [
            Room(f"{settings.nodes} x {kind}", sizes[kind] * settings.nodes, quotas[code], used.get(code, 0))
            for kind, code in codes.items()
        ]
        yield quota_finding(rooms, "on-demand" if full_price else "spot")


def quota_finding(rooms: Sequence[Room], word: str) -> Finding:
    """A quota that is too small is wrong; one that is used up is no fault: machines come when others have gone."""
    small = [room for room in rooms if room.quota < room.needed]
    full = [room for room in rooms if room.quota >= room.needed > room.quota - room.used]
    said = [f"{room.who} need {room.needed} {word} vCPUs, the quota is {room.quota:g}" for room in small]
    said += [
        f"{room.who} need {room.needed} {word} vCPUs, {room.used} of the quota of {room.quota:g} are in use" for room in full
    ]
    if not rooms:
        return Finding(what="quota", state="unknown", said=f"the {word} quota of these types is not known here")
    if len(small) == len(rooms):
        return Finding(what="quota", state="wrong", said=f"{'; '.join(said)}: ask for more under Service Quotas")
    if len(said) == len(rooms):
        return Finding(what="quota", state="unknown", said=f"{'; '.join(said)}: it waits until they are free")
    return Finding(what="quota", state="fine", said="; ".join(said) or f"enough {word} vCPUs")
