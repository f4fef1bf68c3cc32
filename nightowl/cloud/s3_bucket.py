"""An S3 prefix as a bucket, by boto3. What was put is compared with what the store says it holds: size, and SHA-256 where it
keeps one.

Not every store that speaks S3 knows conditional puts: one that does not is found out before the first, and there claims are
made under keys of their own.
"""

import base64
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from nightowl.cloud.bucket import Content, ObjectMissing, StoredObject, checked_key
from nightowl.cloud.retry import Retrying, RetryPolicy, Transient
from nightowl.cloud.s3_errors import NO_CREDENTIALS, Refusal, explain, unreachable
from nightowl.cloud.storage import Place
from nightowl.errors import RemoteError

T = TypeVar("T")
PART_BYTES = 16 << 20  # of an upload; S3 wants at least 5 MiB, and at most 10,000 of them
TIMEOUT_SECONDS = 30.0
_CLAIMS = "claims"


class S3Bucket:
    """The objects under `place`. Credentials and region come by the ordinary AWS chain; `endpoint` goes before
    AWS_ENDPOINT_URL, and without either it is AWS itself.

    Raises:
        RemoteError: without credentials, or when the endpoint is no address.
    """

    def __init__(
        self,
        place: Place,
        endpoint: str | None = None,
        policy: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
        timeout_seconds: float = TIMEOUT_SECONDS,
        part_bytes: int = PART_BYTES,
    ) -> None:
        self._place, self._part_bytes, self._retrying = place, part_bytes, Retrying(policy)
        self._conditional: bool | None = None  # until it was tried
        config = Config(
            signature_version="s3v4",
            connect_timeout=timeout_seconds,
            read_timeout=timeout_seconds,
            retries={"total_max_attempts": 1},
            request_checksum_calculation="when_required",
        )
        try:
            session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
            if session.get_credentials() is None:
                raise RemoteError(f"{place.url}: {NO_CREDENTIALS}")
            self._client: Any = session.client("s3", endpoint_url=endpoint, config=config)
        except (BotoCoreError, ValueError) as error:
            raise RemoteError(f"{place.url}: {error}") from error

    @property
    def url(self) -> str:
        return self._place.url

    def under(self, prefix: str) -> "S3Bucket":
        within = object.__new__(S3Bucket)
        within.__dict__.update(self.__dict__)
        within._place = Place(self._place.bucket, f"{self._place.prefix}{checked_key(prefix)}/")
        return within

    def give_up(self) -> None:
        """Nobody waits any more: what is being tried again fails instead."""
        self._retrying.give_up()

    def put(self, key: str, content: Content) -> None:
        num_bytes = content.stat().st_size if isinstance(content, Path) else len(content)
        if num_bytes <= self._part_bytes:
            whole = content.read_bytes() if isinstance(content, Path) else content
            self._call("PutObject", key, lambda: self._client.put_object(Body=whole, **self._at(key), **_sum(whole)))
            checksum = _base64(hashlib.sha256(whole).digest())
        else:
            checksum = self._put_in_parts(key, content)
        self._compare(key, num_bytes, checksum)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        if not self._has_conditional_puts():
            return self._put_if_alone(key, content)
        return self._put_if_none_matches(key, content) or self._get_or_none(key) == content

    def get(self, key: str) -> bytes:
        found = self._get_or_none(key)
        if found is None:
            raise ObjectMissing(f"{self.url}{key}: no such object")
        return found

    def list(self, prefix: str = "") -> list[StoredObject]:
        query = {"Bucket": self._place.bucket, "Prefix": self._place.prefix + prefix}
        found: list[StoredObject] = []
        token: dict[str, str] = {}
        while True:
            page = self._call("ListBucket", None, lambda: self._client.list_objects_v2(**query, **token))  # noqa: B023
            rows = page.get("Contents", [])
            found += (StoredObject(row["Key"].removeprefix(self._place.prefix), row["Size"]) for row in rows)
            if not page.get("IsTruncated"):
                return [each for each in found if not each.key.startswith(f"{_CLAIMS}/")]
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def delete(self, key: str) -> None:
        self._call("DeleteObject", key, lambda: self._client.delete_object(**self._at(key)))

    def _put_in_parts(self, key: str, content: Content) -> str:
        """Upload piece by piece; returns the checksum that S3 gives such an object: the SHA-256 over those of its parts."""
        at = self._at(key)
        begun = self._call("PutObject", key, lambda: self._client.create_multipart_upload(ChecksumAlgorithm="SHA256", **at))
        at["UploadId"] = begun["UploadId"]
        try:
            parts, digests = [], []
            for number, piece in enumerate(_pieces(content, self._part_bytes), 1):
                send = lambda n=number, p=piece: self._client.upload_part(Body=p, PartNumber=n, **at, **_sum(p))  # noqa: E731
                etag = self._call("PutObject", key, send)["ETag"]
                parts.append({"PartNumber": number, "ETag": etag, **_sum(piece)})
                digests.append(hashlib.sha256(piece).digest())
            whole = {"Parts": parts}
            self._call("PutObject", key, lambda: self._client.complete_multipart_upload(MultipartUpload=whole, **at))
        except BaseException:
            with suppress(RemoteError, ClientError, BotoCoreError):  # what remains is billed until it is aborted
                self._client.abort_multipart_upload(**at)
            raise
        return f"{_base64(hashlib.sha256(b''.join(digests)).digest())}-{len(parts)}"

    def _compare(self, key: str, num_bytes: int, checksum: str) -> None:
        head = self._call("GetObject", key, lambda: self._client.head_object(ChecksumMode="ENABLED", **self._at(key)))
        kept = head.get("ChecksumSHA256")
        if head["ContentLength"] != num_bytes:
            raise RemoteError(f"{self.url}{key}: put {num_bytes} bytes, the store holds {head['ContentLength']}")
        # A store may leave the number of parts out, or sum up the parts in its own way.
        if kept and ("-" in kept) == ("-" in checksum) and kept.partition("-")[0] != checksum.partition("-")[0]:
            raise RemoteError(f"{self.url}{key}: put content of SHA-256 {checksum}, the store holds {kept}")

    def _put_if_none_matches(self, key: str, content: bytes) -> bool:
        def attempt() -> bool:
            try:
                self._client.put_object(Body=content, IfNoneMatch="*", **self._at(key), **_sum(content))
            except ClientError as error:
                status = _refusal(error).status
                if status == 412:
                    return False
                if status == 409:  # another conditional put of this key is under way
                    raise Transient("409 ConditionalRequestConflict") from error
                raise
            return True

        return self._call("PutObject", key, attempt)

    def _has_conditional_puts(self) -> bool:
        """Whether the store refuses the second of two conditional puts; asked once, with an object that is removed again."""
        if self._conditional is None:
            key = f"{_CLAIMS}/probe-{secrets.token_hex(8)}"
            try:
                self._put_if_none_matches(key, b"1")
                self._conditional = not self._put_if_none_matches(key, b"2")
            except _NotImplemented:
                self._conditional = False
            self.delete(key)
        return self._conditional

    def _put_if_alone(self, key: str, content: bytes) -> bool:
        """The same without conditional puts. Whoever claims says so under a key of its own, and puts only if no other claim
        and no object is there; of two at once both may lose, never both win, and a claim of one that died keeps its key."""
        ours = f"{_CLAIMS}/{key}/{secrets.token_hex(8)}"
        self.put(ours, b"")
        try:
            query = {"Bucket": self._place.bucket, "Prefix": f"{self._place.prefix}{_CLAIMS}/{key}/"}
            claims = self._call("ListBucket", None, lambda: self._client.list_objects_v2(**query)).get("Contents", [])
            there = self._get_or_none(key)
            if there is not None or len(claims) > 1:
                return there == content
            self.put(key, content)
            return True
        finally:
            self.delete(ours)

    def _get_or_none(self, key: str) -> bytes | None:
        def attempt() -> bytes | None:
            try:
                return bytes(self._client.get_object(ChecksumMode="ENABLED", **self._at(key))["Body"].read())
            except ClientError as error:
                if _refusal(error).code == "NoSuchKey":
                    return None
                raise

        return self._call("GetObject", key, attempt)

    def _at(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._place.bucket, "Key": self._place.prefix + checked_key(key)}

    def _call(self, action: str, key: str | None, function: Callable[[], T]) -> T:
        """What `function` returns, tried again while it may pass. Raises RemoteError in one line."""

        def attempt() -> T:
            try:
                return function()
            except ClientError as error:
                refusal = _refusal(error)
                if refusal.status == 501:
                    raise _NotImplemented(str(error)) from error
                meta = self._client.meta
                explained = explain(refusal, self._place, key, meta.region_name, meta.endpoint_url, f"s3:{action}")
                raise refusal.transient() or explained from error
            except ParamValidationError as error:
                raise RemoteError(f"{self.url}: {self._place.bucket!r} cannot be the name of a bucket") from error
            except BotoCoreError as error:
                raise unreachable(self._client.meta.endpoint_url, type(error).__name__) from error

        return self._retrying(f"{self.url}{key or ''}", attempt)


class _NotImplemented(RemoteError):
    """The store says that it does not know this kind of request."""


def _refusal(error: ClientError) -> Refusal:
    told, meta = error.response.get("Error", {}), error.response.get("ResponseMetadata", {})
    headers = meta.get("HTTPHeaders", {})
    return Refusal(
        status=meta.get("HTTPStatusCode", 0),
        code=told.get("Code", ""),
        message=" ".join(told.get("Message", "").split()),
        region=headers.get("x-amz-bucket-region") or told.get("Region"),
        retry_after=headers.get("retry-after"),
    )


def _pieces(content: Content, size: int) -> Iterator[bytes]:
    if isinstance(content, Path):
        with content.open("rb") as file:
            while piece := file.read(size):
                yield piece
    else:
        yield from (content[first : first + size] for first in range(0, len(content), size))


def _sum(content: bytes) -> dict[str, str]:
    return {"ChecksumSHA256": _base64(hashlib.sha256(content).digest())}


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
