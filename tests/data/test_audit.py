from typing import get_args

import pytest

from nightowl.audit_params import AuditParams, AuditPolicies
from nightowl.data.audit import rows_of, with_policies
from nightowl.data.findings import SEVERITY, WHOLE, Action, Finding, Kind


def finding(kind: Kind, path: str = "a", action: Action = "kept") -> Finding:
    return Finding(kind=kind, path=path, detail="", action=action)


def test_every_kind_has_a_severity_and_a_policy_and_nothing_else_has() -> None:
    assert list(SEVERITY) == list(get_args(Kind)) == list(AuditPolicies.model_fields)


@pytest.mark.parametrize(
    ("kind", "policy", "path", "action"),
    [
        ("exif_rotation", "quarantine", "a", "image quarantined"),
        ("exif_rotation", "allow", "a", "kept"),
        ("exif_rotation", "fail", "a", "kept"),
        ("same_content", "quarantine", WHOLE, "kept"),
    ],
)
def test_quarantine_takes_the_image_out(kind: Kind, policy: str, path: str, action: str) -> None:
    params = AuditParams(policies=AuditPolicies.model_validate({kind: policy}))
    assert [f.action for f in with_policies([finding(kind, path)], params)] == [action]


def test_what_was_done_already_stays_done() -> None:
    clipped = finding("out_of_frame_box", action="clipped")
    assert with_policies([clipped], AuditParams()) == [clipped]


def test_rows_are_by_severity_then_by_number_and_count_files_once() -> None:
    found = [finding("exif_rotation"), finding("zero_area_box"), finding("zero_area_box"), finding("unknown_class", "b")]
    rows = rows_of([*found, finding("zero_area_box", "c")], 10, AuditParams())
    assert [(row.severity, row.kind, row.num_findings, row.num_files) for row in rows] == [
        ("error", "zero_area_box", 3, 2),
        ("error", "unknown_class", 1, 1),
        ("notice", "exif_rotation", 1, 1),
    ]
    assert [row.fails for row in rows] == [None, "params prepare.audit.policies.unknown_class is fail", None]


@pytest.mark.parametrize(("num", "fails"), [(2, None), (3, True)])
def test_more_than_a_fraction_of_the_images_fails_whatever_the_policy(num: int, fails: bool | None) -> None:
    params = AuditParams(fail_above={"exif_rotation": 0.2})
    (row,) = rows_of([finding("exif_rotation", str(n)) for n in range(num)], 10, params)
    assert (row.fails is not None) is bool(fails)
    if fails:
        assert row.fails == ("30.0% of the images, at most 20.0% are allowed (params prepare.audit.fail_above.exif_rotation)")


def test_nothing_found_has_no_row() -> None:
    assert rows_of([], 0, AuditParams()) == ()
