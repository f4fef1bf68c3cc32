"""Signature version 4 for S3 requests that have no body, as botocore makes it (a test compares them) at a tenth of the time.

Source: the AWS documentation, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)".
"""

import hashlib
import hmac
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple

_EMPTY = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """Credentials as they are now; the token belongs to temporary ones."""

    access_key: str
    secret_key: str
    token: str | None


def signed_headers(keys: Keys, region: str, host: str, path: str, query: str, now: datetime) -> dict[str, str]:
    """The headers of a signed GET, without Host. `path` and `query` are percent-encoded, the query sorted; `now` is in UTC."""
    day, moment = f"{now:%Y%m%d}", f"{now:%Y%m%dT%H%M%SZ}"
    headers = {"x-amz-checksum-mode": "ENABLED", "x-amz-content-sha256": _EMPTY, "x-amz-date": moment}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    names = ";".join(("host", *headers))
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    request = f"GET\n{path}\n{query}\nhost:{host}\n{lines}\n{names}\n{_EMPTY}"
    scope = f"{day}/{region}/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(_signing_key(keys.secret_key, day, region), text.encode(), "sha256").hex()
    authorization = f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "Authorization": authorization}


@lru_cache(maxsize=8)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
