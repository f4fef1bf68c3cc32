from pathlib import Path

import pytest

from nightowl.errors import StageFailed
from nightowl.report.history import read_history


def written(path: Path, *lines: str) -> Path:
    file = path / "results.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_each_loss_has_train_and_val_and_padded_headers_are_understood(tmp_path: Path) -> None:
    path = written(tmp_path, "  epoch, train/box_loss, val/box_loss, lr/pg0", "1, 2.5, 3.0, 0.01", "2, 2.0, 2.9, 0.009")
    loss, rate = read_history(path)
    assert loss.title == "Box loss"
    assert {one.name: one.points for one in loss.series} == {"train": ((1, 2.5), (2, 2.0)), "val": ((1, 3.0), (2, 2.9))}
    assert rate.title == "Learning rate"


@pytest.mark.parametrize("cell", ["", "nan", "inf", "-inf", "?"])
def test_what_is_not_a_figure_is_a_gap(tmp_path: Path, cell: str) -> None:
    (chart,) = read_history(written(tmp_path, "epoch,metrics/mAP50(B)", f"1,{cell}", "2,0.5"))
    assert chart.series[0].points == ((1, None), (2, 0.5))


def test_a_loss_of_another_architecture_is_shown_after_the_known_ones(tmp_path: Path) -> None:
    charts = read_history(written(tmp_path, "epoch,train/angle_loss,train/box_loss", "1,0.1,0.2"))
    assert [chart.title for chart in charts] == ["Box loss", "angle_loss"]


@pytest.mark.parametrize("lines", [["epoch,train/box_loss"], ["train/box_loss", "1"], ["epoch,x", "one,1"]])
def test_a_table_without_epochs_is_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(StageFailed, match="expected a table with a column `epoch`"):
        read_history(written(tmp_path, *lines))
