"""The environment `wheel` as a machine builds it: by the file and the job that its user-data holds, from the package index."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nightowl.files import sha256_bytes
from nightowl.machines import boot
from nightowl.machines.archive import code_archive
from nightowl.machines.bootstrap import user_data
from nightowl.machines.job import Environment
from tests.machines.jobs import a_job
from tests.soak.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
LOCK = (ROOT / "requirements.lock").read_bytes()
SMALL = "absl-py"  # of the lock: needs nothing else, and is written in Python
# What a machine does with both before its node starts.
BUILD = "import boot, json, pathlib; home = pathlib.Path.cwd(); "
BUILD += "print(json.dumps(boot.command(json.loads((home / 'boot.json').read_text()), home, home / 'tree')))"
# The Python that machine images have, not that of the environment which runs the tests.
PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with uv in it, if the index can be reached."""
    folder = tmp_path_factory.mktemp("pip")
    subprocess.run([PYTHON, "-m", "venv", str(folder)], check=True, timeout=120)
    words = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--retries", "1", "uv"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        pytest.skip(f"the package index cannot be reached from here, or has no uv: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin"


def a_machine(home: Path, lock: bytes) -> Path:
    """What the user-data has written when boot.py begins, and boot.py has fetched."""
    code = code_archive(ROOT, "HEAD", {})
    digests = {"code_sha256": sha256_bytes(code), "lock_sha256": sha256_bytes(lock)}
    script = user_data(a_job(environment=Environment(kind="wheel"), **digests), "s3://boards/night", "eu-central-1")
    home.mkdir()
    for name in ("boot.json", "boot.py"):
        (home / name).write_text(script.partition(f"cat >\"$home/{name}\" <<'END_OF_FILE'\n")[2].partition("END_OF_FILE\n")[0])
    (home / "requirements.lock").write_bytes(lock)
    (home / "code.tar.gz").write_bytes(code)
    boot.unpack(home / "code.tar.gz", home / "tree")
    return home


def within(home: Path, *words: object, path: str = "", folder: str = ".") -> "subprocess.CompletedProcess[str]":
    """Run as cloud-init would: no HOME, nothing of the environment that runs the tests."""
    ours = ("HOME", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours and not name.startswith("NIGHTOWL_")}
    environment = {**kept, "PATH": f"{path}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".lstrip(":")}
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=home / folder, env=environment, capture_output=True, text=True, timeout=1200)


def built(home: Path, path: str = "") -> Path:
    """The Python of the environment."""
    done = within(home, PYTHON, "-c", BUILD, path=path)
    assert done.returncode == 0, done.stderr
    (python,) = json.loads(done.stdout.splitlines()[-1])
    return Path(python)


def block(name: str) -> bytes:
    """What the lock says of one package."""
    begun = LOCK.index(f"\n{name}==".encode()) + 1
    end = LOCK.index(b"\n    # via", begun)
    return LOCK[begun:end] + b"\n"


def test_a_machine_without_uv_builds_it_all_by_digest_and_its_node_starts(tmp_path: Path, pip: Path) -> None:
    home = a_machine(tmp_path / "home", LOCK)
    if within(home, "sh", "-c", "command -v uv").returncode == 0:
        pytest.skip("there is a uv in the system's folders: what a machine without one does cannot be seen here")
    python = built(home)
    assert (home / "uv/bin/uv").exists()
    told = within(home, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").stdout.strip()
    assert told == json.loads((home / "boot.json").read_text())["python"] == VERSION
    said = within(home, python, "-c", "import torch, nightowl; print(torch.__version__, nightowl.__file__)", folder="tree")
    version, where = said.stdout.split()
    assert where == str(home / "tree/nightowl/__init__.py"), said.stderr
    assert f"\ntorch=={version.partition('+')[0]} ".encode() in LOCK
    helped = within(home, python, "-m", "nightowl.cli", "node", "--help", folder="tree")
    assert helped.returncode == 0 and "--board" in helped.stdout, helped.stderr
    assert within(home, python, "-m", "dvc", "--version", folder="tree").returncode == 0


def test_a_machine_that_has_uv_uses_it(tmp_path: Path, pip: Path) -> None:
    home = a_machine(tmp_path / "home", block(SMALL))
    python = built(home, path=str(pip))
    assert not (home / "uv").exists()
    assert within(home, python, "-c", "import absl").returncode == 0


def test_one_wrong_digest_is_refused_in_one_line(tmp_path: Path, pip: Path) -> None:
    right = block(SMALL)
    digests = [word.partition(b":")[2] for word in right.split() if word.startswith(b"--hash=")]
    wrong = right
    for digest in digests:
        wrong = wrong.replace(digest, b"0" * 64)
    home = a_machine(tmp_path / "home", wrong)
    done = within(home, PYTHON, "-c", BUILD, path=str(pip))
    assert done.returncode != 0
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("RuntimeError: ")]
    assert f"{SMALL}==" in line and "sha256:" + "0" * 64 in line, line
    assert digests[0].decode() in line or digests[-1].decode() in line, "what was found"
