"""Data sets made to break their reader: each ends at once, in a finding or in one line, and never in another data set."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from nightowl.data.findings import Finding, read_findings
from nightowl.data.image_table import read_groups
from nightowl.data.images import load_bgr, read_size
from nightowl.data.manifest import Manifest, read_manifest, write_manifest
from nightowl.data.pin import build_manifest
from nightowl.errors import DataError
from nightowl.params import DataParams, SplitParams
from nightowl.progress import untracked
from tests.datasets import a_dataset, write_coco_dataset, write_text, write_voc_dataset, write_yolo_dataset

YAML = "train: images/train\nval: images/val\ntest: images/test\n"
LABEL = "labels/train/train000.txt"
OBJECT = "<object><name>{}</name>{}<bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"


def pin(source: Path) -> tuple[Manifest, list[Finding]]:
    return build_manifest(source, DataParams(), source.parent / "cache.json", untracked)


@pytest.mark.parametrize("name", ["a\u2028b", "a\x85b", "a\x0bb", "a\x1cb"])
def test_a_file_name_with_an_end_of_line_in_it_reads_back_from_the_manifest(tmp_path: Path, name: str) -> None:
    source = write_yolo_dataset(tmp_path / "source", a_dataset())
    for kind, suffix in (("images", "png"), ("labels", "txt")):
        folder = source / kind / "train"
        (folder / f"train000.{suffix}").rename(folder / f"{name}.{suffix}")
    manifest, _ = pin(source)
    write_manifest(tmp_path / "manifest.jsonl", manifest)
    assert read_manifest(tmp_path / "manifest.jsonl") == manifest
    assert f"images/train/{name}.png" in {image.path for image in manifest.images}


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        (f'{YAML}names: ["a\u2028b"]\n', "expected a word"),
        (f'{YAML}names: ["a\\x85b"]\n', "expected a word"),
        (f"{YAML}names: {{'²': a, 1: b}}\n", "expected the ids 0 to 1"),
        (f"{YAML}names: {'[' * 3000}{']' * 3000}\n", "nested deeper"),
    ],
)
def test_a_hostile_description_is_one_line(tmp_path: Path, yaml: str, message: str) -> None:
    source = write_yolo_dataset(tmp_path / "source", a_dataset())
    write_text(source / "data.yaml", yaml)
    with pytest.raises(DataError, match=message):
        pin(source)


def a_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def a_device(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("odd", [a_pipe, a_device])
def test_a_pipe_or_device_is_not_waited_for(tmp_path: Path, odd: Callable[[Path], None]) -> None:
    source = write_yolo_dataset(tmp_path / "yolo", a_dataset())
    odd(source / LABEL)
    _, findings = pin(source)
    assert [(f.kind, f.action) for f in findings] == [("unparsable_label", "image quarantined")]
    assert "Not a regular file" in findings[0].detail

    source = write_voc_dataset(tmp_path / "voc", a_dataset())
    odd(source / "Annotations" / "train000.xml")
    odd(source / "JPEGImages" / "train001.png")
    _, findings = pin(source)
    assert {f.kind for f in findings} == {"unparsable_label", "unreadable_image"}

    source = write_coco_dataset(tmp_path / "coco", a_dataset())
    odd(source / "annotations" / "instances_train.json")
    with pytest.raises((DataError, OSError), match="Not a regular file"):
        pin(source)
    odd(tmp_path / "image.png")
    with pytest.raises(DataError, match="not a regular file"):
        read_size(tmp_path / "image.png")


def test_a_coco_file_nested_without_end_is_one_line(tmp_path: Path) -> None:
    source = write_coco_dataset(tmp_path / "source", a_dataset())
    write_text(source / "annotations/instances_train.json", '{"images":' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(DataError, match="nested deeper"):
        pin(source)


@pytest.mark.parametrize(
    ("iscrowd", "ignored", "reason"),
    [("0", False, "a text that Python takes for true"), ("1", True, ""), (0.0, False, ""), (None, False, ""), ("x", None, "")],
)
def test_iscrowd_is_what_it_says(tmp_path: Path, iscrowd: object, ignored: bool | None, reason: str) -> None:
    source = changed_coco(tmp_path, lambda values: values["annotations"][0].update(iscrowd=iscrowd))
    manifest, findings = pin(source)
    (image,) = [image for image in manifest.images if image.path.endswith("train000.png")]
    assert [box.ignore for box in image.boxes] == ([] if ignored is None else [ignored]), reason
    assert len(findings) == (ignored is None)


def test_a_supercategory_may_be_anything(tmp_path: Path) -> None:
    source = changed_coco(tmp_path, lambda values: values["categories"][0].update(supercategory=["a"]))
    assert pin(source)[0].num_boxes() == {"scratch": 4, "dent": 4}


def changed_coco(tmp_path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    source = write_coco_dataset(tmp_path / "source", a_dataset())
    path = source / "annotations/instances_train.json"
    values = json.loads(path.read_text())
    change(values)
    write_text(path, json.dumps(values))
    return source


@pytest.mark.parametrize(
    ("xml", "num_boxes", "kinds"),
    [
        (f'<annotation xmlns="http://x">{OBJECT.format("dent", "")}</annotation>', None, {"unparsable_label"}),
        (f"<html>{OBJECT.format('dent', '')}<!-- <annotation --></html>", None, {"unparsable_label"}),
        (f"<annotation>{OBJECT.format('de&#10; nt', '')}</annotation>", {"de nt": 1}, set()),
        (f"<annotation>{OBJECT.format('a&#x85;b', '')}</annotation>", {"a b": 1}, set()),
        (f"<annotation>{OBJECT.format('a&#x9f;b', '')}</annotation>", {}, {"unparsable_label"}),
        (f"<annotation>{OBJECT.format('x', '<difficult>True</difficult>')}</annotation>", {"x": 0}, set()),
    ],
)
def test_xml_that_is_no_annotation_is_never_background(
    tmp_path: Path, xml: str, num_boxes: dict[str, int] | None, kinds: set[str]
) -> None:
    source = write_voc_dataset(tmp_path / "source", a_dataset())
    write_text(source / "Annotations/train000.xml", xml)
    manifest, findings = pin(source)
    assert {finding.kind for finding in findings} == kinds
    assert any(image.path.endswith("train000.png") for image in manifest.images) == (num_boxes is not None)
    for name, count in (num_boxes or {}).items():
        assert manifest.num_boxes()[name] == count


def test_an_image_that_another_program_would_have_to_draw_is_refused(tmp_path: Path) -> None:
    drawn = io.BytesIO()
    PIL.Image.new("RGB", (8, 8)).save(drawn, "EPS")
    write_text(tmp_path / "a.png", drawn.getvalue())
    with pytest.raises(DataError, match="stored as EPS"):
        read_size(tmp_path / "a.png")
    with pytest.raises(DataError, match="stored as EPS"):
        load_bgr(tmp_path / "a.png")


@pytest.mark.parametrize(
    ("text", "message"),
    [("image,lot\na.png," + "x" * 200_000 + "\n", "not readable as CSV"), ("image\u2028,lot\na.png,1\n", "no column image")],
)
def test_a_hostile_table_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "lots.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_groups(tmp_path, SplitParams(group_table="lots.csv", group_column="lot"), ["a.png"])


def test_a_quoted_end_of_line_in_a_table_stays_in_its_cell(tmp_path: Path) -> None:
    (tmp_path / "lots.csv").write_text('image,note,lot\na.png,"two\nlines",1\nb.png,x,2\n')
    table = SplitParams(group_table="lots.csv", group_column="lot")
    assert read_groups(tmp_path, table, ["a.png", "b.png"]) == {"a.png": "1", "b.png": "2"}


@pytest.mark.parametrize("content", [b"", b"{}", b"[{}]", b"\xff", b"[" * 100_000])
def test_damaged_findings_are_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "findings.json"
    with pytest.raises(DataError, match="pin the inputs first"):
        read_findings(path)
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a list of findings") as caught:
        read_findings(path)
    assert len(str(caught.value).splitlines()) == 1
