"""Whole nights in a clone, as a user runs them. The tests of this file follow one another: each begins where the last ended."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.checkouts import TINY, Checkout, clone

STAGES = {"prepare", "train", "evaluate", "export", "gate"}


def restored(printed: str) -> set[str]:
    return set(re.findall(r"^(\w+)@demo: restored from the cache", printed, re.MULTILINE))


def report_of(printed: str) -> Path:
    found = re.search(r"^report\s+(\S+)$", printed, re.MULTILINE)
    assert found, printed
    return Path(found.group(1))


def listed(checkout: Checkout) -> dict[str, Any]:
    """What the registry says of the detector."""
    found: dict[str, dict[str, Any]] = json.loads(checkout.check("nightowl", "models", "demo", "--json"))
    return found["demo"]


def test_the_first_night_makes_a_champion_and_says_where_things_are(checkout: Checkout, first_night: str) -> None:
    assert restored(first_night) == set()
    assert "demo@champion is version 1" in first_night
    assert "nightowl init NAME --source PATH" in first_night
    assert "no DVC remote" in first_night
    page = report_of(first_night).read_text()
    assert "<html" in page
    assert not re.search(r"(src|href)=[\"']https?:", page), "the report must work without a network"
    assert [(entry["version"], entry["state"]) for entry in listed(checkout)["versions"]] == [("1", "champion")]
    assert checkout.check("git", "status", "--porcelain") == ""
    assert checkout.check("git", "worktree", "list").count("\n") == 1


def test_after_the_flow_dvc_repro_executes_nothing(after_first: Checkout) -> None:
    after_first.check("dvc", "repro", "gate@demo", "export@demo")
    assert after_first.executed() == set()
    assert (after_first.root / "out/demo/export/model.onnx").is_file()


def test_a_clean_clone_with_the_cache_and_restored_inputs_executes_nothing(after_first: Checkout, tmp_path: Path) -> None:
    other = clone(tmp_path / "other", after_first.prefect_home)
    other.check("dvc", "cache", "dir", "--local", str(after_first.root / ".dvc" / "cache"))
    home = {"NIGHTOWL_HOME": str(after_first.root / ".nightowl")}
    other.check("nightowl", "inputs", "restore", "demo", "--version", "1", **home)
    other.check("dvc", "repro", "gate@demo", "export@demo", **home)
    assert other.executed() == set()
    assert (other.root / "out/demo/gate/verdict.json").is_file()


@pytest.mark.parametrize("night", ["the night after", "and the one after that"])
def test_a_night_with_nothing_new_ends_before_any_stage(after_first: Checkout, night: str) -> None:
    started = time.monotonic()
    printed = after_first.check("nightowl", "night", "demo")
    assert "nothing new since version 1 was made: the champion stands" in printed
    assert restored(printed) == set()
    assert "@demo:" not in printed
    assert report_of(printed).is_file()
    assert time.monotonic() - started < 120, "a bound for a hung server, not a measurement"


def test_predict_draws_with_the_champion_from_the_registry(after_first: Checkout, tmp_path: Path) -> None:
    images = sorted((after_first.root / ".nightowl/demo-data/images/test").iterdir())[:2]
    command = ["nightowl", "predict", "--model", "demo@champion", "--output", str(tmp_path / "out"), "--confidence", "0.001"]
    after_first.check(*command, *map(str, images))
    written = {path.suffix for path in (tmp_path / "out").iterdir()}
    assert ".json" in written
    assert written & {".png", ".jpg"}


def test_a_refused_candidate_leaves_the_champion_and_ends_with_3_where_asked(after_first: Checkout) -> None:
    after_first.commit("detectors/demo/params.yaml", TINY.replace("min_map50: 0.0", "min_map50: 0.99"))
    done = after_first.run("nightowl", "night", "demo", "--fail-on-refusal")
    assert done.returncode == 3, done.stdout + done.stderr
    assert restored(done.stdout) == {"train"}, "the audit compares with the champion's data, and the champion is measured"
    assert "demo@champion is version 1" in done.stdout
    again = after_first.run("nightowl", "night", "demo", "--fail-on-refusal")
    assert again.returncode == 3, "judged already, and still refused: repeating it makes CI no greener"
    assert "nothing new" in again.stdout


def test_neither_what_a_night_spent_nor_a_new_reference_makes_the_next_one_run(after_first: Checkout) -> None:
    before = listed(after_first)
    assert (before["reference"], before["error_budget"]) == ("1", None), "the same weights again: nothing was asked"
    after_first.check("nightowl", "reference", "demo", "2", "--reason", "to see it measured")
    assert "nothing new" in after_first.check("nightowl", "night", "demo")
    assert listed(after_first)["error_budget"] == before["error_budget"]


def test_a_dirty_night_is_never_promoted(after_first: Checkout) -> None:
    path = after_first.root / "detectors/demo/params.yaml"
    path.write_text(TINY + "# a note that nobody committed\n")
    try:
        printed = after_first.check("nightowl", "retrain", "demo")
    finally:
        after_first.check("git", "checkout", "-q", "--", "detectors/demo/params.yaml")
    assert "not committed" in printed
    assert "demo@champion is version 1" in printed


def test_two_nights_of_a_detector_at_once_are_one_night_and_one_clear_line(after_first: Checkout) -> None:
    from nightowl.night.lock import only_night

    with only_night(after_first.root / ".nightowl", "demo"):
        done = after_first.run("nightowl", "night", "demo")
    assert done.returncode == 2
    assert "a night of demo is running already" in done.stderr


def test_what_dvc_repro_made_the_flow_finds(after_first: Checkout) -> None:
    after_first.commit("detectors/demo/params.yaml", TINY.replace("epochs: 1", "epochs: 1\n  seed: 1"))
    after_first.check("nightowl", "inputs", "pin", "demo")
    after_first.forget()
    after_first.check("dvc", "repro", "gate@demo", "export@demo")
    assert after_first.executed() == {"train", "evaluate", "gate", "export"}
    printed = after_first.check("nightowl", "night", "demo")
    assert restored(printed) == STAGES
    after = listed(after_first)
    assert after["versions"][-1]["record"]["reference_version"] == "2", "as it was set by hand"
    assert after["error_budget"]["num_decisions"] == 1, "the dirty night could not be promoted, so it cost nothing"
