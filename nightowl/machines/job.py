"""What a run on rented machines is asked to do: one record, decided before the first machine exists.

A run is the stages of one night of one detector. Its id follows from what goes into it, so that asking twice is one run.
"""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, model_validator

from nightowl.files import canonical_json, sha256_bytes
from nightowl.records import Record

_HEX = 16

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RunId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*-[0-9a-f]{16}$", max_length=100)]


class Blob(Record):
    """A file that the stages read and that git does not hold, such as base weights; on the board under its digest."""

    sha256: Sha256
    num_bytes: Annotated[int, Field(ge=0)]


class Environment(Record):
    """What the stages run in: `wheel`, code and lock installed on the node; `container`, an image by its digest; `baked`, an
    interpreter that the machine image has; `here`, what the night itself runs in, on its machine, with its home and cache."""

    kind: Literal["wheel", "container", "baked", "here"] = "wheel"
    container: str | None = None
    python: str | None = None

    @property
    def here(self) -> bool:
        """Are nodes processes of the night's own machine? What they make is there already, and costs no rent."""
        return self.kind == "here"

    @model_validator(mode="after")
    def _complete(self) -> "Environment":
        if self.kind == "container" and "@sha256:" not in (self.container or ""):
            raise ValueError(f"environment container: expected an image with its digest, NAME@sha256:…, got {self.container!r}")
        if self.kind == "baked" and not (self.python or "").startswith("/"):
            raise ValueError(f"environment baked: expected the absolute path of an interpreter, got {self.python!r}")
        return self


class Job(Record):
    """Everything that a node needs to know; no secret is in it. `deadline` is the hard end of the machines."""

    run_id: RunId
    detector: str
    stages: Annotated[tuple[str, ...], Field(min_length=1)]
    code_commit: str
    code_sha256: Sha256
    lock_sha256: Sha256
    environment: Environment
    settings: dict[str, str]
    source: str
    blobs: tuple[Blob, ...] = ()
    nodes: Annotated[int, Field(ge=1, le=64)] = 1
    min_nodes: Annotated[int, Field(ge=1, le=64)] = 1
    nproc: Annotated[int, Field(ge=0, le=64)] = 0  # ranks on each node; 0: one a GPU
    deadline: AwareDatetime
    stall_minutes: Annotated[float, Field(gt=0)] = 30
    heartbeat_seconds: Annotated[float, Field(gt=0)] = 10
    heartbeat_old_seconds: Annotated[float, Field(gt=0)] = 60
    submitted_at: AwareDatetime

    @model_validator(mode="after")
    def _consistent(self) -> "Job":
        if self.min_nodes > self.nodes:
            raise ValueError(f"min_nodes: expected at most nodes = {self.nodes}, got {self.min_nodes}")
        if self.heartbeat_old_seconds < 2 * self.heartbeat_seconds:
            raise ValueError(
                f"heartbeat_old_seconds: expected at least twice heartbeat_seconds = {self.heartbeat_seconds:g}, as one"
                f" that is late is no loss; got {self.heartbeat_old_seconds:g}"
            )
        return self


def run_id_of(detector: str, inputs_digest: str, code_tree: str, params_digest: str) -> str:
    """The id of the run with these inputs: the same inputs, the same run."""
    digest = sha256_bytes(canonical_json([inputs_digest, code_tree, params_digest]).encode())
    return f"{detector}-{digest[:_HEX]}"
