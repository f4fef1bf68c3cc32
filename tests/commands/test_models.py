"""`nightowl models`, `promote` and `rollback`, as a person calls them."""

import json
import subprocess
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from nightowl.commands import models, predict
from nightowl.errors import ParamsError, RegistryError, UserError
from nightowl.evaluation.budget import Question, Spending
from nightowl.evaluation.holdout import Holdout
from nightowl.export_params import ExportParams
from nightowl.params import Params
from nightowl.registry.store import Registry
from tests.bundles import Made, new_registry, registered

app = typer.Typer()
app.command()(models.models)
app.command()(models.promote)
app.command()(models.rollback)
app.command()(models.reference)
app.command()(predict.bundle)


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """An empty registry, and a checkout around the current folder that uses it."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "checkout")], check=True)
    (tmp_path / "checkout" / "params.yaml").write_text("detectors: [demo]\n")
    (tmp_path / "checkout" / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.setenv("NIGHTOWL_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "checkout")
    return new_registry(tmp_path / "home")


def call(*arguments: str) -> Result:
    result = CliRunner().invoke(app, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_an_empty_registry_says_so_and_what_makes_a_version(registry: Registry, tmp_path: Path) -> None:
    where = tmp_path / "home" / "registry" / "mlflow.db"
    assert (
        call("models", "demo").output == f"demo has no registered version in {where}; a night makes one: nightowl night demo\n"
    )
    assert call("models").output.startswith("no detector has a registered version in ")
    assert json.loads(call("models", "--json").output) == {}


def test_off_a_terminal_each_version_is_a_line_newest_first(registry: Registry, tmp_path: Path) -> None:
    registered(
        registry,
        tmp_path,
        Made(night="night-1"),
        Made(night="night-2", weights=b"two", map50=None, verdict="refuse", dirty=True),
    )
    call("promote", "demo", "1", "--reason", "first")
    names, *lines = [line.split("\t") for line in call("models", "demo").output.splitlines()]
    assert names[:3] == ["detector", "version", "state"] and len(names) == len(lines[0])
    assert [line[:8] for line in lines] == [
        ["demo", "2", "not promoted (dirty tree)", "night-2", "-", "-", "refuse", "passed"],
        ["demo", "1", "champion, reference", "night-1", "0.800", "0.800", "promote", "passed"],
    ]


def test_a_version_for_tensorrt_says_that_its_engine_is_pending(registry: Registry, tmp_path: Path) -> None:
    params = Params(export=ExportParams(formats=("onnx", "tensorrt")))
    registered(registry, tmp_path, Made(night="night-1"), Made(night="night-2", weights=b"two", params=params))
    assert [line.split("\t")[-1] for line in call("models", "demo").output.splitlines()] == ["engines", "engine pending", "-"]


def test_json_holds_versions_and_history(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, Made(night="night-1"))
    call("promote", "demo", "1", "--reason", "first")
    found = json.loads(call("models", "--json").output)["demo"]
    (version,) = found["versions"]
    assert (version["version"], version["state"], version["champion"]) == ("1", "champion", True)
    assert version["record"]["night_id"] == "night-1"
    assert [(event["action"], event["version"], event["reason"]) for event in found["history"]] == [("promote", "1", "first")]


def test_on_a_terminal_there_is_a_table_with_the_history(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(registry, tmp_path, Made(night="night-1"))
    call("promote", "demo", "1", "--reason", "first [bold]of all[/bold]")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    output = call("models").output
    assert "mAP50-95" in output and "night-1" in output
    assert "promoted version 1: first [bold]of all[/bold]" in output
    assert "error budget: nothing was spent yet" in output


def test_promote_and_rollback_say_what_changed(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, Made(night="night-1"), Made(night="night-2", weights=b"two"))
    assert call("promote", "demo", "1", "--reason", "first").output == "demo: version 1 is the champion now\n"
    assert call("promote", "demo", "2", "--reason", "better").output == (
        "demo: version 2 is the champion now; before it: version 1\n"
    )
    assert call("promote", "demo", "2", "--reason", "again").output == (
        "demo: version 2 is the champion already; nothing was changed\n"
    )
    assert call("rollback", "demo", "--reason", "worse in the field").output == (
        "demo: version 1 is the champion again; taken back: version 2\n"
    )
    assert [event.reason for event in registry.history("demo")] == ["first", "better", "worse in the field"]


def test_a_refused_version_needs_force_and_a_reason(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, Made(verdict="refuse"))
    with pytest.raises(RegistryError, match="--force"):
        call("promote", "demo", "1", "--reason", "we need it")
    assert call("promote", "demo", "1", "--force").exit_code == 2, "no reason given"
    forced = call("promote", "demo", "1", "--reason", "we need it", "--force")
    assert forced.exit_code == 0 and "the gate had said `refuse`: " in forced.output
    assert registry.history("demo")[0].forced
    said = call("rollback", "demo", "--to-none", "--reason", "a mistake").output
    assert said == "demo: no champion now; taken back: version 1\n"


def test_a_name_that_nobody_knows_is_a_misspelt_one(registry: Registry) -> None:
    with pytest.raises(ParamsError, match=r"no detector 'dmeo' in its list `detectors` \(demo"):
        call("models", "dmeo")


def test_the_reference_and_what_is_left_of_the_budget_are_shown_and_set(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdout = Holdout(version="t", num_images=72, sketch=("a",))
    question = Question(candidate="c", champion="d", reference=None, holdout=holdout)
    spending = Spending(question=question, alpha=0.05, num_before=0, left=1.0, total=1.0)
    registered(registry, tmp_path, Made(night="night-1"), Made(night="night-2", weights=b"two", spending=spending))
    for version in ("1", "2"):
        call("promote", "demo", version, "--reason", "a test")
    set_it = ("reference", "demo", "2", "--reason", "agreed with the line")
    assert call(*set_it).output == "demo: version 2 is the reference now; before it: version 1\n"
    assert call(*set_it).output == "demo: version 2 is the reference already; nothing was changed\n"
    found = json.loads(call("models", "demo", "--json").output)["demo"]
    assert found["reference"] == "2"
    assert found["error_budget"] == {"night": "night-2", "num_images": 72, "num_decisions": 1, "left": 0.95, "total": 1.0}
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    output = call("models").output
    assert "0.95 of 1 expected false promotions left on the test set of night night-2 (72 images, 1 decisions)" in output
    assert "took for reference version 2, from version 1: agreed with the line" in output


@pytest.mark.parametrize("command", ["promote", "reference"])
def test_a_word_for_a_version_is_refused_before_the_registry_is_opened(
    command: str, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightowl.registry.store.open_registry", lambda _: pytest.fail("opened"))
    with pytest.raises(UserError, match="a version is a number, champion or reference; got 'one'"):
        call(command, "demo", "one", "--reason", "x")


def test_a_bundle_comes_to_a_new_folder_and_to_none_that_holds_something(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path / "made", Made(night="night-1"))
    folder = tmp_path / "device"
    assert call("bundle", "demo@1", "--output", str(folder)).output.startswith(f"demo version 1 is in {folder}")
    assert (folder / "model.onnx").is_file()
    (folder / "mine.txt").write_text("kept")
    with pytest.raises(UserError, match="expected a new or an empty folder"):
        call("bundle", "demo@1", "--output", str(folder))
    assert (folder / "mine.txt").read_text() == "kept"
