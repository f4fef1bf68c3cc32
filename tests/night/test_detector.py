import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from nightowl.errors import ParamsError
from nightowl.night.detector import add_detector, detector_yaml, few_test_images, with_deployments, with_detector
from nightowl.params import DataParams, parse_params
from tests.datasets import a_dataset, write_yolo_dataset

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


def test_the_remarks_name_keys_that_exist_with_their_defaults() -> None:
    text = detector_yaml("line-3", DataParams(layout="yolo"))
    assert "# network input side" in text and "epochs: 100 #" in text
    uncommented = re.sub(r"^#   ", "  ", text, flags=re.MULTILINE)
    for section in ("prepare", "train", "gate"):
        uncommented = uncommented.replace(f"{section}: {{}}\n", f"{section}:\n")
    assert parse_params(load(uncommented), "") == parse_params(load(text), "")
    assert load(uncommented)["gate"] != {}


@pytest.mark.parametrize(("num_test", "told"), [(None, False), (20, False), (19, True), (0, True)])
def test_too_few_test_images_are_told_when_a_detector_is_made(num_test: int | None, told: bool) -> None:
    said = few_test_images(num_test, 20)
    assert (said is not None) == told
    assert said is None or f"test has {num_test} images, and gate.min_test_images is 20" in said


def test_a_comment_stays_with_the_line_that_it_is_about() -> None:
    after = with_detector("detectors:\n  - demo\n  - bccd # ours\n\n# the data\ndata: {}\n", "line-3")
    assert after == "detectors:\n  - demo\n  - bccd # ours\n  - line-3\n\n# the data\ndata: {}\n"


@pytest.mark.parametrize(
    ("prefect", "expected"),
    [
        (None, "no such file"),
        ("", "has not the shape that it came with"),
        ("deployments: [", "has not the shape that it came with"),
        ("deployments: []\n", "has not the shape that it came with"),
    ],
)
def test_a_deployments_file_that_cannot_be_extended_is_told_before_anything_is_written(
    tmp_path: Path, prefect: str | None, expected: str
) -> None:
    (tmp_path / "params.yaml").write_text("detectors: [demo]\n")
    if prefect is not None:
        (tmp_path / "prefect.yaml").write_text(prefect)
    before = sorted(tmp_path.rglob("*"))
    source = write_yolo_dataset(tmp_path / "source", a_dataset())
    with pytest.raises(ParamsError, match=expected):
        add_detector(tmp_path, "line-3", source)
    assert sorted(path for path in tmp_path.rglob("*") if "source" not in path.parts) == before
    assert (tmp_path / "params.yaml").read_text() == "detectors: [demo]\n"
