"""In which precision each format ships: tried in order of preference, until the file keeps the limits of its precision.

The ONNX is what must pass; another format begins where the ONNX ended, may go on to later precisions than it, and is left out
where none of them passes. A precision that cannot be made at all has failed like one that says something else.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from nightowl.errors import StageFailed
from nightowl.evaluation.openvino import OpenVinoRunner
from nightowl.export.attempt import Tried, hold, not_made
from nightowl.export.make import make
from nightowl.export.openvino import convert
from nightowl.export.parity import Attempt, FormatParity
from nightowl.export.trained import Trained
from nightowl.export_params import ExportParams, Precision
from nightowl.files import sha256_file


def try_onnx(export: ExportParams, trained: Trained, path: Path) -> list[Tried]:
    """Every precision up to the first that passes; the last one tried is what lies at `path`.

    Raises:
        StageFailed: when the last in order cannot be made, so that there is no file at all.
    """
    tried: list[Tried] = []
    for precision in export.order():
        try:
            make(precision, trained, export, path)
            tried.append(hold(precision, trained, export, path))
        except StageFailed as error:
            if precision == export.order()[-1]:
                raise
            tried.append(not_made(precision, error))
        if tried[-1].attempt.passed:
            break
    return tried


def try_openvino(export: ExportParams, trained: Trained, onnx: Path, precision: Precision, xml: Path) -> FormatParity:
    """OpenVINO's form at `xml`, its weights beside it; of the file `onnx`, which is in `precision`, or of a later one.

    Raises:
        UserError: when OpenVINO is not installed.
    """
    order, attempts = export.order(), list[Attempt]()
    for each in order[order.index(precision) :]:
        attempts.append(_openvino_in(each, export, trained, onnx if each == precision else None, xml))
        if attempts[-1].passed:
            break
    files = (xml, xml.with_suffix(".bin"))
    if not attempts[-1].passed:
        for path in files:
            path.unlink(missing_ok=True)
    return FormatParity(
        name="openvino",
        required="openvino" in export.required_formats,
        attempts=tuple(attempts),
        files={path.name: sha256_file(path) for path in files if path.exists()},
    )


def _openvino_in(precision: Precision, export: ExportParams, trained: Trained, onnx: Path | None, xml: Path) -> Attempt:
    with TemporaryDirectory(prefix="nightowl-") as scratch:
        try:
            source = onnx or Path(scratch) / "model.onnx"
            if onnx is None:
                make(precision, trained, export, source)
            convert(source, xml)
        except StageFailed as error:
            return not_made(precision, error).attempt
    return hold(precision, trained, export, xml, OpenVinoRunner).attempt
