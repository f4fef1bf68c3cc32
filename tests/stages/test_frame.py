import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightowl.cloud.metadata import ENDPOINT
from nightowl.params import SECTIONS, Params
from nightowl.stages.frame import StageOutcome, execute
from nightowl.stages.workspace import Workspace
from tests.metadata_service import MetadataService


@pytest.fixture(autouse=True)
def _signals_as_they_were() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def checkout(root: Path) -> Path:
    (root / "detectors" / "demo").mkdir(parents=True)
    (root / "params.yaml").write_text("detectors: [demo]\n")
    (root / "detectors" / "demo" / "params.yaml").write_text("".join(f"{name}: {{}}\n" for name in SECTIONS))
    return root


def test_a_stage_that_fills_the_disk_keeps_room_to_say_so(tmp_path: Path) -> None:
    seen: list[int] = []

    def fill(params: Params, workspace: Workspace, out: Path) -> None:
        seen.extend(path.stat().st_size for path in workspace.outcome("gate").parent.glob("*.spare"))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/full/disk")

    root = checkout(tmp_path)
    assert execute("gate", fill, root, "demo") == 2
    outcomes = root / "out" / "demo" / "outcomes"
    assert seen == [64 << 10]
    assert [path.name for path in outcomes.iterdir()] == ["gate.json"], "neither the spare nor the process id stays"
    outcome = StageOutcome.model_validate_json((outcomes / "gate.json").read_bytes())
    assert outcome.message.startswith("/full/disk: the disk is full: free some space")
    assert not (root / "out" / "demo" / "gate").exists()


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("NIGHTOWL_STOP_AT", "2026-01-01T06:00:00+02:00", "it is 2026-01-01 06:00:00+02:00, the time to stop"),
        ("NIGHTOWL_STOP_NOTICE", "notice", "notice: the line stops"),
    ],
)
def test_a_notice_ends_any_stage_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    root = checkout(tmp_path)
    (root / "notice").write_text("the line stops\n")
    monkeypatch.setenv(variable, value)
    assert execute("export", lambda params, workspace, out: time.sleep(20), root, "demo") == 75
    outcome = StageOutcome.model_validate_json((root / "out" / "demo" / "outcomes" / "export.json").read_bytes())
    assert outcome.status == "preempted"
    assert outcome.message.endswith(f"{reason}; run it again and it goes on")


def test_a_notice_of_the_metadata_service_ends_a_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = checkout(tmp_path)
    with MetadataService().serving() as service:
        service.values["spot/instance-action"] = '{"action": "terminate", "time": "2026-01-01T06:00:00Z"}'
        monkeypatch.setenv(ENDPOINT, service.endpoint)
        monkeypatch.setenv("NIGHTOWL_SPOT_NOTICES", "true")
        assert execute("export", lambda params, workspace, out: time.sleep(20), root, "demo") == 75
    outcome = StageOutcome.model_validate_json((root / "out" / "demo" / "outcomes" / "export.json").read_bytes())
    assert "this machine is taken back (terminate at 2026-01-01T06:00:00Z" in outcome.message
