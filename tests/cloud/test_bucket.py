"""One table of what a bucket does, on a folder, on S3, and on a store that speaks S3 but knows no conditional puts."""

import base64
import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import boto3
import pytest

from nightowl.cloud.bucket import Bucket, FolderBucket, ObjectMissing, checked_key
from nightowl.cloud.s3_bucket import S3Bucket
from nightowl.cloud.storage import Place, parse_url
from nightowl.errors import RemoteError
from tests.cloud.conftest import HASTY, unused_endpoint

PART = 5 << 20


def an_s3_bucket(endpoint: str, prefix: str = "run/") -> S3Bucket:
    return S3Bucket(Place("checkpoints", prefix), endpoint, HASTY, 5.0, PART)


def ignoring_conditions(bucket: S3Bucket) -> S3Bucket:
    """The same, on a store that takes no notice of If-None-Match."""

    def strip(request: Any, **_: object) -> None:
        del request.headers["If-None-Match"]

    bucket._client.meta.events.register("before-sign.s3.PutObject", strip)
    return bucket


@pytest.fixture
def client(moto_endpoint: str) -> Iterator[Any]:
    """A boto3 client of the moto server, with an empty bucket `checkpoints`."""
    client = boto3.client("s3", endpoint_url=moto_endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="checkpoints")
    for row in client.list_objects_v2(Bucket="checkpoints").get("Contents", []):
        client.delete_object(Bucket="checkpoints", Key=row["Key"])
    yield client
    client.close()


@pytest.fixture(params=["folder", "s3", "s3 without conditions"])
def bucket(request: pytest.FixtureRequest, tmp_path: Path) -> Bucket:
    if request.param == "folder":
        return FolderBucket(tmp_path / "bucket")
    request.getfixturevalue("client")
    made = an_s3_bucket(request.getfixturevalue("moto_endpoint"))
    return made if request.param == "s3" else ignoring_conditions(made)


def keys(bucket: Bucket, prefix: str = "") -> list[str]:
    return [found.key for found in bucket.list(prefix)]


def test_what_was_put_is_listed_in_order_and_read_back(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "a file").write_bytes(b"22")
    bucket.put("commits/b", b"1")
    bucket.put("commits/a", tmp_path / "a file")
    bucket.put("data/ü", b"")
    assert [tuple(found) for found in bucket.list()] == [("commits/a", 2), ("commits/b", 1), ("data/ü", 0)]
    assert [bucket.get(key) for key in keys(bucket)] == [b"22", b"1", b""]


@pytest.mark.parametrize(
    ("prefix", "found", "reason"),
    [
        ("data/", ["data/1", "data/2"], "a folder"),
        ("data/1", ["data/1"], "part of a name"),
        ("da", ["data/1", "data/2"], "part of a folder's name"),
        ("none/", [], "nothing is there"),
    ],
)
def test_a_prefix_is_a_prefix_of_the_key(bucket: Bucket, prefix: str, found: list[str], reason: str) -> None:
    for key in ("data/1", "data/2", "commits/1"):
        bucket.put(key, b"x")
    assert keys(bucket, prefix) == found, reason


def test_a_part_of_a_bucket_is_a_bucket(bucket: Bucket) -> None:
    bucket.under("demo/key").put("data/1", b"x")
    bucket.put("demo/key2", b"y")
    assert keys(bucket) == ["demo/key/data/1", "demo/key2"]
    assert keys(bucket.under("demo/key")) == ["data/1"]
    assert bucket.under("demo").under("key").get("data/1") == b"x"
    assert bucket.under("demo/key").url == bucket.url + "demo/key/"


def test_a_put_takes_the_place_of_what_was_there(bucket: Bucket) -> None:
    bucket.put("data/1", b"before")
    bucket.put("data/1", b"after")
    assert bucket.get("data/1") == b"after"


def test_what_is_deleted_is_gone_and_may_be_deleted_again(bucket: Bucket) -> None:
    bucket.put("data/1", b"x")
    bucket.delete("data/1")
    bucket.delete("data/1")
    bucket.delete("nowhere/1")
    assert keys(bucket) == []
    with pytest.raises(ObjectMissing, match="data/1: no such object"):
        bucket.get("data/1")


def test_only_the_first_of_two_contents_is_put_if_absent(bucket: Bucket) -> None:
    assert bucket.put_if_absent("writers/1", b"ours")
    assert not bucket.put_if_absent("writers/1", b"theirs")
    assert bucket.put_if_absent("writers/1", b"ours"), "the same again: our answer may have been lost"
    assert bucket.get("writers/1") == b"ours"
    assert keys(bucket) == ["writers/1"]


def test_of_many_that_race_at_most_one_wins_and_all_see_its_content(bucket: Bucket) -> None:
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda n: bucket.put_if_absent("writers/1", f"writer {n}".encode()), range(8)))
    winners = [f"writer {n}".encode() for n, is_won in enumerate(won) if is_won]
    assert len(winners) <= 1
    assert [bucket.get(key) for key in keys(bucket)] == winners


@pytest.mark.parametrize("key", ["", "/x", "a//b", "../x", "a/../b", ".hidden", "a/.b", "a\\b", "a\0b"])
def test_a_key_that_would_lead_elsewhere_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="expected the key of an object"):
        checked_key(key)


