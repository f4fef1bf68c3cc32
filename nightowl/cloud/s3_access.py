"""Where a bucket is asked for, as whom and over which connections: found by boto3 as every AWS tool finds it."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ParamValidationError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from nightowl.cloud.s3_errors import NO_CREDENTIALS
from nightowl.cloud.signing import Keys
from nightowl.cloud.storage import Place
from nightowl.errors import RemoteError

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from obstore.store import ClientConfig

NUM_CONNECTIONS = 64


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


@dataclass(frozen=True)
class Bucket:
    """A bucket that can be asked: `path` is that of its objects at `endpoint`, from slash to slash; `in_name` says that the
    bucket's name is in the host's. `proxy` and `trusted` (a file of certificates) are what the environment says."""

    place: Place
    endpoint: str
    path: str
    region: str
    credentials: "Credentials"
    proxy: str | None
    trusted: str

    @property
    def host(self) -> str:
        return urlsplit(self.endpoint).netloc

    @property
    def in_name(self) -> bool:
        return not self.path.endswith(f"/{self.place.bucket}/")

    def keys(self) -> Keys:
        """The credentials as they are now. Raises RemoteError when temporary ones cannot be renewed."""
        try:
            return Keys(*self.credentials.get_frozen_credentials()[:3])
        except BotoCoreError as error:
            raise RemoteError(f"{self.place.url}: {error}") from error


def find_bucket(place: Place, access: Access) -> Bucket:
    """Asks nobody but the AWS chain.

    Raises:
        RemoteError: without credentials, or when the endpoint is no address.
    """
    # Of itself, boto3 reads only AWS_DEFAULT_REGION.
    region = access.region or os.environ.get("AWS_REGION") or None
    try:
        session = boto3.Session(access.access_key, access.secret_key, access.token, region, profile_name=access.profile)
        credentials = session.get_credentials()
        client = session.client("s3", endpoint_url=access.endpoint, config=Config(signature_version="s3v4"))
        if credentials is None:
            raise RemoteError(f"{place.url}: {NO_CREDENTIALS}")
        address = urlsplit(_address_of_object(client, place.bucket))
    except ParamValidationError as error:
        raise RemoteError(f"{place.url}: {place.bucket!r} cannot be the name of a bucket") from error
    except (BotoCoreError, ValueError) as error:
        raise RemoteError(f"{place.url}: {error}") from error
    endpoint = f"{address.scheme}://{address.netloc}"
    proxy = get_environ_proxies(endpoint).get(address.scheme)
    trusted = get_cert_path(session._session.get_config_variable("ca_bundle") or True)
    return Bucket(place, endpoint, address.path.removesuffix("-"), client.meta.region_name, credentials, proxy, trusted)


def connections(bucket: Bucket, timeout_seconds: float) -> tuple[urllib3.HTTPConnectionPool | urllib3.ProxyManager, str]:
    """Kept-open connections to the endpoint, and what goes before a path in a request: a proxy is told the whole address."""
    timeout, trusted = urllib3.Timeout(timeout_seconds), bucket.trusted
    if bucket.proxy:
        return urllib3.ProxyManager(bucket.proxy, maxsize=NUM_CONNECTIONS, timeout=timeout, ca_certs=trusted), bucket.endpoint
    secure = {"ca_certs": trusted} if bucket.endpoint.startswith("https") else {}
    return urllib3.connection_from_url(bucket.endpoint, maxsize=NUM_CONNECTIONS, timeout=timeout, **secure), ""


def client_options(bucket: Bucket, timeout_seconds: float) -> "ClientConfig":
    """The same for obstore."""
    options: ClientConfig = {"allow_http": True, "timeout": f"{round(timeout_seconds * 1000)}ms"}
    if bucket.endpoint.startswith("https") and Path(bucket.trusted).is_file():
        options["root_certificate"] = Path(bucket.trusted).read_bytes()
    if bucket.proxy:
        options["proxy_url"] = bucket.proxy
    return options


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
