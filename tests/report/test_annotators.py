"""The list for annotators, as files that other tools read."""

import csv
import json
from pathlib import Path

from nightowl.data.manifest import Box, Image, Manifest
from nightowl.evaluation.suspicious import Suspicion
from nightowl.report.annotators import write_lists

DATASET = Manifest(
    ("open", "short"),
    tuple(Image(f"{name}.png", "0" * 64, 1, 200, 100, "test", (Box(0, 1, 1, 9, 9),)) for name in "abc"),
    "by hand",
)
LISTED = (
    Suspicion(image="b.png", why="no label", name="short", labelled=None, score=0.93, box_xyxy=(10.0, 20.0, 40.5, 60.0)),
    Suspicion(image="c.png", why="another label", name="open", labelled="short", score=0.71, box_xyxy=(0.0, 0.0, 9.0, 9.0)),
    Suspicion(image="b.png", why="never found", name="open", labelled="open", score=None, box_xyxy=(1.0, 1.0, 9.0, 9.0)),
)


def test_the_three_files_say_the_same(tmp_path: Path) -> None:
    write_lists(tmp_path, LISTED, DATASET)
    plain = json.loads((tmp_path / "suspicious_labels.json").read_text())
    assert [Suspicion.model_validate_json(json.dumps(row)) for row in plain] == list(LISTED)
    rows = list(csv.DictReader((tmp_path / "suspicious_labels.csv").read_text().splitlines()))
    assert [(row["image"], row["why"], row["class"], row["labelled"], row["score"], row["x2"]) for row in rows] == [
        ("b.png", "no label", "short", "", "0.93", "40.5"),
        ("c.png", "another label", "open", "short", "0.71", "9.0"),
        ("b.png", "never found", "open", "open", "", "9.0"),
    ]
    coco = json.loads((tmp_path / "suspicious_labels.coco.json").read_text())
    assert [image["file_name"] for image in coco["images"]] == ["b.png", "c.png"], "only images with something to look at"
    names = {category["id"]: category["name"] for category in coco["categories"]}
    assert [names[each["category_id"]] for each in coco["annotations"]] == ["short", "open", "open"]
    assert coco["annotations"][0]["bbox"] == [10.0, 20.0, 30.5, 40.0]
    assert len({each["id"] for each in coco["annotations"]}) == 3


def test_nothing_suspicious_is_an_empty_list_and_not_an_absent_one(tmp_path: Path) -> None:
    write_lists(tmp_path, (), DATASET)
    assert json.loads((tmp_path / "suspicious_labels.json").read_text()) == []
    assert (tmp_path / "suspicious_labels.csv").read_text().count("\n") == 1
    assert json.loads((tmp_path / "suspicious_labels.coco.json").read_text())["annotations"] == []


def test_a_name_that_a_spreadsheet_would_run_stays_a_name(tmp_path: Path) -> None:
    evil = LISTED[0].model_copy(update={"name": '=HYPERLINK("x")', "image": "+b.png"})
    write_lists(tmp_path, [evil], _with(evil))
    (row,) = csv.DictReader((tmp_path / "suspicious_labels.csv").read_text().splitlines())
    assert (row["image"], row["class"]) == ("'+b.png", '\'=HYPERLINK("x")')


def _with(each: Suspicion) -> Manifest:
    return Manifest((each.name,), (Image(each.image, "0" * 64, 1, 9, 9, "test", ()),), "by hand")
