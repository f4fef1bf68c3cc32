from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightowl.data.group_table import read_groups
from nightowl.errors import DataError
from nightowl.params import SplitParams

PATHS = ["images/a.png", "images/b.png"]
TABLE = SplitParams(group_table="lots.csv", group_column="lot")


def test_without_a_table_there_are_no_groups(tmp_path: Path) -> None:
    assert read_groups(tmp_path, SplitParams(), PATHS) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("image,lot\nimages/a.png,1\nimages/b.png,2\n", "by path"),
        ("image,lot\na.png,1\nb.png,2\nelse.png,3\n", "by file name, with rows that nobody needs"),
        ("lot,image\r\n1,a\r\n2,b\r\n", "without suffix, columns in any order, CRLF"),
        ('\ufeffimage,lot\n"./images\\a.png", 1\nimages/b.png,2 \n', "with a byte order mark, backslashes and blanks"),
    ],
)
def test_rows_name_images_in_any_usual_way(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "lots.csv").write_text(text, encoding="utf-8", newline="")
    assert read_groups(tmp_path, TABLE, PATHS) == {"images/a.png": "1", "images/b.png": "2"}, reason


def test_a_parquet_table_and_other_column_names_do_as_well(tmp_path: Path) -> None:
    pq.write_table(pa.table({"file": ["a", "b"], "lot": [1, 2]}), tmp_path / "lots.parquet")
    params = SplitParams(group_table="lots.parquet", group_column="lot", image_column="file")
    assert read_groups(tmp_path, params, PATHS) == {"images/a.png": "1", "images/b.png": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"data\.split\.group_table: lots\.csv: no such file inside"),
        ("name,lot\na,1\n", "no column image; it has name, lot"),
        ("", "no column image or lot; it has none"),
        ("image,lot\na,1\n", r"no row for 1 of 2 images, first images/b\.png; every image needs a lot"),
        ("image,lot\na,\nb,2\n", "a row with image 'a' and lot ''; fill in both"),
        ("image,lot\na,1\na,2\nb,1\n", "a is in 1 and in 2; keep one row"),
        ("image,lot\na,1\na.png,2\nb,1\n", r"images/a\.png: rows put it into 1 and 2"),
    ],
)
def test_a_table_that_does_not_say_it_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "lots.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_groups(tmp_path, TABLE, PATHS)


def test_a_table_that_is_not_parquet_is_said(tmp_path: Path) -> None:
    (tmp_path / "lots.parquet").write_text("no")
    with pytest.raises(DataError, match="not readable as parquet"):
        read_groups(tmp_path, SplitParams(group_table="lots.parquet", group_column="lot"), PATHS)


def test_a_table_outside_the_source_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file inside"):
        read_groups(tmp_path, SplitParams(group_table="../lots.csv", group_column="lot"), PATHS)
