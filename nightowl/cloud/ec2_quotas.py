"""Quotas of vCPUs: how many of a family of machines an account may run in a region, and how many of them it runs now."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from nightowl.cloud.ec2_facts import vcpus
from nightowl.cloud.ec2_session import Aws

# Codes of Service Quotas, by the family that a type's name begins with; they count vCPUs.
_SPOT = {"g": "L-3819A6DF", "vt": "L-3819A6DF", "p": "L-7212CCBC"} | dict.fromkeys("acdhimrtz", "L-34B43A08")
_FULL = {"g": "L-DB2E81BA", "vt": "L-DB2E81BA", "p": "L-417A185B"} | dict.fromkeys("acdhimrtz", "L-1216C47A")


def quota_code(instance_type: str, full_price: bool = False) -> str | None:
    """Which quota a machine of that type counts against; None where its family's is not known here."""
    family = instance_type.partition(".")[0]
    letters = re.match(r"[a-z]*", family)[0]  # type: ignore[index]
    if (family.startswith(("p5", "p6")) and not full_price) or letters.startswith(("hpc", "inf", "trn", "dl")):
        return None
    return (_FULL if full_price else _SPOT).get("vt" if letters.startswith("vt") else family[:1])


def quota_vcpus(aws: Aws, code: str) -> float:
    """How many vCPUs the quota allows at a time."""
    return float(aws.call("service-quotas", "GetServiceQuota", ServiceCode="ec2", QuotaCode=code)["Quota"]["Value"])


def vcpus_in_use(aws: Aws, full_price: bool = False) -> Mapping[str, int]:
    """vCPUs of the machines that are there or starting, whoever rents them, by the code of the quota that they count against;
    spot machines, or those at full price."""
    wanted = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    if not full_price:  # AWS knows no filter for those at full price
        wanted.append({"Name": "instance-lifecycle", "Values": ["spot"]})
    rows = [
        row
        for reservation in aws.pages("ec2", "DescribeInstances", "Reservations", Filters=wanted)
        for row in reservation["Instances"]
        if row.get("InstanceLifecycle") == (None if full_price else "spot")
    ]
    by_type = {row["InstanceType"] for row in rows if _told(row) is None}
    sizes = vcpus(aws, sorted(by_type)) if by_type else {}
    used: Counter[str] = Counter()
    for row in rows:
        code = quota_code(row["InstanceType"], full_price)
        if code is not None:
            used[code] += _told(row) or sizes[row["InstanceType"]]
    return used


def _told(row: Mapping[str, Any]) -> int | None:
    """The vCPUs that the machine was started with, where AWS says so."""
    options = row.get("CpuOptions", {})
    return options["CoreCount"] * options["ThreadsPerCore"] if options.keys() >= {"CoreCount", "ThreadsPerCore"} else None
