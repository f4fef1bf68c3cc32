import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

from nightowl.cloud.dvc_cache import CachedFolder, pull_tracked
from nightowl.cloud.dvc_tracked import tracked_folder
from nightowl.cloud.mirror import PullReport, pull
from nightowl.errors import DataError, RemoteError, StorageError
from nightowl.progress import untracked
from tests.cloud.object_server import BUCKET, ObjectServer, serving
from tests.cloud.tracked import FILES, config, key_of, list_of, record, remote_objects

S3 = """[core]
    remote = store
['remote "store"']
    url = s3://{bucket}/dvc
    endpointurl = {endpoint}
"""


@pytest.fixture(autouse=True)
def no_other_configuration(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DVC_SYSTEM_CONFIG_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "none"))


@pytest.fixture
def repo(tmp_path: Path, server: ObjectServer) -> Path:
    """A checkout whose `data` is FILES, with its remote on the server and an empty cache."""
    config(tmp_path / "repo", S3.format(bucket=BUCKET, endpoint=server.endpoint))
    publish(server, FILES)
    record(tmp_path / "repo", FILES)
    return tmp_path / "repo"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def publish(server: ObjectServer, files: dict[str, bytes]) -> None:
    for key, body in remote_objects(files).items():
        server.put(f"dvc/{key}", body)


def pull_data(repo: Path, root: Path, verify: bool = False) -> PullReport:
    return pull_tracked(tracked_folder(repo / "data"), root, progress=untracked, verify=verify)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cached(repo: Path) -> dict[str, bytes]:
    return {f"files/md5/{key}": body for key, body in contents(repo / ".dvc/cache/files/md5").items()}


def test_a_tracked_folder_comes_into_the_cache_and_the_mirror(repo: Path, root: Path) -> None:
    report = pull_data(repo, root)
    assert contents(report.folder) == FILES
    assert cached(repo) == remote_objects(FILES)
    assert {path.stat().st_mode & 0o777 for path in (repo / ".dvc/cache/files/md5").glob("*/*")} == {0o444}
    assert (report.num_files, report.num_bytes, report.added) == (4, 20, 4)
    assert (report.fetched_files, report.fetched_bytes) == (5, 20 + len(list_of(FILES)))
    (one,) = (report.folder / "images").glob("1.png")
    assert one.samefile(repo / ".dvc/cache" / key_of(b"first")), "linked, not copied"


def test_with_nothing_new_nobody_is_asked(repo: Path, root: Path, server: ObjectServer) -> None:
    before = pull_data(repo, root)
    server.requests.clear()
    again = pull_data(repo, root)
    assert not server.requests
    assert (again.folder, again.fetched_files, again.added, again.changed, again.removed) == (before.folder, 0, 0, 0, 0)


def test_only_what_changed_moves(repo: Path, root: Path, server: ObjectServer) -> None:
    pull_data(repo, root)
    now = {path: body for path, body in FILES.items() if "1.txt" not in path} | {
        "images/2.png": b"zweites",
        "images/3.png": b"3",
    }
    publish(server, now)
    record(repo, now)
    server.requests.clear()
    report = pull_data(repo, root)
    assert contents(report.folder) == now
    assert (report.added, report.changed, report.removed, report.fetched_files) == (1, 1, 1, 3)
    assert set(server.requests) == {f"dvc/{key_of(body)}" for body in (b"zweites", b"3")} | {
        f"dvc/{key_of(list_of(now), '.dir')}"
    }


def test_a_folder_may_be_the_remote(tmp_path: Path, root: Path) -> None:
    repo = tmp_path / "repo"
    config(repo, "[core]\n    remote = store\n['remote \"store\"']\n    url = ../../store\n")
    for key, body in remote_objects(FILES).items():
        (tmp_path / "store" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "store" / key).write_bytes(body)
    record(repo, FILES)
    assert contents(pull_data(repo, root).folder) == FILES
    assert cached(repo) == remote_objects(FILES)


def flip(path: Path) -> None:
    body = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(bytes([body[0] ^ 1]) + body[1:])
    path.chmod(0o444)


def test_flipped_bytes_in_the_cache_never_come_into_a_new_mirror(repo: Path, root: Path, tmp_path: Path) -> None:
    pull_data(repo, root)
    flip(repo / ".dvc/cache" / key_of(b"first"))
    report = pull_data(repo, tmp_path / "another")
    assert report.fetched_files == 1
    assert contents(report.folder) == FILES
    assert cached(repo) == remote_objects(FILES)


def test_flipped_bytes_are_found_and_repaired_when_asked_for(repo: Path, root: Path) -> None:
    pull_data(repo, root)
    flip(repo / ".dvc/cache" / key_of(b"second"))
    report = pull_data(repo, root, verify=True)
    assert report.fetched_files == 1
    assert contents(report.folder) == FILES
    assert cached(repo) == remote_objects(FILES)


