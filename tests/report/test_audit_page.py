from pathlib import Path

from nightowl.audit_params import AuditParams
from nightowl.data.audit import Audit, rows_of
from nightowl.data.drift import Drift
from nightowl.data.findings import WHOLE, Finding, Kind
from nightowl.data.manifest import Image, Manifest
from nightowl.files import sha256_file
from nightowl.report.audit import NUM_OF_A_KIND, audit_page, choose, view_of
from nightowl.report.content import AuditView
from tests.datasets import write_image

HOSTILE = "<script>alert(1)</script>.png"


def finding(kind: Kind, path: str, other: str | None = None, box: tuple[float, float, float, float] | None = None) -> Finding:
    return Finding(kind=kind, path=path, detail=f"about {path}", action="kept", other=other, box=box)


def an_audit(findings: list[Finding], compared_with: str | None = None) -> Audit:
    drift = (Drift(what="classes", psi=0.5, limit=0.25, drifted=True, sentence="PSI 0.500, limit 0.250; a went"),)
    rows = rows_of(findings, 10, AuditParams())
    return Audit(dataset_version="d" * 64, num_images=10, compared_with=compared_with, rows=rows, drift=drift)


def view(root: Path, findings: list[Finding], compared_with: str | None = None) -> AuditView:
    names = ("a.png", "b.png", HOSTILE.replace("/", ""))
    files = [write_image(root / name, seed=number) for number, name in enumerate(names)]
    images = [Image(file.name, sha256_file(file), 1, 64, 48, "train", ()) for file in files]
    return view_of(an_audit(findings, compared_with), findings, Manifest(("x",), tuple(images), "rule"), root)


def test_copies_are_shown_as_pairs_and_boxes_on_their_image(tmp_path: Path) -> None:
    found = view(tmp_path, [finding("near_duplicate", "a.png", "b.png"), finding("zero_area_box", "b.png", box=(70, 9, 70, 9))])
    assert [[picture.path for picture in example.pictures] for example in found.examples] == [["b.png"], ["a.png", "b.png"]]
    box = found.examples[0].pictures[0].box
    assert box is not None and box[2] > box[0] and box[3] > box[1] and box[2] <= 64, "what has no area is drawn all the same"
    assert audit_page(found, "data", None).count("data:image/jpeg") == 3


def test_a_page_says_whether_a_night_would_stop_and_why(tmp_path: Path) -> None:
    found = view(tmp_path, [finding("unknown_class", "a.png")])
    page = audit_page(found, "data", "because of one")
    assert "A night would stop" in page and "because of one" in page
    assert "params prepare.audit.policies.unknown_class is fail" in page
    assert "A night would go on" in audit_page(view(tmp_path, []), "data", None)


def test_drift_is_shown_where_there_was_something_to_compare_with(tmp_path: Path) -> None:
    assert "PSI 0.500" not in audit_page(view(tmp_path, []), "data", None)
    assert "PSI 0.500" in audit_page(view(tmp_path, [], "e" * 64), "data", None)


def test_a_hostile_name_stays_a_name(tmp_path: Path) -> None:
    name = HOSTILE.replace("/", "")
    page = audit_page(
        view(tmp_path, [finding("near_duplicate", name, "a.png"), finding("exif_rotation", HOSTILE)]), HOSTILE, None
    )
    assert "<script" not in page and "&lt;script&gt;" in page


def test_an_image_that_changed_since_it_was_pinned_is_not_shown(tmp_path: Path) -> None:
    findings = [finding("near_duplicate", "a.png", "b.png")]
    files = [write_image(tmp_path / name) for name in ("a.png", "b.png")]
    images = tuple(Image(file.name, "0" * 64, 1, 64, 48, "train", ()) for file in files)
    found = view_of(an_audit(findings), findings, Manifest(("x",), images, "rule"), tmp_path)
    assert [picture.jpeg for picture in found.examples[0].pictures] == [None, None]
    assert "image changed since it was pinned" in audit_page(found, "data", None)


def test_a_few_of_each_kind_are_shown_and_none_of_an_image_that_is_not_there() -> None:
    findings = [finding("zero_area_box", "a.png", box=(1, 1, 1, 1))] * 9 + [finding("near_duplicate", "a.png", "gone.png")]
    findings.append(finding("no_background_images", WHOLE))
    assert [f.kind for f in choose(an_audit(findings), findings, {"a.png"})] == ["zero_area_box"] * NUM_OF_A_KIND
