"""Is the content that arrived the content that was stored? By its length, its MD5 where the ETag is one, and the checksum the
server keeps with it, where that covers the whole object and its algorithm is in the standard library."""

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping

from nightowl.cloud.storage import Wanted

_KINDS = ("sha256", "sha1", "crc32")


class Verifier:
    """Takes the content piece by piece; `fault` then says what is wrong, if anything. `headers` are found by lower-case names.

    Under KMS or customer keys an ETag has the form of an MD5 and is none; an object named by its content has one all the same.
    """

    def __init__(self, wanted: Wanted, headers: Mapping[str, str]) -> None:
        encryption = headers.get("x-amz-server-side-encryption", "")
        own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
        self._wanted, self._num_bytes = wanted, 0
        self._sums: list[tuple[str, str, _Sum]] = []
        if wanted.md5 and (wanted.etag is None or not (encryption.startswith("aws:kms") or own_key)):
            self._sums.append(("MD5", wanted.md5, _Hash("md5")))
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
        if self._wanted.num_bytes not in (None, self._num_bytes):
            return f"expected {self._wanted.num_bytes} bytes, got {self._num_bytes}"
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
