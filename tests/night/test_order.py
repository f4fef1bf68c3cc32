import io
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.data.blobs import BlobStore
from nightowl.errors import DataError, SettingsError, WeightsError
from nightowl.evaluation.champion import ChampionRecord, write_champion
from nightowl.files import sha256_bytes, write_record
from nightowl.machines.board import CODE, Board
from nightowl.machines.opening import open_site
from nightowl.machines.records import RunEnd
from nightowl.machines.site import Site
from nightowl.night.order import Order, order, place, refuse_unreachable
from nightowl.night.record import Night
from nightowl.settings import load_settings
from nightowl.training.base import BaseWeights
from tests.cloud.tracked import config
from tests.machines.jobs import NOW
from tests.machines.test_archive import commit, git

SETTINGS = """
engine = "ec2"
sources = {demo = "s3://data/demo"}
[machines]
region = "us-east-1"
board = "s3://lines/nightowl"
instance_types = ["g5.xlarge"]
subnets = ["subnet-1"]
security_group = "sg-1"
instance_profile = "node"
image = "ami-1"
nodes = 2
min_nodes = 1
max_hours = 3
"""
PARAMS = "data: {}\nprepare: {}\ntrain: {}\nevaluate: {}\ngate: {}\nexport: {}\n"
REMOTE = "[core]\n    remote = store\n['remote \"store\"']\n    url = s3://lines/dvc\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a remote in S3 and settings for rented machines."""
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "none"))
    root = tmp_path / "checkout"
    for name, text in {
        "params.yaml": "detectors: [demo]\n",
        "detectors/demo/params.yaml": PARAMS,
        "dvc.yaml": "stages: {}\n",
        "requirements.lock": "torch==2\n",
        ".gitignore": "settings.toml\n.nightowl\ninputs\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    config(root, REMOTE)
    git(root.parent, "init", "--quiet", str(root))
    commit(root)
    (root / "settings.toml").write_text(SETTINGS)
    return root


def a_night(root: Path, base: str | None = None) -> Night:
    """A night of the checkout's commit, its inputs pinned; of random weights, or of a base of that digest."""
    inputs = root / "inputs" / "demo"
    inputs.mkdir(parents=True, exist_ok=True)
    write_record(inputs / "base.json", BaseWeights(kind="file" if base else "yaml", name="yolo11n", sha256=base))
    for name in ("champion.json", "reference.json"):
        write_champion(inputs / name, None)
    head = git(root, "rev-parse", "HEAD")
    return Night(
        id="n",
        detector="demo",
        root=root,
        tree=root,
        folder=root.parent / "night",
        code_commit=head,
        head=head,
        dirty=False,
        shares=True,
        source=None,
        started_at=NOW,
    )


def site_of(root: Path) -> Site:
    site = open_site(load_settings(root))
    assert site is not None
    return site


def ordered(night: Night) -> Order:
    return order(night, site_of(night.root), ("prepare", "train"), NOW)


def test_the_job_says_what_to_do_and_by_when(root: Path) -> None:
    job = ordered(a_night(root)).job
    assert (job.detector, job.stages, job.nodes, job.min_nodes) == ("demo", ("prepare", "train"), 2, 1)
    assert job.deadline == NOW + timedelta(hours=3)
    assert job.source == "s3://data/demo"


def test_the_code_has_the_pinned_inputs_and_how_the_cache_is_reached(root: Path) -> None:
    made = ordered(a_night(root))
    with tarfile.open(fileobj=io.BytesIO(made.code)) as tar:
        names = set(tar.getnames())
        told = tar.extractfile(".dvc/config")
        assert told is not None and b"no_scm = true" in told.read()
    assert {"inputs/demo/base.json", "inputs/demo/champion.json", "detectors/demo/params.yaml", "dvc.yaml"} <= names
    assert "settings.toml" not in names
    assert made.job.code_sha256 == sha256_bytes(made.code)
    assert made.job.lock_sha256 == sha256_bytes(b"torch==2\n")


def test_the_same_inputs_are_the_same_run_and_other_code_or_data_another(root: Path) -> None:
    first = ordered(a_night(root)).job.run_id
    commit(root, "2026-03-03T00:00:00Z")  # the same files, later
    assert ordered(a_night(root)).job.run_id == first
    for name, same in {"manifest.jsonl": False, "previous.json": False, "decisions.json": True}.items():
        night = a_night(root)
        (root / "inputs" / "demo" / name).write_text("other")
        assert (ordered(night).job.run_id == first) is same, f"{name}: do stages on nodes read it?"
        (root / "inputs" / "demo" / name).unlink()
    (root / "dvc.yaml").write_text("stages: {a: {}}\n")
    commit(root)
    assert ordered(a_night(root)).job.run_id != first


def test_weights_go_with_it_each_once_and_one_that_was_altered_does_not(root: Path) -> None:
    store = BlobStore(root / ".nightowl" / "blobs")
    (root.parent / "base").write_bytes(b"base")
    (root.parent / "onnx").write_bytes(b"champion")
    base, onnx = store.put(root.parent / "base"), store.put(root.parent / "onnx")
    night = a_night(root, base)
    without = ordered(night).job.run_id
    champion = ChampionRecord(
        detector="demo",
        version="1",
        night_key="k",
        classes=("a",),
        image_size=64,
        weights_sha256="9" * 64,
        onnx_sha256=onnx,
        dataset_version="1" * 64,
    )
    for name in ("champion.json", "reference.json"):
        write_champion(root / "inputs" / "demo" / name, champion)
    assert ordered(night).job.run_id != without, "stages judge against the champion: what was made without is no result"
    assert {blob.sha256: blob.num_bytes for blob in ordered(night).job.blobs} == {base: 4, onnx: 8}
    store.path_of(onnx).chmod(0o600)
    store.path_of(onnx).write_bytes(b"altered!")
    with pytest.raises(WeightsError, match="the ONNX of version 1 was altered"):
        ordered(night)


def test_files_are_placed_unless_a_run_that_goes_on_has_its_own(root: Path, tmp_path: Path) -> None:
    made = ordered(a_night(root))
    board = Board(FolderBucket(tmp_path / "board"), made.job.run_id)
    place(board, made)
    assert board.bucket.get(CODE) == made.code
    board.put_job(made.job)
    place(board, Order(made.job, b"other", b"", {}))
    assert board.bucket.get(CODE) == made.code, "its nodes compare what they fetch with the job that stands"
    board.put_end(RunEnd(how="failed", message="m", at=NOW))
    place(board, Order(made.job, b"other", b"", {}))
    assert board.bucket.get(CODE) == b"other", "the next attempt has a job of its own"


@pytest.mark.parametrize(
    ("remote", "source", "error", "message"),
    [
        (REMOTE, "s3://data/demo", None, "all of it in S3"),
        ("", "s3://data/demo", DataError, "no default remote"),
        (REMOTE, "/data/demo", DataError, "lies in the folder /data/demo"),
    ],
)
def test_what_machines_cannot_reach_is_refused_before_a_night_begins(
    root: Path, remote: str, source: str, error: type[Exception] | None, message: str
) -> None:
    config(root, remote)
    settings, site = load_settings(root), site_of(root)
    if error is None:
        refuse_unreachable(site, root, "demo", settings, source)
        return
    with pytest.raises(error, match=message):
        refuse_unreachable(site, root, "demo", settings, source)


def test_the_engine_without_machines_is_refused(root: Path) -> None:
    (root / "settings.toml").write_text('engine = "ec2"\n')
    with pytest.raises(SettingsError, match="needs the table"):
        open_site(load_settings(root))


def test_the_engine_local_has_no_nodes(root: Path) -> None:
    (root / "settings.toml").write_text("")
    assert open_site(load_settings(root)) is None


def test_nodes_of_this_machine_need_no_remote_and_no_address_and_get_the_cache_of_the_night(root: Path) -> None:
    (root / "settings.toml").write_text('engine = "detached"\nnproc = 2\nsources = {demo = "/data/demo"}\n')
    config(root, "[core]\n    analytics = false\n")
    config(root, "[cache]\n    dir = /srv/cache\n", "config.local")  # as the night gave it to its tree
    refuse_unreachable(site_of(root), root, "demo", load_settings(root), None)
    (root.parent / "base").write_bytes(b"base")
    base = BlobStore(root / ".nightowl" / "blobs").put(root.parent / "base")
    made = ordered(a_night(root, base))
    assert (made.job.nodes, made.job.nproc, made.job.source) == (1, 2, "/data/demo")
    assert made.job.environment.here and made.job.blobs == () and made.blobs == {}, "they have the night's own store"
    assert made.job.settings["NIGHTOWL_HOME"] == str(root / ".nightowl")
    with tarfile.open(fileobj=io.BytesIO(made.code)) as tar:
        told = tar.extractfile(".dvc/config")
        assert told is not None
        text = told.read().decode()
    assert "dir = /srv/cache" in text and "no_scm = true" in text and "remote" not in text


def test_a_run_is_the_same_whichever_engine_it_is_for(root: Path) -> None:
    rented = ordered(a_night(root)).job.run_id
    (root / "settings.toml").write_text('engine = "detached"\nsources = {demo = "/data/demo"}\n')
    assert ordered(a_night(root)).job.run_id == rented, "it says what is computed, and not where"


def test_a_run_whose_hard_end_has_passed_gets_the_files_of_the_next_attempt(root: Path, tmp_path: Path) -> None:
    made = ordered(a_night(root))
    board = Board(FolderBucket(tmp_path / "board"), made.job.run_id)
    place(board, made)
    board.put_job(made.job)
    later = made.job.model_copy(update={"submitted_at": made.job.deadline, "deadline": made.job.deadline + timedelta(hours=3)})
    place(board, Order(later, b"other", b"", {}))
    assert board.bucket.get(CODE) == b"other", "its nodes compare what they fetch with the job, which is a new one"
