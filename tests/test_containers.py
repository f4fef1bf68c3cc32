"""The images, as far as a machine without a container engine can tell: docs/containers.md says where that ends."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nightowl.machines.bootstrap import _UV

ROOT = Path(__file__).parents[1]
DOCKERFILES = ("Dockerfile", "Dockerfile.cpu")
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
SECRET = re.compile(r"secret|password|token|access_key|credential", re.IGNORECASE)


def text(name: str) -> str:
    return (ROOT / name).read_text()


def instructions(name: str, kind: str) -> list[str]:
    joined = re.sub(r"\\\n", " ", text(name))
    return [line.removeprefix(kind).strip() for line in joined.splitlines() if line.startswith(f"{kind} ")]


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed: make setup")
@pytest.mark.parametrize("name", DOCKERFILES)
def test_hadolint_has_nothing_to_say(name: str) -> None:
    assert HADOLINT is not None
    done = subprocess.run([HADOLINT, "--failure-threshold", "info", name], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_base_is_one_image_whatever_its_name_comes_to_mean(name: str) -> None:
    (base,) = instructions(name, "FROM")
    assert re.fullmatch(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}", base)


def test_both_are_the_same_below_their_base() -> None:
    bodies = {text(name)[text(name).index("SHELL [") :] for name in DOCKERFILES}
    assert len(bodies) == 1


def test_all_python_comes_from_the_lock_compared_by_digest() -> None:
    installs = [
        run for run in instructions("Dockerfile", "RUN") for run in run.split("&&") if re.search(r"pip (install|sync)", run)
    ]
    assert len(installs) == 3
    own = [each for each in installs if "--require-hashes" not in each]
    assert [each.split()[-1] for each in own] == ["."], "but for our own code, which is copied in"
    assert "--no-deps" in own[0]
    assert installs[1].split()[-1] == "requirements.lock"
    requirements = re.findall(r"^[a-z0-9][\w.-]*==", text("requirements.lock"), re.MULTILINE)
    assert len(requirements) <= text("requirements.lock").count("--hash=sha256:")


def test_the_installer_is_the_one_that_machines_and_make_use() -> None:
    told = set(re.findall(r"uv==[\d.]+|sha256:[0-9a-f]{64}", _UV))
    assert told <= set(re.findall(r"uv==[\d.]+|sha256:[0-9a-f]{64}", text("Dockerfile")))
    version = re.search(r"UV_VERSION := ([\d.]+)", text("Makefile"))
    assert version is not None and f"uv=={version[1]}" in told


@pytest.mark.parametrize("name", DOCKERFILES)
def test_it_runs_as_nobody_of_note_and_holds_no_secret(name: str) -> None:
    users = instructions(name, "USER")
    assert users and users[-1] not in ("0", "root")
    assert not [each for kind in ("ENV", "ARG") for each in instructions(name, kind) if SECRET.search(each)]
    assert not instructions(name, "ADD"), "which would fetch what nobody compared"


def test_nothing_goes_in_but_what_is_named_and_all_that_is_copied_is() -> None:
    lines = [line for line in text(".dockerignore").splitlines() if line and not line.startswith("#")]
    assert lines[0] == "*"
    allowed = {line.removeprefix("!") for line in lines if line.startswith("!")}
    copied = {path for each in instructions("Dockerfile", "COPY") for path in each.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / path).exists() for path in allowed)
