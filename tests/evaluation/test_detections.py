"""The table of detections: kept whole, images without any included."""

from pathlib import Path

import numpy as np
import pytest

from nightowl.errors import DataError
from nightowl.evaluation.detections import Detections, gather, read_detections, write_detections
from nightowl.evaluation.postprocess import Found
from tests.evaluation.scenes import a_scene


def assert_equal(one: Detections, other: Detections) -> None:
    assert (one.classes, one.images) == (other.classes, other.images)
    for name in ("image_index", "class_id", "score", "boxes_xyxy"):
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        assert np.array_equal(left, right), name


@pytest.mark.parametrize("confidence", [0.0, 2.0])
def test_a_table_reads_back_as_it_was_written(tmp_path: Path, confidence: float) -> None:
    detections = a_scene(0)[1].from_confidence(confidence)
    write_detections(tmp_path / "d.parquet", detections)
    assert_equal(read_detections(tmp_path / "d.parquet"), detections)


def test_equal_tables_give_equal_bytes(tmp_path: Path) -> None:
    for name in "ab":
        write_detections(tmp_path / name, a_scene(0)[1])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("content", [None, b"", b"PAR1 no more"])
def test_a_broken_table_is_refused_by_name(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "d.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"d\.parquet: expected a table of detections"):
        read_detections(path)


def test_an_image_without_detections_is_in_the_table() -> None:
    found = Found(np.ones((2, 4), np.float32), np.array([0.9, 0.8], np.float32), np.array([1, 0], np.int32))
    nothing = Found(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int32))
    table = gather(("a", "b"), ["x", "y", "z"], [nothing, found, nothing])
    assert table.images == ("x", "y", "z")
    assert table.image_index.tolist() == [1, 1]
    assert len(table.of_image("z").score) == 0
    assert table.of_image("y").class_id.tolist() == [1, 0]


def test_classes_are_matched_by_name() -> None:
    _, detections = a_scene(0)
    other = detections.with_classes(("c", "new", "a"))
    kept = np.isin(detections.class_id, [0, 2])
    assert other.class_id.tolist() == [{0: 2, 2: 0}[i] for i in detections.class_id[kept].tolist()]
    assert np.array_equal(other.score, detections.score[kept])


def test_a_threshold_a_class_counts_from_its_own_value_up() -> None:
    _, detections = a_scene(0)
    limits = np.array([0.5, 0.0, 2.0, 2.0], np.float32)
    shown = detections.from_confidence(limits)
    assert set(shown.class_id.tolist()) == {0, 1}
    assert shown.score[shown.class_id == 0].min() >= 0.5
    assert (shown.class_id == 1).sum() == (detections.class_id == 1).sum()
