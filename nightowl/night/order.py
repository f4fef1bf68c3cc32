"""A night's stages as a run for rented machines: the job, and the files that go to the board before it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from nightowl.cloud.dvc_config import read_config
from nightowl.data.blobs import BlobStore
from nightowl.data.source import absolute_source, source_of
from nightowl.evaluation.champion import read_champion
from nightowl.files import canonical_json, sha256_bytes
from nightowl.machine_settings import MachineSettings
from nightowl.machines.archive import code_archive, tree_id
from nightowl.machines.board import CODE, LOCK, Board
from nightowl.machines.job import Blob, Environment, Job, run_id_of
from nightowl.machines.reach import cache_config, machines_of, settings_there, source_there
from nightowl.night.record import Night, settings_of, workspace_in_tree
from nightowl.params import load_params
from nightowl.settings import Settings, home_of
from nightowl.stages.workspace import Workspace
from nightowl.training.base import read_base


@dataclass(frozen=True)
class Order:
    """A job, and the content that it names by digest."""

    job: Job
    code: bytes
    lock: bytes
    blobs: Mapping[Blob, Path]


def refuse_unreachable(root: Path, detector: str, settings: Settings, named: str | None) -> None:
    """Before anything is begun: could rented machines read the data of `detector`, and share what they make?

    Raises:
        SettingsError, DataError: when not, with what to do.
    """
    machines_of(settings)
    cache_config(read_config(root))
    source_there(root, detector, absolute_source(named) if named else source_of(settings, detector))


def order(night: Night, stages: tuple[str, ...], now: datetime) -> Order:
    """The run of `stages` for this night; its inputs are pinned. The same inputs are the same run, whichever night asks.

    Raises:
        SettingsError, DataError: for what machines cannot reach.
    """
    settings, workspace = settings_of(night), workspace_in_tree(night)
    machines = machines_of(settings)
    source = source_there(night.root, night.detector, source_of(settings, night.detector))
    pinned = {path.name: path.read_bytes() for path in sorted(workspace.inputs.iterdir())}
    code, lock = _code(night, pinned), (night.tree / "requirements.lock").read_bytes()
    blobs = _blobs(workspace, BlobStore(home_of(settings) / "blobs"))
    params_digest = load_params(night.tree, night.detector).digest()
    job = Job(
        run_id=run_id_of(night.detector, _digest(pinned, workspace), tree_id(night.root, night.code_commit), params_digest),
        detector=night.detector,
        stages=stages,
        code_commit=night.code_commit,
        code_sha256=sha256_bytes(code),
        lock_sha256=sha256_bytes(lock),
        environment=_environment(machines),
        settings=settings_there(settings, night.detector, source),
        source=source,
        blobs=tuple(blobs),
        nodes=machines.nodes,
        min_nodes=machines.fewest_nodes,
        nproc=machines.nproc,
        deadline=now + timedelta(hours=machines.max_hours),
        stall_minutes=machines.stall_minutes,
        heartbeat_seconds=machines.heartbeat_seconds,
        heartbeat_old_seconds=machines.heartbeat_old_seconds,
        submitted_at=now,
    )
    return Order(job, code, lock, blobs)


def place(board: Board, ordered: Order) -> None:
    """Have the files of the order on its board, unless a run that goes on, or is done, has its own there already."""
    end = board.end()
    if board.job() is not None and (end is None or end.how == "done"):
        return
    there = {each.key: each.num_bytes for each in board.bucket.list("blobs/")}
    for blob, path in ordered.blobs.items():
        if there.get(f"blobs/{blob.sha256}") != blob.num_bytes:
            board.put_blob(blob, path)
    board.put_file(LOCK, ordered.lock)
    board.put_file(CODE, ordered.code)


def _digest(pinned: Mapping[str, bytes], workspace: Workspace) -> str:
    """Of all inputs that stages elsewhere read: another champion is another run. What was decided before is the gate's alone,
    which stays here."""
    read = {name: sha256_bytes(content) for name, content in pinned.items() if name != workspace.decisions.name}
    return sha256_bytes(canonical_json(read).encode())


def _code(night: Night, pinned: Mapping[str, bytes]) -> bytes:
    beside = {f"inputs/{night.detector}/{name}": content for name, content in pinned.items()}
    return code_archive(night.root, night.code_commit, {**beside, ".dvc/config": cache_config(read_config(night.root))})


def _blobs(workspace: Workspace, store: BlobStore) -> dict[Blob, Path]:
    """What the stages read by digest: base weights, and what the candidate is held against."""
    wanted = {read_base(workspace.base).sha256: "the base weights"}
    for path in (workspace.champion, workspace.reference):
        standing = read_champion(path)
        if standing is not None:
            wanted[standing.onnx_sha256] = f"the ONNX of version {standing.version}"
    paths = (store.verified_path(sha256, what) for sha256, what in wanted.items() if sha256 is not None)
    return {Blob(sha256=path.name, num_bytes=path.stat().st_size): path for path in paths}


def _environment(machines: MachineSettings) -> Environment:
    python = str(machines.python) if machines.python else None
    return Environment(kind=machines.environment, container=machines.container, python=python)
