import asyncio
import errno
import hashlib
import json
import resource
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from nightowl.cloud.bulk import IN_FLIGHT, fetch_all
from nightowl.cloud.mirror import newest, pull
from nightowl.cloud.objects import ObjectStore
from nightowl.cloud.s3 import S3Storage
from nightowl.cloud.storage import FolderStorage, NamedByContent, RemoteObject, Wanted
from nightowl.errors import RemoteError
from nightowl.progress import untracked
from tests.cloud.conftest import hasty
from tests.cloud.object_server import Fault, ObjectServer, serving

NUM = 40


@pytest.fixture
def wanted(server: ObjectServer) -> dict[str, bytes]:
    """What the server holds under data/."""
    bodies = {f"{number:02}": b"content of %d" % number for number in range(NUM)}
    for key, body in bodies.items():
        server.put(f"data/{key}", body)
    return bodies


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirror"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_small_objects_take_one_request_each(
    server: ObjectServer, bucket: S3Storage, wanted: dict[str, bytes], root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "download", lambda *_: pytest.fail("the quick reader should have it"))
    assert contents(pull(bucket, root, progress=untracked).folder) == wanted
    assert sum(server.requests.values()) == 1 + NUM


@pytest.mark.parametrize("fault", ["slow_down", "truncated", "flipped", "hangs"])
def test_what_passes_by_itself_does_not_hinder_a_pull(
    server: ObjectServer, wanted: dict[str, bytes], root: Path, fault: Fault
) -> None:
    server.fault_of = lambda key, attempt: fault if key.endswith("7") and attempt < 3 else None
    storage = hasty(server.endpoint, timeout_seconds=0.3)
    assert contents(pull(storage, root, progress=untracked).folder) == wanted


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("denied", r"s3://bucket/data/17: access denied; .*s3:GetObject on arn:aws:s3:::bucket/data/17$"),
        ("flipped", "s3://bucket/data/17: wrong checksum: .*gave up after"),
        ("slow_down", "s3://bucket/data/17: 503 SlowDown; gave up after"),
        ("hangs", "s3://bucket/data/17: .*timed out"),
        ("vanished", "s3://bucket/data/17: gone since it was listed; listed 3 times"),
    ],
)
def test_what_does_not_pass_ends_in_one_line_and_publishes_nothing(
    server: ObjectServer, wanted: dict[str, bytes], root: Path, fault: Fault, message: str
) -> None:
    server.fault_of = lambda key, attempt: fault if key == "data/17" else None
    with pytest.raises(RemoteError, match=message):
        pull(hasty(server.endpoint, timeout_seconds=0.2), root, progress=untracked)
    assert newest(root) is None


def test_a_server_that_goes_down_in_the_middle_is_said_and_the_next_pull_goes_on(root: Path) -> None:
    with serving(ObjectServer()) as server:
        for number in range(NUM):
            server.put(f"data/{number:02}", b"%d" % number)
        storage = hasty(server.endpoint)
        listed = list(storage.list())
    storage.list = lambda: iter(listed)  # type: ignore[method-assign]
    with pytest.raises(RemoteError, match=r"data/\d+: http://127.0.0.1:\d+ cannot be reached .*gave up after"):
        pull(storage, root, progress=untracked)
    assert newest(root) is None
    with serving(server):
        assert len(contents(pull(hasty(server.endpoint), root, progress=untracked).folder)) == NUM


def test_etags_under_kms_are_no_md5_and_the_quick_reader_leaves_off(
    server: ObjectServer, bucket: S3Storage, root: Path
) -> None:
    server.headers = {"x-amz-server-side-encryption": "aws:kms"}
    bodies = {f"{number:03}": b"content of %d" % number for number in range(600)}
    for key, body in bodies.items():
        server.put(f"data/{key}", body)
        server.etags[f"data/{key}"] = hashlib.md5(body + b"?").hexdigest()
    assert contents(pull(bucket, root, progress=untracked).folder) == bodies
    assert 600 < sum(server.requests.values()) < 1 + 600 + 101 + IN_FLIGHT


def test_large_objects_and_small_ones_come_together(server: ObjectServer, bucket: S3Storage, root: Path) -> None:
    large = {"large": bytes(3 << 20), "small": b"1", "empty": b""}
    for key, body in large.items():
        server.put(f"data/{key}", body)
    assert contents(pull(bucket, root, progress=untracked).folder) == large


def test_no_more_is_in_flight_than_stated(tmp_path: Path) -> None:
    class Counting(FolderStorage):
        now = most = 0

        async def read(self, wanted: Wanted) -> None:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            self.now -= 1

        def download(self, wanted: Wanted, file: IO[bytes]) -> None:
            file.write(b"")

    storage, objects = Counting(tmp_path), ObjectStore(tmp_path / "objects", tmp_path / "arriving")
    objects.prepare()
    todo = (NamedByContent(str(n), f"{n:032x}") for n in range(1000))
    assert sum(1 for _ in fetch_all(storage, objects, todo)) == 1000
    assert storage.most == IN_FLIGHT


def test_a_full_disk_is_said_with_the_place_and_the_next_pull_ends_whole(
    server: ObjectServer, bucket: S3Storage, wanted: dict[str, bytes], root: Path
) -> None:
    server.put("data/large", bytes(200_000))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: .*objects") as told:
            pull(bucket, root, progress=untracked)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert told.value.errno == errno.EFBIG
    assert newest(root) is None
    assert contents(pull(hasty(server.endpoint), root, progress=untracked).folder) == wanted | {"large": bytes(200_000)}


def test_temporary_credentials_of_the_ordinary_chain_sign_every_request(
    server: ObjectServer, wanted: dict[str, bytes], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process stands for single sign-on and the machine's role: botocore gives them out, and renews them, in one way."""
    given = {"Version": 1, "AccessKeyId": "ASIAPROCESS", "SecretAccessKey": "s", "SessionToken": "t"}
    (tmp_path / "keys.json").write_text(json.dumps(given | {"Expiration": "2100-01-01T00:00:00Z"}))
    (tmp_path / "config").write_text(f"[profile line]\ncredential_process = cat {tmp_path}/keys.json\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "line")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert contents(pull(hasty(server.endpoint), root, progress=untracked).folder) == wanted
    assert server.access_keys == {"ASIAPROCESS"}
    assert sum(server.requests.values()) == 1 + NUM


class Many(FolderStorage):
    """A number of equal objects, as a listing that is never held."""

    def __init__(self, num: int) -> None:
        super().__init__(Path("/nowhere"))
        self._num = num

    def list(self) -> Iterator[RemoteObject]:
        etag = hashlib.md5(b"").hexdigest()
        return (
            RemoteObject(f"images/line-3/camera-2/{number:08}.jpg", 1, etag[:-8] + f"{number:08}")
            for number in range(self._num)
        )

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        file.write(b"x")


def peak_bytes(num: int, root: Path) -> int:
    tracemalloc.start()
    try:
        pull(Many(num), root / str(num), progress=untracked)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or coverage counts too")
def test_memory_does_not_grow_with_the_number_of_objects(tmp_path: Path) -> None:
    peak_bytes(200, tmp_path / "warm")
    assert (peak_bytes(2500, tmp_path) - peak_bytes(500, tmp_path)) / 2000 < 300
