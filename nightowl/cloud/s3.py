"""An S3 prefix as a storage: where and as whom by boto3; small objects by obstore (`quick.py`); the rest request by request.

Listings, large objects and whatever went wrong are asked for here, signed and sent by urllib3, which boto3 uses too: at a third
of what boto3's client takes (benchmarks/pull.py), and with every header of the answer, which is what a clear error is made of.
"""

import asyncio
import os
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, unquote_plus, urlsplit

import boto3
import urllib3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ParamValidationError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies
from urllib3 import BaseHTTPResponse

from nightowl.cloud.checksum import Verifier
from nightowl.cloud.quick import Address, QuickReader
from nightowl.cloud.retry import Retrying, RetryPolicy, Transient
from nightowl.cloud.s3_errors import NO_CREDENTIALS, explain, parse_refusal
from nightowl.cloud.signing import Keys, signed_headers
from nightowl.cloud.storage import CHUNK_BYTES, ObjectChanged, Place, RemoteObject, Wanted
from nightowl.errors import RemoteError

if TYPE_CHECKING:
    from obstore.store import ClientConfig

NUM_CONNECTIONS = 64
TIMEOUT_SECONDS = 30.0
PATIENT = RetryPolicy()


@dataclass(frozen=True)
class Access:
    """Where and as whom, as far as somebody said; the rest comes by the ordinary AWS chain. `endpoint` goes before
    AWS_ENDPOINT_URL; without either it is AWS itself."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    access_key: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


class S3Storage:
    """The objects under `place`.

    Raises:
        RemoteError: without credentials, or when the endpoint is no address.
    """

    def __init__(
        self,
        place: Place,
        access: Access = Access(),
        policy: RetryPolicy = PATIENT,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._place, self._retrying = place, Retrying(policy)
        try:
            session = _session(access)
            self._credentials = session.get_credentials()
            client = session.client("s3", endpoint_url=access.endpoint, config=Config(signature_version="s3v4"))
            if self._credentials is None:
                raise RemoteError(f"{place.url}: {NO_CREDENTIALS}")
            address = urlsplit(_address_of_object(client, place.bucket))
        except ParamValidationError as error:
            raise RemoteError(f"{place.url}: {place.bucket!r} cannot be the name of a bucket") from error
        except (BotoCoreError, ValueError) as error:
            raise RemoteError(f"{place.url}: {error}") from error
        self.region: str = client.meta.region_name
        self._host, self._bucket_path = address.netloc, address.path.removesuffix("-")
        self.endpoint = f"{address.scheme}://{self._host}"
        trusted = get_cert_path(session._session.get_config_variable("ca_bundle") or True)
        proxy = get_environ_proxies(self.endpoint).get(address.scheme)
        self._http, self._before_path = _connections(self.endpoint, proxy, trusted, timeout_seconds)
        path = address.path.removesuffix("/-")
        in_host = address.netloc.startswith(f"{place.bucket}.") and not path.endswith(f"/{place.bucket}")
        where = self.endpoint + (path if in_host else path.removesuffix(f"/{place.bucket}"))
        options = _quick_options(proxy, trusted, timeout_seconds)
        self._quick = QuickReader(Address(where, place.bucket, in_host, self.region), self.keys, options)

    @property
    def url(self) -> str:
        return self._place.url

    def list(self) -> Iterator[RemoteObject]:
        page: ET.Element | None = None
        while page is None or page.findtext("{*}IsTruncated") == "true":
            token = "" if page is None else _text(page, "NextContinuationToken")
            page = self._retrying(self.url, lambda: self._page(token))  # noqa: B023 (called at once)
            encoded = page.findtext("{*}EncodingType") == "url"
            for row in page.iterfind("{*}Contents"):
                yield self._object(row, encoded)

    def download(self, wanted: Wanted, file: IO[bytes]) -> None:
        self._retrying(f"{self.url}{wanted.key}", lambda: self._download_once(wanted, file))

    async def read(self, wanted: Wanted) -> memoryview | None:
        while seconds := self._retrying.closed_seconds():
            await asyncio.sleep(seconds)
        return await self._quick.read(self._place.prefix + wanted.key, wanted)

    def local(self, wanted: Wanted) -> None:
        return None

    def give_up(self) -> None:
        self._retrying.give_up()

    def keys(self) -> Keys:
        """The credentials as they are now. Raises RemoteError when temporary ones cannot be renewed."""
        try:
            return Keys(*self._credentials.get_frozen_credentials()[:3])
        except BotoCoreError as error:
            raise RemoteError(f"{self.url}: {error}") from error

    def _page(self, token: str) -> ET.Element:
        query = {"encoding-type": "url", "list-type": "2", "prefix": self._place.prefix}
        if token:
            query["continuation-token"] = token
        parts = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
        path = self._bucket_path if self._bucket_path == "/" else self._bucket_path.removesuffix("/")
        body = b"".join(_pieces(self._get(path, parts, None)))
        try:
            return ET.fromstring(body)
        except ET.ParseError as error:
            raise Transient(f"the listing is not XML ({error})") from error

    def _object(self, row: ET.Element, encoded: bool) -> RemoteObject:
        values = {child.tag.rpartition("}")[2]: child.text or "" for child in row}  # at a third of what three searches take
        try:
            key = unquote_plus(values["Key"]) if encoded else values["Key"]
            return RemoteObject(key.removeprefix(self._place.prefix), int(values["Size"]), _bare(values["ETag"]))
        except KeyError as error:
            raise _no_s3(str(error)) from None

    def _download_once(self, wanted: Wanted, file: IO[bytes]) -> None:
        if file.tell():  # what came of an attempt before
            file.seek(0)
            file.truncate()
        response = self._get(self._bucket_path + quote(self._place.prefix + wanted.key, safe="/-_.~"), "", wanted.key)
        if wanted.etag is not None and _bare(response.headers.get("ETag", "")) != wanted.etag:
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
        headers = signed_headers(self.keys(), self.region, self._host, path, query, datetime.now(UTC))
        target = self._before_path + path + (f"?{query}" if query else "")
        try:
            response = self._http.urlopen("GET", target, headers=headers, retries=False, redirect=False, preload_content=False)
        except urllib3.exceptions.SSLError as error:
            raise RemoteError(f"{self.url}: no safe connection to {self.endpoint}: {error}; see AWS_CA_BUNDLE") from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Transient(f"{self.endpoint} cannot be reached ({_reason(error)})") from error
        if response.status != 200:
            self._refuse(response, key)
        return response

    def _refuse(self, response: BaseHTTPResponse, key: str | None) -> None:
        refusal = parse_refusal(response.status, response.headers, b"".join(_pieces(response)))
        if refusal.status == 404 and refusal.code != "NoSuchBucket" and key is not None:
            raise ObjectChanged(f"{self.url}{key}: gone since it was listed")
        raise refusal.transient() or explain(refusal, self._place, key, self.region, self.endpoint)


class _Asked(Exception):
    """Carries the address of a request that is not going to be sent."""


def _address_of_object(client: Any, bucket: str) -> str:
    """Where boto3 would ask for the object `-`: it knows about regions, names with dots and other servers."""

    def stop(request: Any, **_: object) -> None:
        raise _Asked(request.url)

    client.meta.events.register_first("request-created.s3.HeadObject", stop)
    try:
        client.head_object(Bucket=bucket, Key="-")
    except _Asked as asked:
        return str(asked)
    raise AssertionError("boto3 sent a request without creating it")


def _session(access: Access) -> Any:
    # Of itself, boto3 reads only AWS_DEFAULT_REGION.
    region = access.region or os.environ.get("AWS_REGION") or None
    return boto3.Session(access.access_key, access.secret_key, access.token, region, profile_name=access.profile)


def _connections(
    endpoint: str, proxy: str | None, trusted: str, timeout_seconds: float
) -> tuple[urllib3.HTTPConnectionPool | urllib3.ProxyManager, str]:
    """Kept-open connections to one endpoint, and what goes before a path in a request: a proxy is told the whole address."""
    timeout = urllib3.Timeout(timeout_seconds)
    if proxy:
        return urllib3.ProxyManager(proxy, maxsize=NUM_CONNECTIONS, timeout=timeout, ca_certs=trusted), endpoint
    secure = {"ca_certs": trusted} if endpoint.startswith("https") else {}
    return urllib3.connection_from_url(endpoint, maxsize=NUM_CONNECTIONS, timeout=timeout, **secure), ""


def _quick_options(proxy: str | None, trusted: str, timeout_seconds: float) -> "ClientConfig":
    """The same for obstore."""
    options: ClientConfig = {"timeout": f"{round(timeout_seconds * 1000)}ms"}
    certificates = _certificates(trusted)
    if certificates:
        options["root_certificate"] = certificates
    if proxy:
        options["proxy_url"] = proxy
    return options


def _certificates(trusted: str) -> str | None:
    """The text of a file of certificates; None for what is no readable one, which the first request then says."""
    try:
        return Path(trusted).read_text(encoding="ascii", errors="ignore")
    except OSError:
        return None


def _pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    """The body, as it comes. Raises Transient when it breaks off."""
    try:
        yield from response.stream(CHUNK_BYTES, decode_content=False)
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Transient(f"the answer broke off ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return " ".join(str(error).rpartition(": ")[2].split()) or type(error).__name__


def _bare(etag: str) -> str:
    return etag.removeprefix("W/").strip('"')


def _text(element: ET.Element, name: str) -> str:
    value = element.findtext(f"{{*}}{name}")
    if value is None:
        raise _no_s3(repr(name))
    return value


def _no_s3(name: str) -> RemoteError:
    return RemoteError(f"the listing has an entry without {name}: the server does not speak S3 (ListObjectsV2)")
