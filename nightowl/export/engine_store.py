"""Engines, kept by the ONNX that they are of and the kind of machine that they are for.

A record names its engine by digest and is written last: what has no record does not exist, and a reader never sees half of one.
Whoever can write here can have code run where engines are loaded: it is as trusted as the machine itself.
"""

import hashlib
from pathlib import Path

from pydantic import ValidationError

from nightowl.cloud.bucket import Bucket, FolderBucket, ObjectMissing
from nightowl.cloud.s3_bucket import S3Bucket
from nightowl.cloud.storage import SCHEME, parse_url
from nightowl.errors import StorageError
from nightowl.export.engine_record import EngineRecord, Fingerprint
from nightowl.files import write_atomic, write_record
from nightowl.settings import Settings, home_of

_RECORD = "engine.json"
_TIMING = "timing-caches"


class EngineStore:
    """A bucket with engines."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket

    def find(self, onnx_sha256: str, fingerprint: Fingerprint) -> EngineRecord | None:
        """The engine of an ONNX for such a machine, or None while there is none. Raises StorageError for a broken record."""
        try:
            return self._read(f"{onnx_sha256}/{fingerprint.key()}/{_RECORD}")
        except ObjectMissing:
            return None

    def all(self) -> list[EngineRecord]:
        """Every engine, in order of ONNX and machine."""
        names = [stored.key for stored in self.bucket.list() if stored.key.endswith(f"/{_RECORD}")]
        return [self._read(name) for name in names]

    def publish(self, record: EngineRecord, plan: bytes) -> None:
        """Have the engine found; one that was built before with other options gives way."""
        folder = f"{record.onnx_sha256}/{record.fingerprint.key()}"
        before = {stored.key for stored in self.bucket.list(f"{folder}/")}
        self.bucket.put(f"{folder}/{record.engine_sha256}.engine", plan)
        self.bucket.put(f"{folder}/{_RECORD}", record.model_dump_json(indent=2).encode())
        for key in before - {f"{folder}/{_RECORD}", f"{folder}/{record.engine_sha256}.engine"}:
            self.bucket.delete(key)

    def fetch(self, record: EngineRecord, folder: Path) -> Path:
        """Bring an engine to `folder` as model.engine, its record beside it as model.json; returns the engine's path.

        Raises:
            StorageError: when it is not the one of its record.
        """
        key = f"{record.onnx_sha256}/{record.fingerprint.key()}/{record.engine_sha256}.engine"
        try:
            plan = self.bucket.get(key)
        except ObjectMissing as error:
            raise StorageError(f"{self.bucket.url}{key}: the engine is gone; build it again: nightowl engine build") from error
        if hashlib.sha256(plan).hexdigest() != record.engine_sha256:
            raise StorageError(f"{self.bucket.url}{key}: damaged; build it again: nightowl engine build")
        write_atomic(folder / "model.engine", plan)
        write_record(folder / "model.json", record)
        return folder / "model.engine"

    def timing_cache(self, fingerprint: Fingerprint) -> bytes:
        """What earlier builds on such a machine have learnt; empty before the first."""
        try:
            return self.bucket.get(f"{_TIMING}/{fingerprint.key()}")
        except ObjectMissing:
            return b""

    def keep_timing_cache(self, fingerprint: Fingerprint, content: bytes) -> None:
        self.bucket.put(f"{_TIMING}/{fingerprint.key()}", content)

    def _read(self, key: str) -> EngineRecord:
        try:
            return EngineRecord.model_validate_json(self.bucket.get(key))
        except ValidationError as error:
            raise StorageError(f"{self.bucket.url}{key}: not the record of an engine; remove it and build again") from error


def open_engines(settings: Settings) -> EngineStore:
    """The store that the settings name; without any, a folder in the home."""
    named = settings.engines
    if named is not None and named.startswith(SCHEME):
        return EngineStore(S3Bucket(parse_url(named), settings.s3_endpoint))
    return EngineStore(FolderBucket(Path(named) if named else home_of(settings) / "engines"))
