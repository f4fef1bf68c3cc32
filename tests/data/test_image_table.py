from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nightowl.data.image_table import read_columns, read_groups
from nightowl.errors import DataError
from nightowl.params import SliceRule, SplitParams

PATHS = ["images/a.png", "images/b.png"]
IN_LOTS = ("lot1/a.png", "lot1/b.png", "lot2/c.png", "other/d.png")
LINE = SliceRule(name="line", table="images.csv", column="line")
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
        ("image,lot\na,1\n", r"no lot for 1 of 2 images, first images/b\.png; every image needs a lot"),
        ("image,lot\na,\nb,2\n", r"no lot for 1 of 2 images, first images/a\.png"),
        ("image,lot\na,1\nb,2\n,3\n", "a row with lot '3' and no image; fill it in"),
        ("image,lot\na,1\na,2\nb,1\n", "a has lot 1 and 2; keep one row"),
        ("image,lot\na,1\na.png,2\nb,1\n", r"images/a\.png: rows give it lot 1 and 2"),
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


def test_columns_are_read_from_a_table_beside_the_data(tmp_path: Path) -> None:
    (tmp_path / "images.csv").write_text("image,line,shift\nlot1/a.png, A ,1\nlot2/c.png,,2\nunknown.png,B,1\n")
    assert read_columns(tmp_path, [LINE, SliceRule(name="lot", pattern="x")], IN_LOTS) == {"line": {"lot1/a.png": "A"}}


def test_slices_and_groups_read_the_same_tables(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": ["a", "c.png"], "line": ["A", "B"]}), tmp_path / "images.parquet")
    rule = SliceRule(name="line", table="images.parquet", column="line")
    assert read_columns(tmp_path, [rule], IN_LOTS) == {"line": {"lot1/a.png": "A", "lot2/c.png": "B"}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, r"evaluate\.slices: line: images\.csv: no such file inside .*; it holds nothing"),
        ("image,shift\n", "no column line; it has image, shift"),
        ("image,line\nlot1/a.png,A\nlot1/a.png,B\n", r"lot1/a\.png has line A and B; keep one row"),
        ("image,line\nx.png,A\n", "names none of the 4 images; expected paths such as lot1/a.png"),
    ],
)
def test_a_table_of_slices_that_cannot_be_used_is_said(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "images.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_columns(tmp_path, [LINE], IN_LOTS)


def test_a_table_of_slices_outside_the_source_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "images.csv").write_text("image,line\nlot1/a.png,A\n")
    (tmp_path / "source").mkdir()
    rule = SliceRule(name="line", table="../images.csv", column="line")
    with pytest.raises(DataError, match="no such file inside"):
        read_columns(tmp_path / "source", [rule], IN_LOTS)
