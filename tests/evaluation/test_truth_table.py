"""Labels come back from their table as they were."""

from pathlib import Path

import numpy as np
import pytest

from nightowl.errors import DataError
from nightowl.evaluation.truth import truth_of
from nightowl.evaluation.truth_table import read_truth, write_truth
from tests.evaluation.scenes import CLASSES, a_scene


@pytest.mark.parametrize(("num_images", "reason"), [(12, "crowds and empty images"), (0, "nothing at all")])
def test_labels_come_back_as_they_were(tmp_path: Path, num_images: int, reason: str) -> None:
    truth = truth_of(CLASSES, a_scene(1)[0][:num_images])
    write_truth(tmp_path / "truth.parquet", truth)
    back = read_truth(tmp_path / "truth.parquet")
    assert (back.classes, back.images) == (truth.classes, truth.images), reason
    for name in ("image_index", "class_id", "boxes_xyxy", "ignore"):
        assert np.array_equal(getattr(back, name), getattr(truth, name)), reason
        assert getattr(back, name).dtype == getattr(truth, name).dtype, reason


def test_what_is_no_table_of_labels_is_said(tmp_path: Path) -> None:
    (tmp_path / "truth.parquet").write_bytes(b"no")
    for name in ("truth.parquet", "absent.parquet"):
        with pytest.raises(DataError, match=f"{name}: expected a table of labels"):
            read_truth(tmp_path / name)
