"""Is the content that arrived the content that was stored? By its length, its MD5 where the ETag is one, and the checksum the
server keeps with it, where that covers the whole object and its algorithm is in the standard library."""

import base64
import hashlib
import re
import zlib
from collections.abc import Callable, Mapping

from nightowl.cloud.storage import RemoteObject

_MD5 = re.compile(r"[0-9a-f]{32}")
_KINDS = ("sha256", "sha1", "crc32")


def is_md5(etag: str) -> bool:
    """Could this ETag be the MD5 of the content? Objects put in several parts have another form; see `Verifier`."""
    return _MD5.fullmatch(etag) is not None


class Verifier:
    """Takes the content piece by piece; `fault` then says what is wrong, if anything. `headers` are found by lower-case names.

    Under KMS or customer keys an ETag has the form of an MD5 and is none.
    """

    def __init__(self, found: RemoteObject, headers: Mapping[str, str]) -> None:
        encryption = headers.get("x-amz-server-side-encryption", "")
        own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
        self._found, self._num_bytes = found, 0
        self._sums: list[tuple[str, str, _Sum]] = []
        if is_md5(found.etag) and not encryption.startswith("aws:kms") and not own_key:
            self._sums.append(("MD5", found.etag, _Hash("md5")))
        for kind in _KINDS:
            stated = headers.get(f"x-amz-checksum-{kind}", "")
            if stated and "-" not in stated and headers.get("x-amz-checksum-type") != "COMPOSITE":
                self._sums.append((kind, base64.b64decode(stated).hex(), _Crc32() if kind == "crc32" else _Hash(kind)))

    def update(self, content: bytes) -> None:
        self._num_bytes += len(content)
        for _, _, running in self._sums:
            running.update(content)

    def fault(self) -> str | None:
        """In words, or None when everything agrees."""
        if self._num_bytes != self._found.num_bytes:
            return f"expected {self._found.num_bytes} bytes, got {self._num_bytes}"
        for kind, stated, running in self._sums:
            if running.hexdigest() != stated:
                return f"wrong checksum: its {kind} should be {stated}, what arrived has {running.hexdigest()}"
        return None


class _Hash:
    def __init__(self, kind: str) -> None:
        hashed = hashlib.new(kind, usedforsecurity=False)
        self.update: Callable[[bytes], None] = hashed.update
        self.hexdigest: Callable[[], str] = hashed.hexdigest


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, content: bytes) -> None:
        self._value = zlib.crc32(content, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


_Sum = _Hash | _Crc32
