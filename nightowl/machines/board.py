"""The board of one run: a prefix of a bucket by which the orchestrator and the nodes speak, though none can reach the other.

Everything is written whole. What is decided once, such as who is in a generation, is the conditional put of one key: whoever
puts first has decided, and all others read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from nightowl.cloud.bucket import Bucket, Content, FolderBucket, ObjectMissing
from nightowl.cloud.s3_bucket import S3Bucket
from nightowl.cloud.storage import parse_url
from nightowl.errors import RemoteError
from nightowl.machines.job import Blob, Job
from nightowl.machines.records import (
    Cancel,
    Claim,
    Event,
    Generation,
    GenerationEnd,
    LogLine,
    NodeBeat,
    RunEnd,
    StageEnd,
    StageFailure,
)
from nightowl.records import Record

CODE, LOCK, JOB, END, CLAIM = "code.tar.gz", "requirements.lock", "job.json", "END.json", "claim.json"
_CANCEL = "cancel.json"

R = TypeVar("R", bound=Record)


def board_bucket(address: str, endpoint: str | None = None) -> Bucket:
    """The bucket of boards at `address`: s3://BUCKET/PREFIX, or a folder. Raises SettingsError for another scheme."""
    if "://" in address:
        return S3Bucket(parse_url(address), endpoint)
    return FolderBucket(Path(address))


def runs(bucket: Bucket) -> list[str]:
    """The ids of the runs that `bucket` holds, in order."""
    return sorted({each.key.split("/")[1] for each in bucket.list("runs/") if each.key.endswith(f"/{JOB}")})


class Board:
    """Typed access to the keys under runs/RUN_ID/. Reads give None for what is not there."""

    def __init__(self, bucket: Bucket, run_id: str) -> None:
        self.run_id = run_id
        self.bucket = bucket.under(f"runs/{run_id}")

    # The order: put once, before anything runs.
    def put_job(self, job: Job) -> bool:
        """False when another job stands there."""
        return self._once(JOB, job)

    def job(self) -> Job | None:
        return self._read(JOB, Job)

    def put_file(self, name: str, content: Content) -> None:
        """CODE or LOCK."""
        self.bucket.put(name, content)

    def put_blob(self, blob: Blob, content: Content) -> None:
        self.bucket.put(f"blobs/{blob.sha256}", content)

    def blob(self, blob: Blob) -> bytes:
        """Raises ObjectMissing."""
        return self.bucket.get(f"blobs/{blob.sha256}")

    # Who is there.
    def put_beat(self, beat: NodeBeat) -> None:
        self._put(f"nodes/{beat.instance}.json", beat)

    def beats(self) -> list[NodeBeat]:
        """In order of instance."""
        return self._all("nodes/", NodeBeat)

    # Generations.
    def open_generation(self, generation: Generation) -> bool:
        """False when another has that number."""
        return self._once(f"generations/{generation.number:06d}.json", generation)

    def newest_generation(self) -> Generation | None:
        keys = [each.key for each in self.bucket.list("generations/") if not each.key.endswith(".end.json")]
        return self._read(keys[-1], Generation) if keys else None

    def end_generation(self, end: GenerationEnd) -> bool:
        """False when another has said so before."""
        return self._once(f"generations/{end.number:06d}.end.json", end)

    def generation_end(self, number: int) -> GenerationEnd | None:
        return self._read(f"generations/{number:06d}.end.json", GenerationEnd)

    def generation_ends(self) -> list[GenerationEnd]:
        return self._all("generations/", GenerationEnd, suffix=".end.json")

    # Stages.
    def put_stage_end(self, end: StageEnd) -> bool:
        return self._once(f"ends/{end.stage}.json", end)

    def stage_ends(self) -> list[StageEnd]:
        return sorted(self._all("ends/", StageEnd), key=lambda end: end.at)

    def put_failure(self, failure: StageFailure) -> None:
        self._put(f"failures/{failure.stage}/{failure.generation:03d}-{failure.instance}.json", failure)

    def failures(self, stage: str) -> list[StageFailure]:
        """In order of generation."""
        return sorted(self._all(f"failures/{stage}/", StageFailure), key=lambda each: (each.generation, each.instance))

    def forgive(self, stage: str) -> None:
        """Have the failures of `stage` so far count for nothing."""
        for stored in self.bucket.list(f"failures/{stage}/"):
            failure = self._read(stored.key, StageFailure)
            if failure is not None and not failure.preempted:
                self._put(stored.key, failure.model_copy(update={"preempted": True}))

    # What happened.
    def put_event(self, number: int, event: Event) -> None:
        self._put(f"events/{event.instance}/{number:06d}.json", event)

    def events(self) -> list[Event]:
        return self._all("events/", Event)

    def put_log(self, instance: str, number: int, text: str) -> None:
        self.bucket.put(f"logs/{instance}/{number:06d}.txt", text.encode())

    def logs(self, after: Mapping[str, int]) -> Iterator[LogLine]:
        """See Engine.logs."""
        for stored in self.bucket.list("logs/"):
            _, instance, name = stored.key.split("/")
            number = int(name.removesuffix(".txt"))
            if number > after.get(instance, -1):
                text = self.bucket.get(stored.key).decode(errors="replace")
                yield from (LogLine(instance=instance, number=number, text=line) for line in text.splitlines())

    # The end, and who wants it.
    def put_end(self, end: RunEnd) -> bool:
        """False when the run has ended otherwise before."""
        return self._once(END, end)

    def end(self) -> RunEnd | None:
        return self._read(END, RunEnd)

    def put_cancel(self, cancel: Cancel) -> None:
        self._put(_CANCEL, cancel)

    def cancelled(self) -> Cancel | None:
        return self._read(_CANCEL, Cancel)

    def put_claim(self, claim: Claim) -> None:
        self._put(CLAIM, claim)

    def claim(self) -> Claim | None:
        return self._read(CLAIM, Claim)

    def _put(self, key: str, record: Record) -> None:
        self.bucket.put(key, record.model_dump_json(indent=2).encode())

    def _once(self, key: str, record: Record) -> bool:
        return self.bucket.put_if_absent(key, record.model_dump_json(indent=2).encode())

    def _read(self, key: str, kind: type[R]) -> R | None:
        """Raises RemoteError when what is there is no such record: it was written by other code, or by hand."""
        try:
            return kind.model_validate_json(self.bucket.get(key))
        except ObjectMissing:
            return None
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join([kind.__name__, *map(str, fault["loc"])])
            raise RemoteError(f"{self.bucket.url}{key}: not readable as {where}: {fault['msg']}") from error

    def _all(self, prefix: str, kind: type[R], suffix: str = ".json") -> list[R]:
        found = (self._read(each.key, kind) for each in self.bucket.list(prefix) if each.key.endswith(suffix))
        return [record for record in found if record is not None]