def test_what_dvc_dropped_from_its_cache_is_fetched_again(repo: Path, root: Path) -> None:
    pull_data(repo, root)
    (repo / ".dvc/cache" / key_of(b"second")).unlink()
    assert pull_data(repo, root).fetched_files == 1
    assert cached(repo) == remote_objects(FILES)


def test_a_cache_that_is_emptied_meanwhile_is_said(repo: Path, root: Path) -> None:
    pull_data(repo, root)
    cached_folder = CachedFolder(tracked_folder(repo / "data"), repo / ".dvc/cache")
    (repo / ".dvc/cache" / key_of(b"second")).unlink()
    with pytest.raises(RemoteError, match=r"images/2.png: gone from DVC's cache; listed 3 times"):
        pull(cached_folder, root, progress=untracked)


def test_a_cache_on_another_disk_is_copied_from(repo: Path, tmp_path: Path) -> None:
    shm = Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    config(repo, f"[cache]\n    dir = {shm}/nightowl-{os.getpid()}\n", "config.local")
    try:
        report = pull_data(repo, tmp_path / "mirror")
        assert contents(report.folder) == FILES
        assert (report.folder / "images/1.png").stat().st_nlink == 2
        assert pull_data(repo, tmp_path / "mirror").fetched_files == 0
    finally:
        subprocess.run(["rm", "-rf", f"{shm}/nightowl-{os.getpid()}"], check=True)


def lacking(server: ObjectServer) -> None:
    server.remove(f"dvc/{key_of(b'second')}")


def denied(server: ObjectServer) -> None:
    server.fault_of = lambda key, attempt: "denied" if key.endswith(key_of(b"second")) else None


def without_list(server: ObjectServer) -> None:
    server.remove(f"dvc/{key_of(list_of(FILES), '.dir')}")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lacking, rf"{key_of(b'second')}: gone .*/data needs it, and s3://bucket/dvc/ lacks it .*: dvc push where"),
        (without_list, r"\.dir: gone .*/data needs it, and s3://bucket/dvc/ lacks it"),
        (denied, rf"{key_of(b'second')}: access denied; .*s3:GetObject on arn:aws:s3:::bucket/dvc/files"),
    ],
)
def test_a_remote_that_cannot_give_everything_publishes_nothing(
    fault: Callable[[ObjectServer], None], message: str, repo: Path, root: Path, server: ObjectServer
) -> None:
    fault(server)
    with pytest.raises(RemoteError, match=message):
        pull_data(repo, root)
    assert not (root / "snapshots").exists()
    assert not (repo / ".dvc/cache" / key_of(list_of(FILES), ".dir")).exists(), "the list comes last"
    assert cached(repo).items() <= remote_objects(FILES).items()


@pytest.mark.parametrize("path", ["../../escape", "/etc/passwd", "a//b", "a\\b", ""])
def test_a_path_that_would_leave_the_folder_is_refused(path: str, repo: Path, root: Path, server: ObjectServer) -> None:
    files = {path: b"evil"}
    publish(server, files)
    record(repo, files)
    with pytest.raises(DataError, match="its list of files names"):
        pull_data(repo, root)
    assert not (root / "snapshots").exists()


def test_what_would_not_fit_is_refused_before_anything_moves(repo: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightowl.cloud.mirror.SPARE_BYTES", 10**18)
    with pytest.raises(StorageError, match=r"cache: pulling dvc:/.*/data needs 20 bytes"):
        pull_data(repo, root)
    assert cached(repo) == {}


PULLING = """
import sys
from pathlib import Path
from nightowl.cloud.dvc_cache import CachedFolder, pull_tracked
from nightowl.cloud.dvc_tracked import tracked_folder
print(pull_tracked(tracked_folder(Path(sys.argv[1])), Path(sys.argv[2])))
"""


def test_a_fill_that_is_killed_goes_on_and_ends_whole(tmp_path: Path, root: Path) -> None:
    draw, repo, seed = random.Random(0), tmp_path / "repo", random.randrange(1000)
    files, moments = {f"{n % 7}/{n:04}": draw.randbytes(500) for n in range(1000)}, random.Random(seed)
    with serving(ObjectServer(latency_seconds=0.05)) as server:
        config(repo, S3.format(bucket=BUCKET, endpoint=server.endpoint))
        publish(server, files)
        record(repo, files)
        for _ in range(2):
            command = [sys.executable, "-c", PULLING, str(repo / "data"), str(root)]
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            until, deadline = sum(server.requests.values()) + moments.randrange(1, 400), time.monotonic() + 30
            while sum(server.requests.values()) < until and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.005)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            assert cached(repo).items() <= remote_objects(files).items(), f"seed {seed}"
        assert contents(pull_data(repo, root).folder) == files, f"seed {seed}"
        assert sum(server.requests.values()) < 1000 + 2 * 300, "what had arrived was not fetched again"
    assert cached(repo) == remote_objects(files)


