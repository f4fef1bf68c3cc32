"""A small S3-compatible server for tests and benchmarks: ListObjectsV2 and GET by path, latency, and faults on demand.

One bucket in memory, no check of signatures; moto is the double for what this does not know. Every answer waits
`latency_seconds`, while others are served, as over a long wire.
"""

import asyncio
import hashlib
import re
import threading
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "bucket"
Fault = Literal["slow_down", "truncated", "flipped", "vanished", "denied", "hangs"]
FaultOf = Callable[[str, int], Fault | None]
"""The fault of the n-th GET (from 1) of a key, or None; the key "" stands for a listing."""


@dataclass
class ObjectServer:
    """What is served and how. `requests` counts by key; a listing counts under "". `headers` go with every object;
    `access_keys` are those that requests were signed with."""

    objects: dict[str, bytes] = field(default_factory=dict)
    latency_seconds: float = 0.0
    page: int = 1000
    fault_of: FaultOf = lambda key, attempt: None
    requests: Counter[str] = field(default_factory=Counter)
    etags: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    access_keys: set[str] = field(default_factory=set)
    ordered: list[str] = field(default_factory=list)
    endpoint: str = ""
    connections: set[asyncio.Transport] = field(default_factory=set)

    def put(self, key: str, body: bytes) -> None:
        self.objects[key] = body
        self.ordered = []
        self.etags[key] = hashlib.md5(body, usedforsecurity=False).hexdigest()

    def remove(self, key: str) -> None:
        del self.objects[key], self.etags[key]
        self.ordered = []

    def answer(self, method: str, target: str) -> tuple[bytes, bool]:
        """The whole response to a request, and whether the connection stays open afterwards."""
        response, stays = self._answer(method, target)
        return response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else response, stays

    def _answer(self, method: str, target: str) -> tuple[bytes, bool]:
        parts = urlsplit(target)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        self.requests[key] += 1
        fault = self.fault_of(key, self.requests[key])
        if fault == "slow_down":
            return _error(503, "SlowDown", "Please reduce your request rate."), True
        if fault == "denied":
            return _error(403, "AccessDenied", "Access Denied"), True
        if bucket != BUCKET:
            return _error(404, "NoSuchBucket", "The specified bucket does not exist"), True
        if not key:
            return _response(200, self._listing(parse_qs(parts.query)), {"Content-Type": "application/xml"}), True
        if key not in self.objects or fault == "vanished":
            return _error(404, "NoSuchKey", "The specified key does not exist."), True
        return self._object(key, fault)

    def _in_order(self) -> list[str]:
        if len(self.ordered) != len(self.objects):
            self.ordered = sorted(self.objects)
        return self.ordered

    def _object(self, key: str, fault: Fault | None) -> tuple[bytes, bool]:
        body, headers = self.objects[key], {"ETag": f'"{self.etags[key]}"', "Last-Modified": "Wed, 01 Jul 2026 00:00:00 GMT"}
        headers |= self.headers
        if fault == "flipped":
            body = bytes([body[0] ^ 1]) + body[1:]
        whole = _response(200, body, headers)
        return (whole[: -max(1, len(body) // 2)], False) if fault == "truncated" else (whole, True)

    def _listing(self, query: dict[str, list[str]]) -> bytes:
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = self._in_order()
        begin = bisect_right(keys, after) if after else bisect_left(keys, prefix)
        page = [key for key in keys[begin : begin + self.page] if key.startswith(prefix)]
        more = any(key.startswith(prefix) for key in keys[begin + len(page) : begin + len(page) + 1])
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-07-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{self.etags[key]}"</ETag><Size>{len(self.objects[key])}</Size></Contents>'
            for key in page
        )
        token += f"<IsTruncated>{'true' if more else 'false'}</IsTruncated><KeyCount>{len(page)}</KeyCount>"
        space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        return f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult {space}>{token}{rows}</ListBucketResult>'.encode()


def _response(status: int, body: bytes, headers: dict[str, str]) -> bytes:
    fields = {"Content-Length": str(len(body)), **headers}
    return f"HTTP/1.1 {status} X\r\n".encode() + "".join(f"{k}: {v}\r\n" for k, v in fields.items()).encode() + b"\r\n" + body


def _error(status: int, code: str, message: str) -> bytes:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return _response(status, body.encode(), {"Content-Type": "application/xml"})


class _Connection(asyncio.Protocol):
    def __init__(self, server: ObjectServer) -> None:
        self._server, self._buffer = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer.startswith(b"\x16"):  # the greeting of TLS, which is not spoken here
            self._transport.write(_error(400, "BadRequest", "not HTTP"))
            self._transport.close()
        while b"\r\n\r\n" in self._buffer:
            head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            self._server.access_keys.update(re.findall(r"Credential=([^/]+)/", head.decode()))
            key = unquote(urlsplit(target).path).lstrip("/").partition("/")[2]
            if self._server.fault_of(key, self._server.requests[key] + 1) == "hangs":
                self._server.requests[key] += 1
                continue
            asyncio.get_running_loop().call_later(self._server.latency_seconds, self._send, method, target)

    def _send(self, method: str, target: str) -> None:
        response, stays = self._server.answer(method, target)
        self._transport.write(response)
        if not stays:
            self._transport.close()


@contextmanager
def serving(server: ObjectServer) -> Iterator[ObjectServer]:
    """Serve on a free loopback port, in a thread, for the duration of the block; `server.endpoint` says where."""
    loop = asyncio.new_event_loop()
    listener = loop.run_until_complete(loop.create_server(lambda: _Connection(server), "127.0.0.1", 0))
    server.endpoint = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        listener.close()
        for connection in list(server.connections):
            connection.abort()
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