@pytest.mark.parametrize("as_file", [True, False])
def test_a_big_object_goes_up_in_parts_with_their_checksums(
    client: Any, moto_endpoint: str, tmp_path: Path, as_file: bool
) -> None:
    content = os.urandom(2 * PART + 7)
    (tmp_path / "big").write_bytes(content)
    bucket = an_s3_bucket(moto_endpoint)
    bucket.put("data/big", tmp_path / "big" if as_file else content)
    head = client.head_object(Bucket="checkpoints", Key="run/data/big", ChecksumMode="ENABLED")
    parts = [content[:PART], content[PART : 2 * PART], content[2 * PART :]]
    joined = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).digest()
    assert head["ChecksumSHA256"].partition("-")[0] == base64.b64encode(joined).decode()
    assert head["ETag"].endswith('-3"')
    assert bucket.get("data/big") == content


def test_an_upload_that_breaks_off_leaves_neither_object_nor_parts(client: Any, moto_endpoint: str) -> None:
    bucket = an_s3_bucket(moto_endpoint)
    bucket._client.meta.events.register("before-send.s3.UploadPart", _refuse("AccessDenied", 403, only_part=2))
    with pytest.raises(RemoteError, match=r"run/data/big: access denied; the credentials in use need s3:PutObject on arn"):
        bucket.put("data/big", bytes(2 * PART))
    assert bucket.list() == []
    assert client.list_multipart_uploads(Bucket="checkpoints").get("Uploads", []) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"ContentLength": 3}, "put 5 bytes, the store holds 3"),
        ({"ChecksumSHA256": "AAAA"}, "put content of SHA-256 .*, the store holds AAAA"),
    ],
)
def test_what_the_store_holds_is_compared_with_what_was_put(
    client: Any, moto_endpoint: str, change: dict[str, object], told: str
) -> None:
    bucket = an_s3_bucket(moto_endpoint)
    bucket._client.meta.events.register("after-call.s3.HeadObject", lambda parsed, **_: parsed.update(change))
    with pytest.raises(RemoteError, match=told):
        bucket.put("data/1", b"12345")


def test_a_conflict_between_conditional_puts_is_tried_again(client: Any, moto_endpoint: str) -> None:
    bucket, answers = an_s3_bucket(moto_endpoint), iter([True, True])
    assert bucket.put_if_absent("writers/1", b"1")  # the store was probed
    refuse = _refuse("ConditionalRequestConflict", 409)
    bucket._client.meta.events.register(
        "before-send.s3.PutObject", lambda request, **_: refuse(request) if next(answers, False) else None
    )
    assert bucket.put_if_absent("writers/2", b"2")
    assert next(answers, "used up") == "used up"


def test_a_store_that_says_it_knows_no_conditions_is_served_too(client: Any, moto_endpoint: str) -> None:
    bucket, refuse = an_s3_bucket(moto_endpoint), _refuse("NotImplemented", 501)
    bucket._client.meta.events.register(
        "before-send.s3.PutObject", lambda request, **_: refuse(request) if "If-None-Match" in request.headers else None
    )
    assert bucket.put_if_absent("writers/1", b"ours") and not bucket.put_if_absent("writers/1", b"theirs")


def test_a_listing_of_many_pages_is_one_listing(client: Any, moto_endpoint: str) -> None:
    bucket = an_s3_bucket(moto_endpoint)
    for number in range(5):
        bucket.put(f"data/{number}", b"x")
    bucket._client.meta.events.register("before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=2))
    assert keys(bucket) == [f"data/{number}" for number in range(5)]


def test_a_store_that_nobody_answers_for_is_named_with_the_object() -> None:
    endpoint = unused_endpoint()
    with pytest.raises(RemoteError, match=f"run/data/1: {endpoint} cannot be reached .*gave up after 3 attempts"):
        an_s3_bucket(endpoint).get("data/1")


def test_a_bucket_that_is_not_there_and_a_name_that_none_can_have_are_one_line(client: Any, moto_endpoint: str) -> None:
    for url, told in (("s3://no-such/x", "there is no bucket 'no-such'"), ("s3://Bad!", "cannot be the name of a bucket")):
        with pytest.raises(RemoteError, match=told):
            S3Bucket(parse_url(url), moto_endpoint, HASTY).put("data/1", b"1")


def test_without_credentials_the_places_looked_in_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteError, match="no AWS credentials found; looked in"):
        an_s3_bucket("http://127.0.0.1:9")


def test_a_stream_is_put_with_its_size_and_digest_or_not_at_all(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path)

    def produce(file: IO[bytes]) -> None:
        file.write(b"one")
        file.write(b" two")

    assert bucket.put_stream("data/1", produce) == (7, hashlib.sha256(b"one two").hexdigest())
    with pytest.raises(OSError, match="full"):
        bucket.put_stream("data/1", lambda file: file.write(b"half") and _full())
    assert bucket.get("data/1") == b"one two" and keys(bucket) == ["data/1"]


def _full() -> None:
    raise OSError("full")


def test_what_a_killed_writer_left_is_swept_away(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path)
    bucket.put("data/1", b"x")
    (tmp_path / "data" / ".put.abc").write_bytes(b"half")
    bucket.sweep()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["1"]


def test_a_full_disk_leaves_the_object_that_was_there(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path)
    bucket.put("data/1", b"before")
    with pytest.raises(FileNotFoundError):
        bucket.put("data/1", tmp_path / "absent")
    assert bucket.get("data/1") == b"before"
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["1"]


def _refuse(code: str, status: int, only_part: int | None = None) -> Callable[..., Any]:
    """A hook of boto3 that answers in the store's place."""
    from botocore.awsrequest import AWSResponse

    class Raw:
        def stream(self, *_: object, **__: object) -> Iterator[bytes]:
            yield f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()

    def answer(request: Any, **_: object) -> Any:
        if only_part is not None and f"partNumber={only_part}&" not in request.url:
            return None
        return AWSResponse(request.url, status, {}, Raw())

    return answer
