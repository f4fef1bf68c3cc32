"""A registered version and its champion history, read from what MLflow keeps: tags and one alias."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from nightowl.errors import RegistryError, UserError
from nightowl.records import Record
from nightowl.registry.history import Event, ever_champion, settled, taken_back
from nightowl.registry.record import BundleRecord

if TYPE_CHECKING:
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

CHAMPION, REFERENCE = "champion", "reference"
RECORD_TAG, SUMS_TAG = "nightowl.record", "nightowl.sums_sha256"
EVENT_TAG = "nightowl.event."
State = Literal["champion", "taken back", "former champion", "not promoted"]


def require_version(text: str) -> str:
    """`text`, if it can name a version. Raises UserError else; whether there is such a version the registry knows."""
    if text in (CHAMPION, REFERENCE) or (text.isascii() and text.isdigit()):
        return text
    raise UserError(f"a version is a number, {CHAMPION} or {REFERENCE}; got {text!r}; nightowl models NAME lists them")


class VersionInfo(Record):
    """One registered version: its number, its record, and how it stands now. `forced` says that the verdict was overridden."""

    version: str
    record: BundleRecord
    state: State
    forced: bool = False

    @property
    def champion(self) -> bool:
        return self.state == "champion"

    @property
    def taken_back(self) -> bool:
        return self.state == "taken back"


def infos_of(model: "RegisteredModel", versions: "Iterable[ModelVersion]") -> list[VersionInfo]:
    """All versions that nightowl made, oldest first. What another tool put beside them has no record and is left out."""
    champion, events = champion_of(model), history_of(model)
    forced = {event.version for event in events if event.state == "done" and event.forced}
    infos = [
        VersionInfo(
            version=str(version.version),
            record=_record_of(version),
            state=_state(str(version.version), champion, events),
            forced=str(version.version) in forced,
        )
        for version in versions
        if RECORD_TAG in version.tags
    ]
    return sorted(infos, key=lambda info: int(info.version))


def champion_of(model: "RegisteredModel") -> str | None:
    version = model.aliases.get(CHAMPION)
    return None if version is None else str(version)


def events_of(model: "RegisteredModel") -> list[Event]:
    """The events as written, in order; see `history.settled` for those that a kill left incomplete."""
    texts = [value for key, value in sorted(model.tags.items()) if key.startswith(EVENT_TAG)]
    try:
        return [Event.model_validate_json(text) for text in texts]
    except ValidationError as error:
        raise RegistryError(f"{model.name}: its history cannot be read: {error.errors()[0]['msg']}") from error


def history_of(model: "RegisteredModel") -> list[Event]:
    return settled(events_of(model), champion_of(model))


def _record_of(version: "ModelVersion") -> BundleRecord:
    try:
        return BundleRecord.model_validate_json(version.tags[RECORD_TAG])
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise RegistryError(
            f"{version.name} version {version.version}: its record cannot be read: {where}: {fault['msg']}"
        ) from error


def _state(version: str, champion: str | None, events: list[Event]) -> State:
    if version == champion:
        return "champion"
    if version in taken_back(events):
        return "taken back"
    return "former champion" if version in ever_champion(events) else "not promoted"
