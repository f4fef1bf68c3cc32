"""A night's stages as a run for nodes, here or rented: the job, and the files that go to its board before it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from nightowl.data.blobs import BlobStore
from nightowl.data.source import absolute_source, source_of
from nightowl.evaluation.champion import read_champion
from nightowl.files import canonical_json, sha256_bytes
from nightowl.machines.archive import code_archive, tree_id
from nightowl.machines.board import CODE, LOCK, Board
from nightowl.machines.job import Blob, Job, run_id_of
from nightowl.machines.site import Site
from nightowl.machines.standing import standing
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


def refuse_unreachable(site: Site, root: Path, detector: str, settings: Settings, named: str | None) -> None:
    """Before anything is begun: could nodes at `site` read the data of `detector`, and share what they make?

    Raises:
        SettingsError, DataError: when not, with what to do.
    """
    site.check(root, detector, absolute_source(named) if named else source_of(settings, detector))


def order(night: Night, site: Site, stages: tuple[str, ...], now: datetime) -> Order:
    """The run of `stages` for this night at `site`; its inputs are pinned. The same inputs are the same run, whichever night
    asks.

    Raises:
        SettingsError, DataError: for what nodes cannot reach.
    """
    settings, workspace, terms = settings_of(night), workspace_in_tree(night), site.terms
    source = site.source(night.root, night.detector, source_of(settings, night.detector))
    pinned = {path.name: path.read_bytes() for path in sorted(workspace.inputs.iterdir())}
    code, lock = _code(night, site, pinned), (night.tree / "requirements.lock").read_bytes()
    store = BlobStore(home_of(settings) / "blobs")
    blobs = {} if terms.environment.here else _blobs(workspace, store)  # nodes here have this very store
    params_digest = load_params(night.tree, night.detector).digest()
    job = Job(
        run_id=run_id_of(night.detector, _digest(pinned, workspace), tree_id(night.root, night.code_commit), params_digest),
        detector=night.detector,
        stages=stages,
        code_commit=night.code_commit,
        code_sha256=sha256_bytes(code),
        lock_sha256=sha256_bytes(lock),
        environment=terms.environment,
        settings=site.told(night.detector, source),
        source=source,
        blobs=tuple(blobs),
        nodes=terms.nodes,
        min_nodes=terms.min_nodes,
        nproc=terms.nproc,
        deadline=terms.deadline(now),
        stall_minutes=terms.stall_minutes,
        heartbeat_seconds=terms.heartbeat_seconds,
        heartbeat_old_seconds=terms.heartbeat_old_seconds,
        submitted_at=now,
    )
    return Order(job, code, lock, blobs)


def place(board: Board, ordered: Order) -> None:
    """Have the files of the order on its board, unless a run that goes on, or is done, has its own there already."""
    if board.job() is not None and standing(board, ordered.job.submitted_at).state in ("waiting", "running", "done"):
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


def _code(night: Night, site: Site, pinned: Mapping[str, bytes]) -> bytes:
    beside = {f"inputs/{night.detector}/{name}": content for name, content in pinned.items()}
    config = site.dvc_config(night.root, night.tree)
    return code_archive(night.root, night.code_commit, {**beside, ".dvc/config": config})


def _blobs(workspace: Workspace, store: BlobStore) -> dict[Blob, Path]:
    """What the stages read by digest: base weights, and what the candidate is held against."""
    wanted = {read_base(workspace.base).sha256: "the base weights"}
    for path in (workspace.champion, workspace.reference):
        standing = read_champion(path)
        if standing is not None:
            wanted[standing.onnx_sha256] = f"the ONNX of version {standing.version}"
    paths = (store.verified_path(sha256, what) for sha256, what in wanted.items() if sha256 is not None)
    return {Blob(sha256=path.name, num_bytes=path.stat().st_size): path for path in paths}
