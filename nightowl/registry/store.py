"""The registry: every version of every detector, on MLflow, and which of them is champion.

A version exists once its files are there: they go up first, and the version is made last, in one transaction with its record
and the digest of its file list. Whatever is killed before leaves no version. The champion is MLflow's alias `champion`; the
reference follows from the history, and the alias `reference` shows it to other tools.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nightowl.errors import RegistryError, did_you_mean
from nightowl.files import sha256_file
from nightowl.registry.connect import connect, explained, holding, sqlite_path, sqlite_uri, without_password
from nightowl.registry.decisions import reference_of
from nightowl.registry.download import download
from nightowl.registry.history import Action, Event, previous_champion, settled
from nightowl.registry.live import MlflowSink
from nightowl.registry.record import BundleRecord
from nightowl.registry.rules import refusal_to_promote
from nightowl.registry.sums import NAME as SUMS
from nightowl.registry.sums import verify_sums
from nightowl.registry.upload import BUNDLE, experiment_of, upload
from nightowl.registry.version import (
    CHAMPION,
    EVENT_TAG,
    RECORD_TAG,
    REFERENCE,
    SUMS_TAG,
    VersionInfo,
    champion_of,
    events_of,
    history_of,
    infos_of,
)
from nightowl.settings import Settings, home_of

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities.model_registry import ModelVersion, RegisteredModel

_REASON_LENGTH = 1000


class Registry:
    """The versions of all detectors. Every method raises RegistryError with one clear line when MLflow cannot do its part."""

    def __init__(self, client: "MlflowClient", uri: str, artifacts: str | None, home: Path) -> None:
        self.uri = uri
        self.home = home
        self._client = client
        self._artifacts = artifacts

    def describe(self) -> str:
        """Where the registry is, in words for people."""
        return str(sqlite_path(self.uri)) if self.uri.startswith("sqlite:") else without_password(self.uri)

    def register(self, detector: str, bundle: Path, record: BundleRecord) -> str:
        """Upload the folder `bundle` and make it a version; returns its number. The same night again returns the same one."""
        if record.detector != detector:
            raise RegistryError(f"a bundle of {record.detector} cannot be registered as {detector}")
        made = self._made_by(detector, record.night_id)
        if made is not None:
            return made
        sums = sha256_file(bundle / SUMS)
        verify_sums(bundle, sums, str(bundle))
        with explained(self.uri):
            with self._alone():
                experiment = experiment_of(self._client, detector, self._artifacts)
            run_id, source = upload(self._client, experiment, bundle, record)
            tags = {RECORD_TAG: record.model_dump_json(), SUMS_TAG: sums}
            with self._alone():
                if self._model(detector) is None:
                    self._client.create_registered_model(detector)
                return str(self._client.create_model_version(detector, source, run_id, tags=tags).version)

    def scalars_of(self, detector: str, key: str) -> MlflowSink:
        """Where the figures of the training `key` go while it runs; of a training that goes on, where they went before."""
        with explained(self.uri), self._alone():
            experiment = experiment_of(self._client, detector, self._artifacts)
        return MlflowSink(self._client, self.uri, experiment, key)

    def detectors(self) -> list[str]:
        """The names of all detectors that have a registered version."""
        with explained(self.uri):
            return sorted(model.name for model in self._client.search_registered_models(max_results=1000))

    def versions(self, detector: str) -> list[VersionInfo]:
        """All versions, oldest first; empty for a detector that has none."""
        with explained(self.uri):
            model = self._model(detector)
            return infos_of(model, self._pages(detector)) if model else []

    def version(self, detector: str, version_or_alias: str) -> VersionInfo:
        """One version by its number, or `champion`, or `reference`.

        Raises:
            RegistryError: when there is none such, naming those that exist.
        """
        with explained(self.uri):
            model = self._model(detector)
            number = champion_of(model) if model and version_or_alias == CHAMPION else version_or_alias
            if model and version_or_alias == REFERENCE:
                number = self._reference(model)
            found = self._numbered(detector, number)
            if model and found:
                return infos_of(model, [found])[0]
        known = ", ".join(info.version for info in self.versions(detector))
        if not known:
            others = self.detectors()
            near = did_you_mean(detector, others) or f"; there are: {', '.join(others) or 'none'}"
            raise RegistryError(f"no detector '{detector}' has a registered version{near}")
        wanted = version_or_alias if version_or_alias in (CHAMPION, REFERENCE) else f"version {version_or_alias!r}"
        raise RegistryError(f"{detector}: no {wanted}; versions: {known}; see: nightowl models {detector}")

    def champion(self, detector: str) -> VersionInfo | None:
        """The champion, or None while there is none."""
        with explained(self.uri):
            model = self._model(detector)
            number = champion_of(model) if model else None
        return self.version(detector, number) if number else None

    def reference(self, detector: str) -> VersionInfo | None:
        """The version that a slow decline is measured by, or None before the first champion."""
        with explained(self.uri):
            model = self._model(detector)
            number = self._reference(model) if model else None
        return self.version(detector, number) if number else None

    def record(self, detector: str, version: str) -> BundleRecord:
        """The record that was registered with a version, from the registry itself."""
        return self.version(detector, version).record

    def history(self, detector: str) -> list[Event]:
        """Every change of champion, oldest first; what was begun and never came to pass is marked as abandoned."""
        with explained(self.uri):
            model = self._model(detector)
            return history_of(model) if model else []

    def promote(self, detector: str, version: str, reason: str, by: str, force: bool = False, as_judged: bool = False) -> str:
        """Make `version` the champion and return it; where it is already, nothing is done. `force` overrides the verdict.

        A night promotes `as_judged`: only while the champion is the one that its verdict is about.

        Raises:
            RegistryError: for a version that was refused or taken back (without `force`), made from a dirty tree (always), or
                judged against another champion.
        """
        with self._alone():
            versions = self.versions(detector)
            info = self.version(detector, version)
            if info.champion:
                return info.version
            refusal = refusal_to_promote(info, versions, as_judged)
            if refusal is not None and not (force and refusal.may_be_forced):
                advice = "; to promote it all the same: --force, which is recorded" if refusal.may_be_forced else ""
                raise RegistryError(f"{detector} version {info.version} is not promoted: {refusal.reason}{advice}")
            self._require_files(detector, info.version)
            self._change(detector, "promote", info.version, reason, by, forced=refusal is not None)
            return info.version

    def rollback(self, detector: str, reason: str, by: str) -> str:
        """Take the champion back: the one before it is champion again, and its version is returned.

        Raises:
            RegistryError: when there is no champion, or none before it.
        """
        with self._alone():
            champion = self.version(detector, CHAMPION).version
            previous = previous_champion(self.history(detector), champion)
            if previous is None:
                raise RegistryError(
                    f"{detector}: no champion before version {champion}, so there is nothing to go back to; to have none "
                    f"at all: nightowl rollback {detector} --to-none --reason WHY"
                )
            previous = self.version(detector, previous).version
            self._require_files(detector, previous)
            self._change(detector, "rollback", previous, reason, by)
            return previous

    def withdraw(self, detector: str, reason: str, by: str) -> str:
        """Take the champion back and have none, nor a reference; the version that it was is returned. The next night is judged
        as a first model.

        Raises:
            RegistryError: when there is no champion.
        """
        with self._alone():
            champion = self.version(detector, CHAMPION).version
            self._change(detector, "withdraw", champion, reason, by)
            return champion

    def set_reference(self, detector: str, version: str, reason: str, by: str) -> str:
        """Hold candidates against `version` from now on, and return it; where they are already, nothing is done.

        Raises:
            RegistryError: when there is no champion yet, or no such version, or its files are gone.
        """
        with self._alone():
            self.version(detector, CHAMPION)
            info, before = self.version(detector, version), self.version(detector, REFERENCE).version
            if info.version != before:
                self._require_files(detector, info.version)
                self._change(detector, "reference", info.version, reason, by)
            return info.version

    def fetch(self, detector: str, version_or_alias: str, folder: Path) -> Path:
        """Bring the bundle of a version to `folder`, checked file by file, and return it. A whole copy there is kept.

        Raises:
            RegistryError: when a file is missing or damaged; it is named, and `folder` is left as it was.
        """
        version = self.version(detector, version_or_alias).version
        with explained(self.uri):
            found = self._numbered(detector, version)
        assert found is not None, "it was there a moment ago"
        return download(self.uri, str(found.source), found.tags[SUMS_TAG], folder, f"{detector} version {version}")

    def _require_files(self, detector: str, version: str) -> None:
        """A champion that nobody could fetch would be worse than the one that stands."""
        with explained(self.uri):
            run_id = str(self._client.get_model_version(detector, version).run_id)
            names = {Path(str(file.path)).name for file in self._client.list_artifacts(run_id, BUNDLE)}
        if SUMS not in names:
            raise RegistryError(f"{detector} version {version}: its files are gone from the registry; nothing was changed")

    def _change(
        self,
        detector: str,
        action: Action,
        version: str,
        reason: str,
        by: str,
        forced: bool = False,
    ) -> None:
        """Event, alias, event completed: history.py says what a kill in between means. A reference is changed by its event."""
        if not reason.strip() or len(reason) > _REASON_LENGTH:
            raise RegistryError(f"a reason of 1 to {_REASON_LENGTH} characters is needed; it is kept in the history")
        with explained(self.uri):
            model = self._model(detector)
            assert model is not None, "a version was found, so there is a model"
            champion, written = champion_of(model), events_of(model)
            for before, after in zip(written, settled(written, champion), strict=True):
                if before != after:
                    self._write_event(detector, after)
            event = Event(
                number=written[-1].number + 1 if written else 1,
                action=action,
                version=version,
                came_from=self._reference(model) if action == REFERENCE else champion,
                reason=reason.strip(),
                by=by,
                at=datetime.now(UTC),
                forced=forced,
            )
            if action != REFERENCE:
                self._write_event(detector, event)
                self._show(detector, CHAMPION, None if action == "withdraw" else version)
            self._write_event(detector, event.model_copy(update={"state": "done"}))
            self._show_reference(detector)

    def _show_reference(self, detector: str) -> None:
        """The alias `reference`, for MLflow's pages; nightowl reads the history."""
        model = self._model(detector)
        self._show(detector, REFERENCE, self._reference(model) if model else None)

    def _show(self, detector: str, alias: str, version: str | None) -> None:
        if version is None:
            self._client.delete_registered_model_alias(detector, alias)
        else:
            self._client.set_registered_model_alias(detector, alias, version)

    def _reference(self, model: "RegisteredModel") -> str | None:
        return reference_of(history_of(model), infos_of(model, self._pages(model.name)))

    def _write_event(self, detector: str, event: Event) -> None:
        self._client.set_registered_model_tag(detector, f"{EVENT_TAG}{event.number:06d}", event.model_dump_json())

    def _made_by(self, detector: str, night_id: str) -> str | None:
        return next((info.version for info in self.versions(detector) if info.record.night_id == night_id), None)

    def _model(self, detector: str) -> "RegisteredModel | None":
        from mlflow.exceptions import MlflowException

        try:
            return self._client.get_registered_model(detector)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise

    def _numbered(self, detector: str, number: str | None) -> "ModelVersion | None":
        """The version of that number, if nightowl made it."""
        from mlflow.exceptions import MlflowException

        if number is None or not re.fullmatch(r"[0-9]{1,9}", number):  # a longer one is none, and more than SQLite holds
            return None
        try:
            found = self._client.get_model_version(detector, number)
        except MlflowException as error:
            if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                return None
            raise
        return found if RECORD_TAG in found.tags else None

    def _pages(self, detector: str) -> "Iterator[ModelVersion]":
        token: str | None = None
        while True:
            page = self._client.search_model_versions(f"name = '{detector}'", max_results=1000, page_token=token)
            yield from page
            token = page.token
            if not token:
                return

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One process of this machine at a time."""
        with holding(_lock_of(self.home)):
            yield


def open_registry(settings: Settings) -> Registry:
    """The registry that the settings name; without any, SQLite and a folder in the home, made when absent.

    Raises:
        RegistryError: when it is unreadable, unreachable, or something else.
    """
    home = home_of(settings)
    uri = settings.registry_uri or sqlite_uri(home / "registry" / "mlflow.db")
    artifacts = settings.registry_artifacts or (None if settings.registry_uri else str(home / "registry" / "artifacts"))
    return Registry(connect(uri, _lock_of(home)), uri, artifacts, home)


def _lock_of(home: Path) -> Path:
    return home / "locks" / "registry.lock"
