"""An S3 prefix as a storage: small objects by obstore (`quick.py`), the rest request by request.

Listings, large objects and whatever went wrong are asked for here, signed and sent by urllib3, which boto3 uses too: at a third
of what boto3's client takes (benchmarks/pull.md), and with every header of the answer, which is what a clear error is made of.
"""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import IO
from urllib.parse import quote

import urllib3
from urllib3 import BaseHTTPResponse

from nightowl.cloud.checksum import Verifier
from nightowl.cloud.quick import QuickReader
from nightowl.cloud.retry import Retrying, RetryPolicy, Transient
from nightowl.cloud.s3_access import Access, client_options, connections, find_bucket
from nightowl.cloud.s3_errors import explain, parse_refusal, unreachable
from nightowl.cloud.s3_page import bare, next_token, objects_on, parse_page, query_of
from nightowl.cloud.signing import signed_headers
from nightowl.cloud.storage import CHUNK_BYTES, ObjectChanged, Place, RemoteObject, Wanted
from nightowl.errors import RemoteError

TIMEOUT_SECONDS = 30.0
PATIENT = RetryPolicy()
BY_THE_CHAIN = Access()


class S3Storage:
    """The objects under `place`.

    Raises:
        RemoteError: without credentials, or when the endpoint is no address.
    """

    def __init__(
        self,
        place: Place,
        access: Access = BY_THE_CHAIN,
        policy: RetryPolicy = PATIENT,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self.bucket = find_bucket(place, access)
        self._prefix, self._retrying = place.prefix, Retrying(policy)
        self._http, self._before_path = connections(self.bucket, timeout_seconds)
        self._quick = QuickReader(self.bucket, client_options(self.bucket, timeout_seconds))

    @property
    def url(self) -> str:
        return self.bucket.place.url

    def list(self) -> Iterator[RemoteObject]:
        page = self._page("")
        yield from objects_on(page, self._prefix)
        while token := next_token(page):
            page = self._page(token)
            yield from objects_on(page, self._prefix)

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        self._retrying(f"{self.url}{wanted.key}", lambda: self._download_once(wanted, file))

    async def read(self, wanted: Wanted) -> memoryview | None:
        while seconds := self._retrying.closed_seconds():
            await asyncio.sleep(seconds)
        return await self._quick.read(self._prefix + wanted.key, wanted)

    def local(self, wanted: Wanted) -> None:
        return None

    def give_up(self) -> None:
        self._retrying.give_up()

    def _page(self, token: str) -> ET.Element:
        path = self.bucket.path.removesuffix("/") or "/"
        query = query_of(self._prefix, token)
        return self._retrying(self.url, lambda: parse_page(b"".join(_pieces(self._get(path, query, None)))))

    def _download_once(self, wanted: Wanted, file: IO[bytes]) -> None:
        if file.tell():  # what came of an attempt before
            file.seek(0)
            file.truncate()
        response = self._get(self.bucket.path + quote(self._prefix + wanted.key, safe="/-_.~"), "", wanted.key)
        if wanted.etag is not None and bare(response.headers.get("ETag", "")) != wanted.etag:
            response.close()
            raise ObjectChanged(f"{self.url}{wanted.key}: changed since it was listed")
        verifier = Verifier(wanted, response.headers)
        for piece in _pieces(response):
            verifier.update(piece)
            file.write(piece)
        fault = verifier.fault()
        if fault:
            raise Transient(fault)

    def _get(self, path: str, query: str, key: str | None) -> BaseHTTPResponse:
        """A response of status 200 whose body has not been read; `key` is None for a listing."""
        endpoint = self.bucket.endpoint
        headers = signed_headers(self.bucket.keys(), self.bucket.region, self.bucket.host, path, query, datetime.now(UTC))
        target = self._before_path + path + (f"?{query}" if query else "")
        try:
            response = self._http.urlopen("GET", target, headers=headers, retries=False, redirect=False, preload_content=False)
        except urllib3.exceptions.SSLError as error:
            raise RemoteError(f"{self.url}: no safe connection to {endpoint}: {error}; see AWS_CA_BUNDLE") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise unreachable(endpoint, _reason(error)) from error
        if response.status != 200:
            self._refuse(response, key)
        return response

    def _refuse(self, response: BaseHTTPResponse, key: str | None) -> None:
        refusal = parse_refusal(response.status, response.headers, b"".join(_pieces(response)))
        if refusal.status == 404 and refusal.code != "NoSuchBucket" and key is not None:
            raise ObjectChanged(f"{self.url}{key}: gone since it was listed")
        raise refusal.transient() or explain(refusal, self.bucket.place, key, self.bucket.region, self.bucket.endpoint)


def _pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    """The body, as it comes. Raises Transient when it breaks off."""
    try:
        yield from response.stream(CHUNK_BYTES, decode_content=False)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Transient(f"the answer broke off ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).rpartition(": ")[2].split()) or type(error).__name__
