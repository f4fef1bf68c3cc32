"""Do the credentials, and the role that machines get, have what our policies say? Asked of IAM, by the name of each action."""

from collections.abc import Iterator

from nightowl.cloud.ec2_facts import profile_role, rights, role_arn
from nightowl.cloud.ec2_session import Aws
from nightowl.machine_settings import MachineSettings
from nightowl.machines.findings import Finding
from nightowl.machines.policies import NOWHERE, Places, policy, statements, unfilled, values_of


def check_rights(settings: MachineSettings, aws: Aws, arn: str, places: Places = NOWHERE) -> Iterator[Finding]:
    """A finding for whoever `arn` is, and one for the nodes' role. Whoever is root may do everything."""
    node_role = profile_role(aws, settings.instance_profile)
    values = values_of(settings, arn.split(":")[4], node_role, places)
    if not arn.endswith(":root"):
        yield _finding(aws, "rights here", role_arn(arn), policy("orchestrator", values))
    if node_role:
        yield _finding(aws, "rights of nodes", node_role, policy("node", values))


def _finding(aws: Aws, what: str, arn: str, text: str) -> Finding:
    lacking = missing(aws, arn, text)
    if lacking:
        return Finding(what=what, state="wrong", said=f"{arn} lacks {', '.join(lacking)}: see docs/permissions.md")
    left = unfilled(text)
    return Finding(what=what, state="fine", said=f"not checked: {', '.join(left)}" if left else "all there")


def missing(aws: Aws, arn: str, text: str) -> list[str]:
    """The actions of the policy `text` that IAM would deny to `arn`, in order."""
    found: dict[str, None] = {}
    for each in statements(text):
        for resource in each.resources:
            context = {key: [values[0].replace("*", "x")] for key, values in each.context.items()}
            for right in rights(aws, arn, each.actions, [resource], context):
                if not right.allowed:
                    found[right.action] = None
    return list(found)
