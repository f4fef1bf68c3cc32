from pathlib import Path

from ruamel.yaml import YAML

from nightowl.night.detector import detector_yaml, with_deployments, with_detector
from nightowl.params import DataParams, parse_params

ROOT = Path(__file__).resolve().parents[2]


def load(text: str) -> dict[str, object]:
    values: dict[str, object] = YAML(typ="safe", pure=True).load(text)
    return values


def test_adding_a_detector_changes_one_line_of_params_yaml() -> None:
    before = (ROOT / "params.yaml").read_text()
    after = with_detector(before, "line-3")
    assert after.splitlines() == before.replace("  - bccd\n", "  - bccd\n  - line-3\n").splitlines()


def test_adding_a_detector_appends_its_four_deployments_and_keeps_what_is_there() -> None:
    before = (ROOT / "prefect.yaml").read_text()
    after = with_deployments(before, "line-3")
    assert after.startswith(before.rstrip("\n"))
    deployments = load(after)["deployments"]
    assert isinstance(deployments, list)
    added = deployments[len(load(before)["deployments"]) :]  # type: ignore[arg-type]
    assert [entry["entrypoint"].split(":")[1] for entry in added] == ["nightly", "retrain", "promote", "rollback"]
    assert all(entry["name"] == "line-3" and entry["parameters"] == {"detector": "line-3"} for entry in added)
    assert added[0]["concurrency_limit"]["limit"] == added[1]["concurrency_limit"]["limit"] == 1
    assert added[0]["schedules"][0]["timezone"] == "Etc/UTC"


def test_the_written_params_are_read_back_as_suggested() -> None:
    data = DataParams(layout="voc", classes=("scratch", "dent: deep"), images="photos")
    values = load(detector_yaml("line-3", data))
    assert parse_params(values, "").data == data
