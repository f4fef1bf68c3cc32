import pytest

from nightowl.data.findings import Kind
from nightowl.data.images import IMAGE_SUFFIXES
from nightowl.data.names import FORMATS, check_names, lying_suffix


@pytest.mark.parametrize(
    ("paths", "found", "reason"),
    [
        (["a/1.jpg", "a/2.jpg"], [], "names that differ"),
        (["a/1.jpg", "b/1.png"], [("same_stem", "b/1.png", "a/1.jpg")], "one stem in two folders"),
        (["a/1.jpg", "b/1.jpg", "c/1.jpg"], [("same_stem", f"{x}/1.jpg", "a/1.jpg") for x in "bc"], "the first is named"),
        (["a/X.jpg", "a/x.jpg"], [("name_twins", "a/x.jpg", "a/X.jpg")], "one name where case does not count"),
        (
            ["a/e\u0301.jpg", "a/\u00e9.jpg"],
            [("name_twins", "a/\u00e9.jpg", "a/e\u0301.jpg"), ("decomposed_name", "a/e\u0301.jpg", None)],
            "composed and decomposed are one name on macOS",
        ),
        (["a/e\u0301.jpg"], [("decomposed_name", "a/e\u0301.jpg", None)], "a list written elsewhere may not match"),
        (["a/\u00e9.jpg", "a/\u65e5\u672c.jpg"], [], "composed Unicode is a name like any other"),
    ],
)
def test_names_that_will_be_confused(paths: list[str], found: list[tuple[Kind, str, str | None]], reason: str) -> None:
    assert [(f.kind, f.path, f.other) for f in check_names(paths)] == found, reason


@pytest.mark.parametrize(
    ("path", "image_format", "said"),
    [
        ("a.jpg", "JPEG", None),
        ("a.JPEG", "MPO", None),
        ("a.tif", "TIFF", None),
        ("a.jpg", "PNG", "named .jpg, but stored as PNG"),
        ("a.png", "WEBP", "named .png, but stored as WEBP"),
    ],
)
def test_a_suffix_that_lies(path: str, image_format: str, said: str | None) -> None:
    assert lying_suffix(path, image_format) == said


def test_every_suffix_that_is_read_has_its_formats() -> None:
    assert set(FORMATS) == IMAGE_SUFFIXES
