import pytest

from nightowl.audit_params import NearDuplicateParams
from nightowl.boards import draw_board
from nightowl.data.duplicates import check_duplicates
from nightowl.data.findings import Kind
from nightowl.data.look import Look, look_at
from nightowl.data.manifest import Image, Split
from tests.data.looking import boards_of_one_layout, copy_of, png

PARAMS = NearDuplicateParams()
ORIGINAL = draw_board(0, 3, 192).image
LOOK, COPY, OTHER = (look_at(png(image), "a") for image in (ORIGINAL, copy_of(ORIGINAL, "jpeg"), draw_board(0, 4, 192).image))


def image(path: str, split: Split, content: str) -> Image:
    return Image(path, content, 1, 192, 192, split, ())


def found(images: list[Image], looks: dict[str, Look], golden: set[str] | None = None) -> list[tuple[Kind, str, str | None]]:
    seen = {i.path: looks[i.sha256] for i in images if i.sha256 in looks}
    return [(f.kind, f.path, f.other) for f in check_duplicates(images, seen, frozenset(golden or ()), PARAMS)]


@pytest.mark.parametrize(
    ("one", "two", "kind", "weaker"),
    [
        ("train", "test", "same_content_across_splits", "one"),
        ("test", "train", "same_content_across_splits", "two"),
        ("val", "test", "same_content_across_splits", "one"),
        ("val", "train", "same_content_across_splits", "two"),
        ("train", "train", "same_content", "two"),
        ("test", "test", "same_content", "two"),
    ],
)
def test_of_two_equal_images_the_weaker_role_is_named(one: Split, two: Split, kind: Kind, weaker: str) -> None:
    stronger = "two" if weaker == "one" else "one"
    assert found([image("one", one, "x"), image("two", two, "x")], {}) == [(kind, weaker, stronger)]
    near: Kind = "near_duplicate" if one == two else "near_duplicate_across_splits"
    assert found([image("one", one, "x"), image("two", two, "y")], {"x": LOOK, "y": COPY}) == [(near, weaker, stronger)]


def test_different_images_are_no_finding() -> None:
    assert found([image("a", "train", "x"), image("b", "test", "y")], {"x": LOOK, "y": OTHER}) == []


def test_every_copy_in_train_is_named_also_a_copy_of_a_copy() -> None:
    images = [image("a", "train", "x"), image("b", "train", "x"), image("c", "test", "y")]
    across: Kind = "near_duplicate_across_splits"
    assert found(images, {"x": LOOK, "y": COPY}) == [("same_content", "b", "a"), (across, "a", "c"), (across, "b", "c")]


def test_a_copy_of_a_golden_image_is_its_own_kind_outside_test_alone() -> None:
    images = [image("a", "train", "x"), image("b", "test", "x"), image("g", "test", "x"), image("n", "val", "y")]
    assert found(images, {"x": LOOK, "y": COPY}, {"g"}) == [
        ("same_content", "b", "g"),
        ("golden_duplicate", "a", "g"),
        ("golden_duplicate", "n", "g"),
    ]


def test_boards_of_one_layout_across_splits_are_one_finding_with_their_number() -> None:
    boards = boards_of_one_layout(40, 0.0)
    images = [image(f"{n:02}", "test" if n % 4 == 0 else "train", f"{n}") for n in range(40)]
    looks = {f"{n}": look_at(png(board), "a") for n, board in enumerate(boards)}
    (finding,) = check_duplicates(images, {i.path: looks[i.sha256] for i in images}, frozenset(), PARAMS)
    assert (finding.kind, finding.action) == ("alike_across_splits", "kept")
    assert finding.detail.startswith(
        "10 of test, 30 of train look alike, each with 5 or more others: one product or one scene."
    )
