import json
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nightowl.commands.data import app
from nightowl.data.audit import AuditFile
from nightowl.data.golden import read_golden
from nightowl.data.manifest import write_manifest
from nightowl.data.pin import build_manifest
from nightowl.errors import DataError, ParamsError
from nightowl.files import write_atomic
from nightowl.params import SECTIONS, DataParams
from nightowl.progress import untracked
from tests.datasets import a_dataset, write_text, write_yolo_dataset


def audit(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set, and the folder around it, which is no checkout, as the current one."""
    monkeypatch.chdir(tmp_path)
    return write_yolo_dataset(tmp_path / "data", a_dataset(6, 3, 3))


@pytest.fixture
def checkout(source: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a detector `line` whose data is `source`."""
    root = source.parent / "checkout"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    write_text(root / "params.yaml", "detectors: [line]\n")
    write_text(root / "dvc.yaml", "stages: {}\n")
    write_text(root / "detectors" / "line" / "params.yaml", "".join(f"{section}: {{}}\n" for section in SECTIONS))
    monkeypatch.setenv("NIGHTOWL_SOURCES__LINE", str(source))
    monkeypatch.setenv("NIGHTOWL_HOME", str(source.parent / "home"))
    monkeypatch.chdir(root)
    return root


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_sound_folder_needs_no_checkout_and_is_not_touched(source: Path) -> None:
    before = content(source)
    result = audit("data")
    assert result.exit_code == 0, result.output
    assert "12 images audited; 6 train, 3 val, 3 test are usable." in result.output
    assert "no_background_images" in result.output
    assert result.output.endswith("A night would go on.\n")
    assert content(source) == before


def test_what_a_policy_fails_ends_with_1_and_is_in_both_files(source: Path) -> None:
    write_text(source / "labels" / "train" / "train000.txt", "7 0.5 0.5 0.2 0.2\n1 0.9 0.5 0.4 0.2\n")
    shutil.copy(source / "images" / "test" / "test000.png", source / "images" / "train" / "train001.png")
    result = audit("data", "--json", "a.json", "--html", "a.html")
    assert result.exit_code == 1
    assert "A night would stop: the audit stops here: 1 unknown_class" in result.output
    found = AuditFile.model_validate_json(Path("a.json").read_bytes())
    assert [row.kind for row in found.audit.failing] == ["unknown_class"]
    assert {finding.kind for finding in found.findings} >= {"out_of_frame_box", "same_content_across_splits"}
    page = Path("a.html").read_text()
    assert "A night would stop" in page and page.count("data:image/jpeg") == 3
    assert json.loads(Path("a.json").read_text())["audit"]["num_images"] == 12


def test_a_detector_is_audited_under_its_own_params(checkout: Path, source: Path) -> None:
    result = audit("line")
    assert result.exit_code == 0, result.output
    own = checkout / "detectors" / "line" / "params.yaml"
    own.write_text(own.read_text().replace("prepare: {}", "prepare: {audit: {policies: {no_background_images: fail}}}"))
    result = audit("line")
    assert result.exit_code == 1
    assert "no_background_images: params prepare.audit.policies.no_background_images is fail" in result.output


def test_a_name_that_is_neither_a_detector_nor_a_folder_is_said(checkout: Path) -> None:
    assert isinstance(audit("other").exception, ParamsError)
    assert isinstance(audit("./other").exception, DataError)


def test_a_golden_set_is_chosen_from_what_is_pinned_and_only_once(checkout: Path, source: Path) -> None:
    manifest, _ = build_manifest(source, DataParams(), checkout / "cache.json", untracked)
    write_manifest(checkout / "inputs" / "line" / "manifest.jsonl", manifest)
    result = CliRunner().invoke(app, ["golden", "line", "--fraction", "0.67"])
    assert result.exit_code == 0, result.output
    path = checkout / "detectors" / "line" / "golden.txt"
    assert {image.path for image in read_golden(path)} < {f"images/test/test00{number}.png" for number in range(3)}
    again = CliRunner().invoke(app, ["golden", "line"])
    assert isinstance(again.exception, DataError) and "there is a golden set already" in str(again.exception)
    path.unlink()
    write_atomic(checkout / "wanted.txt", "images/train/train000.png\n")
    assert CliRunner().invoke(app, ["golden", "line", "--list", "wanted.txt"]).exit_code == 0
    assert [image.path for image in read_golden(path)] == ["images/train/train000.png"]
