"""An instance of the fake: a host, a folder as its disk, its metadata service, and its user-data, run by bash after a while.

`shutdown`, `poweroff` and `halt` are shims, first on its PATH: they leave a request, which the cloud
carries out.
"""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.fake_ec2.hosts import Host
from tests.fake_ec2.metadata import Facts, Metadata
from tests.fake_ec2.namespaces import METADATA_ADDRESS
from tests.fake_ec2.serving import Served

_SHIM = """#!/bin/bash
# shutdown [-h|-P] [now|+MINUTES] | shutdown -c : leaves the second at which this machine is to go down.
request={request}
when=+1
for word in "$@"; do
  case "$word" in
    -c) rm -f "$request"; exit 0 ;;
    now|+*) when="$word" ;;
  esac
done
[ "$(basename "$0")" = shutdown ] || when=now
[ "$when" = now ] && when=+0
echo $(( $(date +%s) + 60 * ${{when#+}} )) > "$request.new" && mv "$request.new" "$request"
"""


class Instance:
    """One instance, from its boot to `end`."""

    def __init__(
        self, facts: Facts, host: Host, folder: Path, api: Any, api_handler: Any, port: int, boot_seconds: float
    ) -> None:
        self.facts, self.host, self.folder = facts, host, folder
        self.cut_off = threading.Event()
        for name in ("bin", "home", "tmp", "node"):
            (folder / name).mkdir(parents=True)
        _put_shims(folder / "bin", folder / "shutdown")
        (folder / "user-data").write_text(facts.user_data)
        self.metadata = Metadata(facts)
        self._served = [Served(self.metadata, host.listening(*host.metadata_address))]
        self.metadata_endpoint = self._served[0].address
        if (
            host.metadata_address[0] == METADATA_ADDRESS
        ):  # elsewhere the loopback is the test's own, and its server is there already
            self._served.append(Served(self._through(api), host.listening("127.0.0.1", port), api_handler))
        self.endpoint = f"http://127.0.0.1:{port}"
        self._ended, self._lock = False, threading.Lock()
        self._boots_at = time.monotonic() + boot_seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def console(self) -> str:
        """What user-data and all it started wrote."""
        path = self.folder / "console.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def shutdown_at(self) -> float | None:
        """When it asked to be shut down, in seconds since 1970; None while it has not."""
        try:
            return float((self.folder / "shutdown").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def cut(self, connected: bool) -> None:
        """Take the network away, or give it back: links drop without a word, and the API does not answer."""
        self.host.cut(connected)
        (self.cut_off.clear if connected else self.cut_off.set)()

    def boot_when_due(self) -> None:
        """Run user-data once it has booted. To be called by a thread that stays: what it starts ends with that very thread."""
        with self._lock:
            if self._ended or self._process is not None or time.monotonic() < self._boots_at:
                return
            with (self.folder / "console.log").open("ab") as log:
                command = ["bash", str(self.folder / "user-data")]
                self._process = self.host.start(command, self._environment(), self.folder, log)

    def end(self) -> None:
        """End all its processes at once, as a power cut does."""
        with self._lock:
            self._ended = True
        self.cut_off.clear()
        self.host.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
        for served in self._served:
            served.close()

    def _environment(self) -> dict[str, str]:
        path = [str(self.folder / "bin"), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        return {
            "PATH": os.pathsep.join(path),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "NIGHTOWL_NODE_HOME": str(self.folder / "node"),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": self.facts.region,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.metadata_endpoint,
            "OMP_NUM_THREADS": "1",
            "LANG": "C.UTF-8",
        }

    def _through(self, api: Any) -> Any:
        """The API as this instance reaches it: while its link is cut, no answer."""

        def reached(environ: dict[str, Any], start_response: Any) -> Any:
            while self.cut_off.is_set():
                time.sleep(0.1)
            return api(environ, start_response)

        return reached


def _put_shims(folder: Path, request: Path) -> None:
    for name in ("shutdown", "poweroff", "halt"):
        path = folder / name
        path.write_text(_SHIM.format(request=request))
        path.chmod(0o755)
    (folder / "python3").symlink_to(sys.executable)
