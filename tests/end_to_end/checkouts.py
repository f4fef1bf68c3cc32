"""Clones of this very tree, uncommitted changes included, in which whole nights run at a reduced size."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from nightowl.night.checkout import snapshot

ROOT = Path(__file__).resolve().parents[2]
NIGHT_SECONDS = 300

TINY = """\
data: {}
prepare:
  image_size: 64
train:
  base: yolo11n.yaml
  epochs: 1
  global_batch: 8
  close_mosaic_epochs: 0
evaluate: {}
gate:
  min_test_images: 1
  min_map50: 0.0
export: {}
"""


@dataclass(frozen=True)
class Checkout:
    """A clone, and how commands are run in it: one thread, a Prefect home of its own, no network. None may take longer than
    `night_seconds`."""

    root: Path
    prefect_home: Path
    api: str | None = None
    night_seconds: float = NIGHT_SECONDS

    def environment(self, **more: str) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NIGHTOWL_", "PREFECT_", "PYTHON"))}
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        ours = {"PATH": path, "OMP_NUM_THREADS": "1", "PREFECT_HOME": str(self.prefect_home), "DVC_NO_ANALYTICS": "1"}
        git = {f"GIT_{who}_{what}": "test@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        ours["PYTHONPATH"] = str(self.root)  # its own code, whatever is installed
        server = {"PREFECT_API_URL": self.api} if self.api else {}
        # A service has no SHELL, and DVC then takes sh: the one that stays between it and the command, if it may.
        return {**inherited, **ours, **git, **server, "DO_NOT_TRACK": "1", "SHELL": "/bin/sh", **more}

    def run(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end and return it, output and all; the caller judges the exit code."""
        return subprocess.run(
            command, cwd=self.root, env=self.environment(**more), capture_output=True, text=True, timeout=self.night_seconds
        )

    def check(self, *command: str, **more: str) -> str:
        """Run a command that must succeed; returns what it wrote to standard output."""
        done = self.run(*command, **more)
        assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def commit(self, path: str, content: str) -> None:
        (self.root / path).write_text(content)
        self.check("git", "add", "-A")
        self.check("git", "commit", "-qm", f"change {path}")

    def executed(self, detector: str = "demo") -> set[str]:
        """The stages that executed in this very tree since it was made or `forget` was called."""
        return {path.stem for path in (self.root / "out" / detector / "outcomes").glob("*.json")}

    def forget(self, detector: str = "demo") -> None:
        shutil.rmtree(self.root / "out" / detector / "outcomes", ignore_errors=True)


def clone(folder: Path, prefect_home: Path, detector_params: str | None = TINY) -> Checkout:
    """A clone of this tree as it is now, whose demo detector is small, or as committed where `detector_params` is None."""
    commit = snapshot(ROOT).commit
    subprocess.run(["git", "clone", "--quiet", "--local", "--no-checkout", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "checkout", "--quiet", "--detach", commit], check=True)
    checkout = Checkout(folder, prefect_home)
    if detector_params is not None:
        checkout.commit("detectors/demo/params.yaml", detector_params)
    return checkout
