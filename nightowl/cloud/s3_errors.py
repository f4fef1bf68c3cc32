"""What an S3 server refuses, as one line that says what to do: which key, which permission, which region, which setting."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from nightowl.cloud.retry import Transient
from nightowl.cloud.storage import Place
from nightowl.errors import RemoteError

_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_SLOW_DOWN = frozenset({429, 503})
_BAD_CREDENTIALS = {
    "InvalidAccessKeyId": "the access key is not known there",
    "SignatureDoesNotMatch": "the secret key does not fit the access key",
    "ExpiredToken": "the session token has expired",
    "InvalidToken": "the session token is not valid",
    "RequestTimeTooSkewed": "the clock of this machine is wrong by minutes",
}
NO_CREDENTIALS = (
    "no AWS credentials found; looked in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile (AWS_PROFILE), "
    "~/.aws, and the machine's own role: name one of them"
)


_AWS = ".amazonaws.com"
_ELSEWHERE = "; where the bucket is of another server than AWS, name that in the setting s3_endpoint or in AWS_ENDPOINT_URL"


def unreachable(endpoint: str, reason: str) -> Transient:
    """No answer from the endpoint."""
    return Transient(f"{endpoint} cannot be reached ({reason}){elsewhere(endpoint)}")


def elsewhere(endpoint: str) -> str:
    """What to say when AWS does not know something: somebody may have meant another server, and not named it."""
    host = (urlsplit(endpoint).hostname or "").removesuffix(".cn")
    return _ELSEWHERE if host.endswith(_AWS) else ""


@dataclass(frozen=True)
class Refusal:
    """An answer that was not 200. `region` is the one that the server says the bucket is in."""

    status: int
    code: str
    message: str
    region: str | None
    retry_after: str | None

    def transient(self) -> Transient | None:
        """The same as something to try again, or None when that would not help."""
        if self.status not in _TRANSIENT:
            return None
        wait = float(self.retry_after) if self.retry_after and self.retry_after.isdecimal() else None
        return Transient(f"{self.status} {self.code}", slow_down=self.status in _SLOW_DOWN, wait_seconds=wait)


def parse_refusal(status: int, headers: Mapping[str, str], body: bytes) -> Refusal:
    """`headers` are found by lower-case names; the body may be anything."""
    values: dict[str, str] = {}
    with suppress(ET.ParseError):  # a proxy's page, or nothing: then the status has to do
        values = {element.tag.rpartition("}")[2]: element.text or "" for element in ET.fromstring(body)}
    message = " ".join(values.get("Message", "").split())
    expecting = re.search(r"expecting '([a-z0-9-]+)'", message)
    region = headers.get("x-amz-bucket-region") or values.get("Region") or (expecting and expecting.group(1)) or None
    return Refusal(status, values.get("Code", ""), message, region, headers.get("retry-after"))


def explain(
    refusal: Refusal, place: Place, key: str | None, region: str, endpoint: str, action: str = "s3:GetObject"
) -> RemoteError:
    """`key` inside the place, or None for its listing; `region` and `endpoint` are what was asked, `action` what for."""
    action, what = (action, f"{place.url}{key}") if key is not None else ("s3:ListBucket", place.url)
    if refusal.code == "NoSuchBucket":
        check = elsewhere(endpoint) or " and the endpoint"
        return RemoteError(f"{what}: there is no bucket {place.bucket!r} at {endpoint}; check its name{check}")
    if refusal.region and refusal.region != region and refusal.status in (301, 307, 400, 403):
        return RemoteError(f"{what}: the bucket is in {refusal.region}, not in {region}: set AWS_REGION={refusal.region}")
    if refusal.code in _BAD_CREDENTIALS:
        other = elsewhere(endpoint) if refusal.code == "InvalidAccessKeyId" else ""
        reason = f"{_BAD_CREDENTIALS[refusal.code]} ({refusal.code} at {endpoint}){other}"
        return RemoteError(f"{what}: credentials refused: {reason}")
    if refusal.status in (401, 403):
        on = f"arn:aws:s3:::{place.bucket}" + (f"/{place.prefix}{key}" if key is not None else "")
        return RemoteError(f"{what}: access denied; the credentials in use need {action} on {on}")
    told = ": ".join(filter(None, (refusal.code, refusal.message))) or "no explanation"
    return RemoteError(f"{what}: {endpoint} answered {refusal.status} to {action} ({told})")
