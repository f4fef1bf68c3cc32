from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from nightowl.commands.data import app
from nightowl.data.manifest import Box
from nightowl.errors import DataError, ParamsError
from tests.datasets import Sample, a_dataset, write_text, write_voc_dataset, write_yolo_dataset


def inspect(path: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["inspect", str(path), *options])


def test_it_says_layout_splits_classes_and_sizes(tmp_path: Path) -> None:
    result = inspect(write_yolo_dataset(tmp_path, a_dataset(4, 2, 2)))
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[:2] == [
        "YOLO layout by data.yaml: train 4, val 2, test 2 images.",
        "Splits: train, val and test as given.",
    ]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert cells == [
        ["scratch", "2", "1", "1", "4"],
        ["dent", "2", "1", "1", "4"],
        ["images", "4", "2", "2", "8"],
        ["of these background", "0", "0", "0", "0"],
    ]
    assert lines[-3:-1] == ["Sizes: 64x48 (8 images).", "Findings: none."]
    assert lines[-1] == f"The pixels were not looked at; next: nightowl data audit {tmp_path}"


def test_findings_are_counted_by_kind_with_the_first_examples(tmp_path: Path) -> None:
    bad = Box(0, 5, 5, 5, 9)
    root = write_yolo_dataset(tmp_path, [*a_dataset(), *(Sample(f"bad[{n}]", (bad,)) for n in range(5))])
    write_text(root / "images" / "val" / "val000.png", "no image")
    lines = inspect(root).output.splitlines()
    start = lines.index("Findings: 6")
    assert lines[start + 1] == "  unreadable_image: 1"
    assert lines[start + 3] == "  zero_area_box: 5"
    assert lines[start + 4].startswith("    images/train/bad[0].png: box of class scratch at (5, 5, 5, 9) has no area")
    assert lines[start + 7] == "    and 2 more"


def test_what_to_do_next_is_a_command_for_the_same_data(tmp_path: Path) -> None:
    write_text(tmp_path / "a b" / "data.yaml", "train: [")
    root = write_voc_dataset(tmp_path / "a b", a_dataset())
    output = inspect(root, "--layout", "voc", "--images", "JPEGImages").output
    assert output.endswith(f"next: nightowl data audit '{root}' --layout voc --images JPEGImages\n")


def test_an_image_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    root = write_yolo_dataset(tmp_path, a_dataset())
    write_text(root / "images" / "val" / "val000.png", "no image")
    (line,) = [line for line in inspect(root).output.splitlines() if "val000" in line]
    assert line == "    images/val/val000.png: cannot be read as an image: not an image of a known kind (image quarantined)"


def test_names_are_shown_as_they_are_and_crowds_apart(tmp_path: Path) -> None:
    samples = [*a_dataset(), Sample("crowd", (Box(0, 1, 1, 9, 9, ignore=True),))]
    output = inspect(write_voc_dataset(tmp_path, samples, ("[red]a[/red]", "dent"))).output
    assert "[red]a[/red]" in output
    assert "crowds, ignored" in output


def test_bad_input_ends_in_the_error_that_the_command_line_turns_into_one_line(tmp_path: Path) -> None:
    assert isinstance(inspect(tmp_path / "gone").exception, DataError)
    assert isinstance(inspect(tmp_path, "--layout", "kitti").exception, ParamsError)
    write_yolo_dataset(tmp_path, a_dataset())
    write_voc_dataset(tmp_path, a_dataset())
    result = inspect(tmp_path)
    assert isinstance(result.exception, DataError) and "2 layouts at once: yolo by data.yaml; voc by" in str(result.exception)
    assert inspect(tmp_path, "--layout", "voc").exit_code == 0


@pytest.mark.parametrize("arguments", [["--help"], ["inspect", "--help"]])
def test_help_needs_no_data(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == 0
