from pathlib import Path

import pytest

from nightowl.data.golden import (
    GoldenImage,
    choose_golden,
    golden_paths,
    golden_text,
    listed_golden,
    read_golden,
    refuse_barred,
    with_golden,
)
from nightowl.data.manifest import Image, Manifest, Split
from nightowl.errors import DataError

A, B, C = ("a" * 64, "b" * 64, "c" * 64)


def manifest(*images: tuple[str, str, Split]) -> Manifest:
    return Manifest(("x",), tuple(Image(path, sha256, 1, 9, 9, split, ()) for path, sha256, split in images), "as given")


def test_what_is_written_is_read_back_in_order_of_path(tmp_path: Path) -> None:
    golden = [GoldenImage(B, "lot 2/x y.png"), GoldenImage(A, "lot 1/\u00fc.png")]
    (tmp_path / "golden.txt").write_text(golden_text(golden), encoding="utf-8")
    assert read_golden(tmp_path / "golden.txt") == (golden[1], golden[0])
    assert read_golden(tmp_path / "absent.txt") == ()
    (tmp_path / "empty.txt").write_text(golden_text([]))
    assert (tmp_path / "empty.txt").stat().st_size > 0, "DVC warns of a file without content"
    assert read_golden(tmp_path / "empty.txt") == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("images/a.png\n", "golden.txt line 1: expected `sha256  path`, found 'images/a.png'"),
        (f"{A}  a.png\n\n{A[:-1]}  b.png\n", "golden.txt line 3: expected"),
        (f"{A}  a.png\n{A}  b.png\n", "a.png: the same content is listed twice"),
    ],
)
def test_a_broken_list_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "golden.txt").write_text(text)
    with pytest.raises(DataError, match=message):
        read_golden(tmp_path / "golden.txt")


def test_golden_images_become_test_and_the_digest_decides() -> None:
    dataset = manifest(("a.png", A, "train"), ("new name.png", B, "val"), ("c.png", C, "train"))
    golden = [GoldenImage(A, "a.png"), GoldenImage(B, "old name.png"), GoldenImage("d" * 64, "gone.png")]
    changed, findings = with_golden(dataset, golden)
    assert [image.split for image in changed.images] == ["test", "test", "train"]
    assert changed.split_rule == "as given; 2 golden images are test"
    assert [(f.kind, f.path) for f in findings] == [("golden_missing", "gone.png")]
    assert golden_paths(changed, golden) == {"a.png", "new name.png"}


def test_of_two_equal_images_the_one_that_is_listed_is_golden() -> None:
    dataset = manifest(("1.png", A, "train"), ("2.png", A, "train"))
    assert golden_paths(dataset, [GoldenImage(A, "2.png")]) == {"2.png"}
    assert golden_paths(dataset, [GoldenImage(A, "3.png")]) == {"1.png"}


def test_without_a_golden_set_nothing_changes() -> None:
    dataset = manifest(("a.png", A, "train"))
    assert with_golden(dataset, []) == (dataset, [])


def test_a_choice_is_of_test_images_and_stays_when_the_data_grows() -> None:
    images = [(f"{number:03}.png", f"{number:064x}", "test") for number in range(100)]
    chosen = choose_golden(manifest(*images), 0.2)  # type: ignore[arg-type]
    assert len(chosen) == 20
    grown = choose_golden(manifest(*images, ("t.png", A, "train")), 0.3)  # type: ignore[arg-type]
    assert set(chosen) < set(grown) and "t.png" not in {image.path for image in grown}


def test_a_list_names_pinned_images() -> None:
    dataset = manifest(("a.png", A, "train"), ("b.png", B, "test"))
    assert listed_golden(dataset, ["a.png", "a.png"]) == (GoldenImage(A, "a.png"),)
    with pytest.raises(DataError, match=r"expected paths of pinned images, found 1 are not, first c\.png"):
        listed_golden(dataset, ["a.png", "c.png"])
    with pytest.raises(DataError, match="found no name"):
        listed_golden(dataset, [])


@pytest.mark.parametrize(
    ("split", "barred", "message"),
    [
        ("test", (A,), None),
        ("train", (A,), r"copy\.png: is golden or a copy of a golden image, and must never be fitted to, but is in train"),
        ("val", (A,), r"copy\.png: .* but is in val"),
        ("test", (), r"g\.png: is golden, but prepare did not know it as such"),
    ],
)
def test_training_refuses_what_is_barred_and_names_it(split: Split, barred: tuple[str, ...], message: str | None) -> None:
    dataset, golden = manifest(("copy.png", A, split), ("t.png", B, "train")), [GoldenImage(A, "g.png")]
    known = [GoldenImage(sha256, "g.png") for sha256 in barred]
    if message is None:
        refuse_barred(dataset, golden, known)
        return
    with pytest.raises(DataError, match=message):
        refuse_barred(dataset, golden, known)
