"""A metadata service on 127.0.0.1 whose answers a test sets: the twin of the one on an EC2 instance."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MACHINE = {
    "instance-id": "i-0123456789abcdef0",
    "local-ipv4": "10.0.0.7",
    "instance-type": "g6.xlarge",
    "placement/availability-zone": "eu-central-1a",
    "placement/region": "eu-central-1",
    "instance-life-cycle": "spot",
}


class MetadataService:
    """Version 2: a value is given for the token that was handed out last; what is not in `values` is 404."""

    def __init__(self) -> None:
        self.values: dict[str, str] = dict(MACHINE)
        self.status: dict[str, int] = {}
        self.delay_seconds = 0.0
        self.tokens = 0
        self.asked: list[str] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                time.sleep(service.delay_seconds)
                if "X-aws-ec2-metadata-token-ttl-seconds" not in self.headers:
                    return self._answer(400, "")
                service.tokens += 1
                return self._answer(service.status.get("token", 200), f"token-{service.tokens}")

            def do_GET(self) -> None:
                path = self.path.removeprefix("/latest/meta-data/")
                service.asked.append(path)
                time.sleep(service.delay_seconds)
                if self.headers.get("X-aws-ec2-metadata-token") != f"token-{service.tokens}":
                    return self._answer(401, "")
                if path in service.status:
                    return self._answer(service.status[path], "")
                return self._answer(200, service.values[path]) if path in service.values else self._answer(404, "")

            def _answer(self, status: int, body: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *arguments: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def forget_tokens(self) -> None:
        """No token that was handed out is good any more."""
        self.tokens += 1

    @contextmanager
    def serving(self) -> Iterator["MetadataService"]:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
