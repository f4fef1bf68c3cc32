"""Servers of this process, on sockets that may have been made inside another network namespace."""

import socket
import threading
from typing import Any

from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Says nothing of requests, nor of clients that were killed in the middle of one."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
        return


class Served:
    """A WSGI application on a listening socket, until `close`."""

    def __init__(self, application: Any, listening: socket.socket, handler: type[WSGIRequestHandler] = Quiet) -> None:
        self._socket = listening
        host, port = listening.getsockname()[:2]
        self.address = f"http://{host}:{port}"
        self._server: BaseWSGIServer = make_server(
            host, port, application, threaded=True, request_handler=handler, fd=listening.fileno()
        )
        self._server.daemon_threads = True  # type: ignore[attr-defined]
        self._server.block_on_close = False  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()
        self._socket.close()
