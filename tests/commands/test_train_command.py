import subprocess
from pathlib import Path

import pytest
import typer

from nightowl.commands import foreground
from nightowl.commands.train import train
from nightowl.errors import DataError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "params.yaml").write_text("detectors: [line-3]\n")
    (tmp_path / "dvc.yaml").touch()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_not_there_is_told_before_anything_starts(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreground, "run_in_foreground", lambda command, folder, held: 0)
    base, dataset = checkout / "inputs/line-3/base.json", checkout / "out/line-3/prepare/dataset.jsonl"
    for path, expected in (
        (base, "pin the inputs first: nightowl inputs pin line-3 --source PATH"),
        (dataset, "run that stage first: dvc repro prepare@line-3"),
    ):
        with pytest.raises(DataError, match=f"^{path}: not there; {expected}$"):
            train("line-3", None, None, None, None)
        path.parent.mkdir(parents=True)
        path.touch()
    with pytest.raises(typer.Exit) as ended:
        train("line-3", None, None, None, None)
    assert ended.value.exit_code == 0
