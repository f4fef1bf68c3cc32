import base64
import hashlib
import zlib

import pytest

from nightowl.cloud.checksum import Verifier
from nightowl.cloud.storage import RemoteObject

CONTENT = b"ten bytes!"
MD5 = hashlib.md5(CONTENT).hexdigest()
SHA256 = base64.b64encode(hashlib.sha256(CONTENT).digest()).decode()
CRC32 = base64.b64encode(zlib.crc32(CONTENT).to_bytes(4, "big")).decode()
OTHER = "0" * 32


@pytest.mark.parametrize(
    ("etag", "headers", "fault", "reason"),
    [
        (MD5, {}, None, "the ETag of an object put in one piece is its MD5"),
        (OTHER, {}, "wrong checksum: its MD5", "and tells another content"),
        (OTHER, {"x-amz-server-side-encryption": "aws:kms"}, None, "under KMS it only looks like one"),
        (OTHER, {"x-amz-server-side-encryption-customer-algorithm": "AES256"}, None, "and so under a customer's key"),
        (OTHER, {"x-amz-server-side-encryption": "AES256"}, "wrong checksum", "S3's own encryption leaves it an MD5"),
        (f"{OTHER}-3", {}, None, "of an object put in parts it is none"),
        (f"{OTHER}-3", {"x-amz-checksum-sha256": SHA256}, None, "then the stored checksum tells"),
        (f"{OTHER}-3", {"x-amz-checksum-crc32": CRC32}, None, "whichever it is"),
        (f"{OTHER}-3", {"x-amz-checksum-crc32": "AAAAAA=="}, "wrong checksum: its crc32", "and finds damage"),
        (f"{OTHER}-3", {"x-amz-checksum-sha256": f"{SHA256}-3"}, None, "unless it is a checksum of the parts' checksums"),
        (f"{OTHER}-3", {"x-amz-checksum-crc32": "AAAAAA==", "x-amz-checksum-type": "COMPOSITE"}, None, "said either way"),
    ],
)
def test_content_is_held_against_what_the_server_says_of_it(
    etag: str, headers: dict[str, str], fault: str | None, reason: str
) -> None:
    verifier = Verifier(RemoteObject("key", len(CONTENT), etag), headers)
    verifier.update(CONTENT[:4])
    verifier.update(CONTENT[4:])
    found = verifier.fault()
    assert (found is None) if fault is None else (found is not None and fault in found), reason


def test_a_wrong_length_is_found_whatever_the_etag_is() -> None:
    verifier = Verifier(RemoteObject("key", 11, f"{OTHER}-3"), {})
    verifier.update(CONTENT)
    assert verifier.fault() == "expected 11 bytes, got 10"
