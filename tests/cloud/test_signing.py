from datetime import UTC, datetime

import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from nightowl.cloud.signing import Keys, signed_headers


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/bucket/images/a%20b%2Bc.png", ""),
        ("/%C3%BC~.jpg", ""),
        ("/bucket", "encoding-type=url&list-type=2&prefix=line-3%2F"),
    ],
)
def test_a_signature_is_the_one_that_botocore_makes(path: str, query: str, token: str | None) -> None:
    url = f"https://host:9000{path}" + (f"?{query}" if query else "")
    request = AWSRequest("GET", url, headers={"x-amz-checksum-mode": "ENABLED"})
    signer = S3SigV4Auth(Credentials("access", "secret", token), "s3", "eu-west-1")
    signer.add_auth(request)
    now = datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    headers = signed_headers(Keys("access", "secret", token), "eu-west-1", "host:9000", path, query, now)
    assert headers["Authorization"] == request.headers["Authorization"]
    assert headers.items() >= {name.lower(): value for name, value in request.headers.items() if name[0] == "x"}.items()
