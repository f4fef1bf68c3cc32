"""The champion, or the reference, as pinned for a night: what the candidate is judged against, without the registry that
holds it."""

from pathlib import Path

from nightowl.errors import DataError, remedy
from nightowl.evaluation.instrument import Instrument
from nightowl.files import write_atomic
from nightowl.records import Record


class ChampionRecord(Record):
    """The champion as pinned for a night: the version that the candidate has to beat. `detections_sha256` names what its ONNX
    found on test when it was made, of which `dataset_version` is the manifest, and `instrument` what measured then."""

    detector: str
    version: str
    night_key: str
    classes: tuple[str, ...]
    image_size: int
    weights_sha256: str
    onnx_sha256: str
    dataset_version: str
    detections_sha256: str | None = None
    instrument: Instrument | None = None


def write_champion(path: Path, record: ChampionRecord | None) -> None:
    """Publish the record at `path`, or `null`."""
    write_atomic(path, (record.model_dump_json(indent=2) if record else "null") + "\n")


def read_champion(path: Path) -> ChampionRecord | None:
    """The pinned champion, or None where the file says that there is none (`null`).

    Raises:
        DataError: when nothing is pinned, or what is there is not such a record.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no pinned champion; {remedy(path)}") from None
    if content.strip() == b"null":
        return None
    try:
        return ChampionRecord.model_validate_json(content)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not the record of a champion ({reason}); pin the inputs again") from error
