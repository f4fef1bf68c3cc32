import io
from typing import Any

import boto3
import pytest

from nightowl.cloud.s3 import S3Storage
from nightowl.cloud.storage import ObjectChanged, RemoteObject, parse_url
from nightowl.errors import RemoteError
from tests.cloud.conftest import hasty, unused_endpoint
from tests.cloud.object_server import Fault, ObjectServer

KEYS = ["a b+c.png", "deep/er/1.jpg", "percent%41.png", "ünï/图.jpg", "zzz~!'()*.txt"]


@pytest.fixture
def moto(moto_endpoint: str) -> Any:
    """A boto3 client of the moto server, with a bucket `lines` in Ireland, empty."""
    client = boto3.client("s3", endpoint_url=moto_endpoint, region_name="eu-west-1")
    if "lines" not in {row["Name"] for row in client.list_buckets()["Buckets"]}:
        client.create_bucket(Bucket="lines", CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    for row in client.list_objects_v2(Bucket="lines").get("Contents", []):
        client.delete_object(Bucket="lines", Key=row["Key"])
    return client


def content(storage: S3Storage, found: RemoteObject) -> bytes:
    file = io.BytesIO()
    storage.download(found, file)
    return file.getvalue()


def test_objects_of_any_name_come_as_they_were_put(moto: Any, moto_endpoint: str) -> None:
    for key in KEYS:
        moto.put_object(Bucket="lines", Key=f"line-3/{key}", Body=f"content of {key}".encode())
    moto.put_object(Bucket="lines", Key="line-30/other", Body=b"not under the prefix")
    storage = hasty(moto_endpoint, "s3://lines/line-3")
    found = list(storage.list())
    assert [f.key for f in found] == sorted(KEYS)
    assert [content(storage, f).decode() for f in found] == [f"content of {key}" for key in sorted(KEYS)]


def test_an_object_put_in_parts_comes_whole(moto: Any, moto_endpoint: str) -> None:
    part = b"x" * (5 << 20)
    upload = moto.create_multipart_upload(Bucket="lines", Key="big")["UploadId"]
    etags = [
        moto.upload_part(Bucket="lines", Key="big", PartNumber=n, UploadId=upload, Body=body)["ETag"]
        for n, body in ((1, part), (2, b"end"))
    ]
    parts = [{"PartNumber": n, "ETag": etag} for n, etag in enumerate(etags, 1)]
    moto.complete_multipart_upload(Bucket="lines", Key="big", UploadId=upload, MultipartUpload={"Parts": parts})
    (found,) = hasty(moto_endpoint, "s3://lines").list()
    assert found.etag.endswith("-2")
    assert content(hasty(moto_endpoint, "s3://lines"), found) == part + b"end"


def test_a_bucket_that_is_not_there_is_named_with_the_endpoint(moto_endpoint: str) -> None:
    with pytest.raises(RemoteError, match=r"no bucket 'no-such-lines' at http://127.0.0.1"):
        list(hasty(moto_endpoint, "s3://no-such-lines/x").list())


def test_the_endpoint_may_come_by_the_ordinary_variable(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("data/one", b"1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    assert [found.key for found in hasty(None).list()] == ["one"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("variables", "endpoint"),
    [
        ({"AWS_REGION": "eu-west-1"}, "https://lines.s3.eu-west-1.amazonaws.com"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "https://lines.s3.eu-west-1.amazonaws.com"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-west-2"}, "https://lines.s3.eu-west-1.amazonaws.com"),
        ({}, "https://lines.s3.amazonaws.com"),
        ({"AWS_ENDPOINT_URL_S3": "http://minio:9000"}, "http://minio:9000"),
    ],
)
def test_the_region_and_the_endpoint_come_by_the_ordinary_chain(
    variables: dict[str, str], endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert S3Storage(parse_url("s3://lines/line-3")).bucket.endpoint == endpoint


def test_a_listing_of_many_pages_is_one_listing(server: ObjectServer, bucket: S3Storage) -> None:
    server.page = 3
    for number in range(8):
        server.put(f"data/{number}&<", bytes(number))
    assert [(found.key, found.num_bytes) for found in bucket.list()] == [(f"{number}&<", number) for number in range(8)]
    assert server.requests[""] == 3


def test_without_credentials_the_places_looked_in_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(RemoteError, match="no AWS credentials found; looked in AWS_ACCESS_KEY_ID"):
        hasty("http://127.0.0.1:9")


def test_an_unknown_profile_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "factory")
    with pytest.raises(RemoteError, match="factory"):
        hasty("http://127.0.0.1:9")


def test_a_name_that_no_bucket_can_have_is_one_line() -> None:
    with pytest.raises(RemoteError, match=r"^s3://Bad!/: 'Bad!' cannot be the name of a bucket$"):
        hasty("http://127.0.0.1:9", "s3://Bad!")


def test_an_endpoint_that_is_no_address_is_one_line() -> None:
    with pytest.raises(RemoteError, match="Invalid endpoint: not an address"):
        hasty("not an address")


def test_an_endpoint_where_nobody_listens_is_named() -> None:
    endpoint = unused_endpoint()
    with pytest.raises(RemoteError, match=f"{endpoint} cannot be reached .*gave up after 3 attempts"):
        list(hasty(endpoint).list())


def test_a_server_without_the_encryption_it_was_asked_for_is_not_tried_again(server: ObjectServer) -> None:
    with pytest.raises(RemoteError, match=r"no safe connection to https://127\.0\.0\.1.*see AWS_CA_BUNDLE"):
        list(hasty(server.endpoint.replace("http:", "https:")).list())


def test_a_proxy_is_told_the_whole_address(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("data/one", b"1")
    monkeypatch.setenv("HTTP_PROXY", server.endpoint)
    monkeypatch.setenv("http_proxy", server.endpoint)
    storage = hasty("http://s3.factory.example")
    (found,) = storage.list()
    assert content(storage, found) == b"1"


def test_a_listing_that_is_denied_names_the_permission_and_the_bucket(server: ObjectServer, bucket: S3Storage) -> None:
    server.fault_of = lambda key, attempt: "denied"
    with pytest.raises(RemoteError, match=r"s3://bucket/data/: access denied.* need s3:ListBucket on arn:aws:s3:::bucket$"):
        list(bucket.list())


def test_a_read_that_is_denied_names_the_key_and_the_permission(server: ObjectServer, bucket: S3Storage) -> None:
    server.put("data/secret.png", b"1")
    (found,) = bucket.list()
    server.fault_of = lambda key, attempt: "denied"
    with pytest.raises(RemoteError, match=r"data/secret.png: .*need s3:GetObject on arn:aws:s3:::bucket/data/secret.png$"):
        content(bucket, found)


@pytest.mark.parametrize("fault", ["slow_down", "truncated", "flipped"])
def test_what_passes_by_itself_costs_another_attempt_and_nothing_else(
    server: ObjectServer, bucket: S3Storage, fault: Fault
) -> None:
    server.put("data/one", b"the whole content")
    (found,) = bucket.list()
    server.fault_of = lambda key, attempt: fault if attempt < 3 else None
    assert content(bucket, found) == b"the whole content"
    assert server.requests["data/one"] == 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("slow_down", "503 SlowDown"),
        ("truncated", "the answer broke off"),
        ("flipped", "wrong checksum: its MD5 should be"),
        ("hangs", "cannot be reached .*timed out"),
    ],
)
def test_what_does_not_pass_ends_with_the_key_and_the_reason(server: ObjectServer, fault: Fault, reason: str) -> None:
    server.put("data/one", b"the whole content")
    bucket = hasty(server.endpoint, timeout_seconds=0.2)
    (found,) = bucket.list()
    server.fault_of = lambda key, attempt: fault
    with pytest.raises(RemoteError, match=f"s3://bucket/data/one: .*{reason}.*gave up after 3 attempts"):
        content(bucket, found)


def test_an_object_that_went_or_was_replaced_since_the_listing_is_told_apart(server: ObjectServer, bucket: S3Storage) -> None:
    server.put("data/one", b"before")
    (found,) = bucket.list()
    server.put("data/one", b"after!")
    with pytest.raises(ObjectChanged, match="changed since it was listed"):
        content(bucket, found)
    server.remove("data/one")
    with pytest.raises(ObjectChanged, match="gone since it was listed"):
        content(bucket, found)