@pytest.mark.parametrize("mirrors", [("mirror", "mirror"), ("mirror", "other")], ids=["one detector", "two of one cache"])
def test_two_pulls_at_once_are_one_after_the_other_and_fetch_once(tmp_path: Path, mirrors: tuple[str, str]) -> None:
    files, repo, may_go = {f"{n}.png": f"image {n}".encode() for n in range(200)}, tmp_path / "repo", threading.Event()
    with serving(ObjectServer()) as server:
        server.fault_of = lambda key, attempt: None if may_go.is_set() or key.endswith(".dir") else "slow_down"
        config(repo, S3.format(bucket=BUCKET, endpoint=server.endpoint))
        publish(server, files)
        record(repo, files)
        first = a_pulling_process(repo, tmp_path / mirrors[0])
        while not server.requests and first.poll() is None:
            time.sleep(0.01)
        second = a_pulling_process(repo, tmp_path / mirrors[1])
        assert second.stderr is not None
        assert "waiting for it to end" in second.stderr.readline()
        may_go.set()
        ends = [process.communicate(timeout=60) for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], ends
    assert "fetched 201 files" in ends[0][0] and "fetched 0 files" in ends[1][0], ends
    assert cached(repo) == remote_objects(files)
    for mirror in mirrors:
        (folder,) = (path for path in (tmp_path / mirror / "snapshots").iterdir() if path.is_dir())
        assert contents(folder / "files") == files


def a_pulling_process(repo: Path, mirror: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PULLING, str(repo / "data"), str(mirror)]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


REAL = """
import sys
from dvc.cli import main
for arguments in sys.argv[1:]:
    print("$", arguments, flush=True)
    if main(arguments.split()):
        sys.exit(arguments)
"""


def dvc(folder: Path, site: Path, *commands: str) -> str:
    """What DVC's own command line prints, several in one process."""
    environment = os.environ | {"DVC_NO_ANALYTICS": "1", "DVC_SITE_CACHE_DIR": str(site)}
    done = subprocess.run([sys.executable, "-c", REAL, *commands], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments], cwd=folder, check=True)


def test_dvc_itself_finds_everything_in_place(tmp_path: Path, root: Path, moto_endpoint: str) -> None:
    made, clone, site = tmp_path / "made", tmp_path / "clone", tmp_path / "site"
    boto3.client("s3", endpoint_url=moto_endpoint).create_bucket(Bucket="tracked")
    for path, body in FILES.items():
        (made / "data" / path).parent.mkdir(parents=True, exist_ok=True)
        (made / "data" / path).write_bytes(body)
    git(made, "init", "--quiet")
    remote = f"remote modify store endpointurl {moto_endpoint}"
    dvc(made, site, "init -q", "remote add -q -d store s3://tracked/dvc", remote, "add -q data", "push -q")
    git(made, "add", "-A")
    git(made, "commit", "--quiet", "-m", "data")
    git(tmp_path, "clone", "--quiet", str(made), str(clone))

    report = pull_data(clone, root)

    assert contents(report.folder) == FILES
    said = dvc(clone, site, "status -c", "remote modify --local store endpointurl http://127.0.0.1:9", "checkout", "status")
    assert "Cache and remote 'store' are in sync." in said
    assert "Data and pipelines are up to date." in said
    assert contents(clone / "data") == FILES
    said = dvc(clone, site, "gc -q -w -f", "status")
    assert "Data and pipelines are up to date." in said
    assert pull_data(clone, root).fetched_files == 0


def peak_bytes(num: int, tmp_path: Path) -> int:
    """Of looking at and listing a folder of `num` files that is in the cache."""
    files = {f"images/line-3/camera-2/{number:08}.jpg": b"" for number in range(num)}
    repo = tmp_path / str(num)
    config(repo, "")
    for key, body in remote_objects(files).items():
        (repo / ".dvc/cache" / key).parent.mkdir(parents=True, exist_ok=True)
        (repo / ".dvc/cache" / key).write_bytes(body)
    cached_folder = CachedFolder(record(repo, files), repo / ".dvc/cache")
    del files
    tracemalloc.start()
    try:
        cached_folder.fill(lambda: pytest.fail("nothing is wanted"), lambda found: False, untracked)
        assert sum(1 for _ in cached_folder.list()) == num
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_stays_under_300_bytes_a_file(tmp_path: Path) -> None:
    peak_bytes(10, tmp_path)
    assert (peak_bytes(2500, tmp_path) - peak_bytes(500, tmp_path)) / 2000 < 300
