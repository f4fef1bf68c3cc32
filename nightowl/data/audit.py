"""The audit: every finding under its policy, counted by kind, and what of it stops the night. Pure."""

from collections.abc import Sequence

from nightowl.audit_params import AuditParams, Policy
from nightowl.data.drift import Drift
from nightowl.data.findings import SEVERITIES, SEVERITY, WHOLE, Finding, Kind, Severity
from nightowl.records import Record


class KindRow(Record):
    """One kind of finding: how often, on how many files, under which policy; `fails`: why it stops the night, or None."""

    kind: Kind
    severity: Severity
    policy: Policy
    num_findings: int
    num_files: int
    fails: str | None


class Audit(Record):
    """The audit of a dataset version; rows by severity, then by number. `compared_with` is the champion's dataset version."""

    dataset_version: str
    num_images: int
    compared_with: str | None
    rows: tuple[KindRow, ...]
    drift: tuple[Drift, ...]

    @property
    def failing(self) -> tuple[KindRow, ...]:
        return tuple(row for row in self.rows if row.fails)

    def count(self, severity: Severity) -> int:
        return sum(row.num_findings for row in self.rows if row.severity == severity)


class AuditFile(Record):
    """What `nightowl data audit --json` writes."""

    audit: Audit
    findings: tuple[Finding, ...]


def policy_of(kind: Kind, params: AuditParams) -> Policy:
    policy: Policy = getattr(params.policies, kind)
    return policy


def with_policies(findings: Sequence[Finding], params: AuditParams) -> list[Finding]:
    """`findings` with those that were kept so far, and whose kind is to be quarantined, as quarantined images."""
    return [
        finding.model_copy(update={"action": "image quarantined"})
        if finding.action == "kept" and finding.path != WHOLE and policy_of(finding.kind, params) == "quarantine"
        else finding
        for finding in findings
    ]


def rows_of(findings: Sequence[Finding], num_images: int, params: AuditParams) -> tuple[KindRow, ...]:
    """One row for each kind that occurs."""
    by_kind: dict[Kind, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    rows = [_row(kind, found, num_images, params) for kind, found in by_kind.items()]
    return tuple(sorted(rows, key=lambda row: (SEVERITIES.index(row.severity), -row.num_findings, row.kind)))


def _row(kind: Kind, findings: Sequence[Finding], num_images: int, params: AuditParams) -> KindRow:
    policy, num_files = policy_of(kind, params), len({finding.path for finding in findings})
    limit, share = params.fail_above.get(kind), num_files / max(1, num_images)
    fails = None
    if policy == "fail":
        fails = f"params prepare.audit.policies.{kind} is fail"
    elif limit is not None and share > limit:
        fails = f"{share:.1%} of the images, at most {limit:.1%} are allowed (params prepare.audit.fail_above.{kind})"
    return KindRow(
        kind=kind, severity=SEVERITY[kind], policy=policy, num_findings=len(findings), num_files=num_files, fails=fails
    )
