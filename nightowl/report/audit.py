"""The audit as something to look at: copies side by side and boxes at fault, in the report and as a page of its own.

Pixels are those that were pinned or none, as in the gallery.
"""

from collections.abc import Sequence
from pathlib import Path

from nightowl import __version__
from nightowl.data.audit import Audit
from nightowl.data.findings import SEVERITIES, Finding
from nightowl.data.images import decode_bgr, verified_bytes
from nightowl.data.manifest import Image, Manifest
from nightowl.errors import DataError
from nightowl.report.content import AuditExample, AuditPicture, AuditView
from nightowl.report.gallery import encode_jpeg
from nightowl.report.page import environment

NUM_OF_A_KIND, NUM_EXAMPLES = 4, 24
MAX_SIDE_PX = 300


def view_of(audit: Audit, findings: Sequence[Finding], manifest: Manifest, source: Path) -> AuditView:
    """An audit with examples; images of `manifest` lie under `source`, others are left out."""
    by_path = {image.path: image for image in manifest.images}
    first = {finding.kind: finding for finding in reversed(findings)}
    return AuditView(
        audit=audit,
        first=tuple(first[row.kind] for row in audit.rows),
        examples=tuple(_example(finding, by_path, source) for finding in choose(audit, findings, set(by_path))),
    )


def choose(audit: Audit, findings: Sequence[Finding], images: set[str]) -> list[Finding]:
    """The findings to show: copies and boxes, the first few of each kind, in the order of the audit's rows."""
    chosen: list[Finding] = []
    for row in audit.rows:
        shown = [f for f in findings if f.kind == row.kind and f.path in images and (f.box is not None or f.other in images)]
        chosen += shown[:NUM_OF_A_KIND]
    return chosen[:NUM_EXAMPLES]


def audit_page(view: AuditView, target: str, stops: str | None) -> str:
    """A page of its own about the audit of `target`; `stops` is why a night would stop, if it would."""
    template = environment().get_template("audit_page.html.j2")
    return template.render(view=view, target=target, stops=stops, severities=SEVERITIES, nightowl_version=__version__)


def _example(finding: Finding, by_path: dict[str, Image], source: Path) -> AuditExample:
    paths = (finding.path, *([finding.other] if finding.other else []))
    return AuditExample(finding=finding, pictures=tuple(_picture(by_path[path], finding, source) for path in paths))


def _picture(image: Image, finding: Finding, source: Path) -> AuditPicture:
    jpeg, note = None, None
    scale = min(1.0, MAX_SIDE_PX / max(image.width, image.height))
    width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    try:
        jpeg, width, height = encode_jpeg(decode_bgr(verified_bytes(source, image), image.path), MAX_SIDE_PX)
    except DataError as error:
        note = str(error)
    box = _inside(finding.box, image, width, height) if finding.box else None
    return AuditPicture(path=image.path, width=width, height=height, jpeg=jpeg, note=note, box=box)


def _inside(box: tuple[float, float, float, float], image: Image, width: int, height: int) -> tuple[float, float, float, float]:
    """The box on the thumbnail: what is outside is drawn along the edge, and nothing is too small to see."""
    xs = sorted(min(max(x * width / image.width, 2.0), width - 2.0) for x in box[0::2])
    ys = sorted(min(max(y * height / image.height, 2.0), height - 2.0) for y in box[1::2])
    return xs[0] - 1, ys[0] - 1, xs[1] + 1, ys[1] + 1
