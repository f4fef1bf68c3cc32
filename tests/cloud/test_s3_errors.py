import pytest

from nightowl.cloud.s3_errors import explain, parse_refusal, unreachable
from nightowl.cloud.storage import Place

PLACE, ENDPOINT = Place("lines", "line-3/"), "https://s3.example"


def body(code: str, message: str = "", more: str = "") -> bytes:
    return f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>".encode()


@pytest.mark.parametrize(
    ("status", "headers", "content", "told"),
    [
        (
            301,
            {"x-amz-bucket-region": "eu-west-1"},
            body("PermanentRedirect"),
            "is in eu-west-1, not in us-east-1: set AWS_REGION",
        ),
        (
            400,
            {},
            body("AuthorizationHeaderMalformed", "the region 'us-east-1' is wrong; expecting 'eu-west-1'"),
            "set AWS_REGION=eu-west-1",
        ),
        (400, {}, body("X", "", "<Region>eu-west-1</Region>"), "set AWS_REGION=eu-west-1"),
        (403, {}, body("InvalidAccessKeyId"), "the access key is not known there"),
        (403, {}, body("SignatureDoesNotMatch"), "the secret key does not fit"),
        (400, {}, body("ExpiredToken"), "the session token has expired"),
        (403, {}, body("RequestTimeTooSkewed"), "the clock of this machine is wrong"),
        (403, {}, body("AccessDenied"), "need s3:GetObject on arn:aws:s3:::lines/line-3/1.png"),
        (403, {}, b"<html>no such luck</p>", "need s3:GetObject"),
        (404, {}, body("NoSuchBucket"), "no bucket 'lines' at https://s3.example"),
        (418, {}, body("Teapot", "short  and\nstout"), "answered 418 to s3:GetObject (Teapot: short and stout)"),
        (418, {}, b"", "answered 418 to s3:GetObject (no explanation)"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, headers: dict[str, str], content: bytes, told: str) -> None:
    refusal = parse_refusal(status, headers, content)
    assert refusal.transient() is None
    message = str(explain(refusal, PLACE, "1.png", "us-east-1", ENDPOINT))
    assert message.startswith("s3://lines/line-3/1.png: ")
    assert told in message


@pytest.mark.parametrize(
    ("endpoint", "hinted"),
    [
        ("https://s3.eu-central-1.amazonaws.com", True),
        ("https://lines.s3.cn-north-1.amazonaws.com.cn", True),
        ("http://minio.factory.example:9000", False),
        ("http://amazonaws.com.example", False),
    ],
)
def test_who_asked_aws_is_told_how_to_name_another_server(endpoint: str, hinted: bool) -> None:
    refused = [
        explain(parse_refusal(403, {}, body(code)), PLACE, None, "eu", endpoint)
        for code in ("InvalidAccessKeyId", "NoSuchBucket")
    ]
    for error in (*refused, unreachable(endpoint, "name not known")):
        assert ("name that in the setting s3_endpoint or in AWS_ENDPOINT_URL" in str(error)) is hinted


@pytest.mark.parametrize(
    ("status", "retry_after", "slow_down", "wait"),
    [(503, "7", True, 7.0), (429, None, True, None), (500, None, False, None), (502, "Wed, 21 Oct 2026", False, None)],
)
def test_what_may_pass_says_how_long_to_wait(status: int, retry_after: str | None, slow_down: bool, wait: float | None) -> None:
    transient = parse_refusal(status, {"retry-after": retry_after} if retry_after else {}, body("SlowDown")).transient()
    assert transient is not None
    assert (transient.slow_down, transient.wait_seconds) == (slow_down, wait)
