"""docs/audit.md states each kind's severity and default policy; here they are held to the code."""

import re
from pathlib import Path

from nightowl.audit_params import AuditPolicies
from nightowl.data.findings import SEVERITY

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "audit.md").read_text(encoding="utf-8")


def test_the_page_has_every_kind_with_its_severity_and_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| \*\*(\w+)\*\*", PAGE, re.MULTILINE)
    defaults = AuditPolicies().model_dump()
    assert rows == [(kind, severity, defaults[kind]) for kind, severity in SEVERITY.items()]
