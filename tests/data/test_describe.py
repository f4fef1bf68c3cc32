from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.data.describe import suggest_params
from nightowl.data.formats.detect import list_source
from nightowl.errors import DataError
from nightowl.params import DataParams
from tests.datasets import CLASSES, a_dataset, write_coco_dataset, write_voc_dataset, write_yolo_dataset


@pytest.mark.parametrize(("write", "layout"), [(write_yolo_dataset, "yolo"), (write_coco_dataset, "coco")])
def test_a_layout_that_names_its_classes_needs_no_more_than_its_name(
    tmp_path: Path, write: Callable[..., Path], layout: str
) -> None:
    suggestion = suggest_params(write(tmp_path, a_dataset()))
    assert suggestion.params == DataParams.model_validate({"layout": layout})
    assert suggestion.classes == CLASSES
    assert "layout by" in suggestion.description
    assert suggestion.num_test == sum(image.split == "test" for image in list_source(tmp_path, DataParams()).images) > 0


def test_for_voc_everything_that_was_found_is_written_down(tmp_path: Path) -> None:
    root = write_voc_dataset(tmp_path, a_dataset())
    suggestion = suggest_params(root)
    assert suggestion.params == DataParams(
        layout="voc",
        images="JPEGImages",
        annotations="Annotations",
        classes=("dent", "scratch"),
        splits={split: f"ImageSets/Main/{split}.txt" for split in ("train", "val", "test")},
    )
    assert list_source(root, suggestion.params).images == list_source(root, DataParams()).images


def test_bccd_is_described_as_its_committed_params_have_it(bccd: Path, bccd_params: DataParams) -> None:
    found = suggest_params(bccd).params
    assert bccd_params.classes is not None
    assert found == bccd_params.model_copy(update={"classes": tuple(sorted(bccd_params.classes))})


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no known layout"):
        suggest_params(tmp_path)
