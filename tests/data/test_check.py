import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data.check import check_boxes
from nightowl.data.images import Size
from nightowl.data.manifest import Box

SIZE = Size(100, 80)
CLASSES = ("scratch", "dent", "hole", "burr")


@pytest.mark.parametrize(
    ("box", "kept", "kind", "action", "reason"),
    [
        (Box(0, 1, 2, 30, 40), Box(0, 1, 2, 30, 40), None, None, "a good box is untouched"),
        (Box(0, 0, 0, 100, 80), Box(0, 0, 0, 100, 80), None, None, "the whole image is a box"),
        (Box(0, 5, 5, 5, 9), None, "zero_area_box", "box quarantined", "no width"),
        (Box(0, 5, 5, 9, 5), None, "zero_area_box", "box quarantined", "no height"),
        (Box(0, 9, 5, 5, 9), None, "inverted_box", "box quarantined", "right of its right edge"),
        (Box(0, 5, 9, 9, 5), None, "inverted_box", "box quarantined", "below its lower edge"),
        (Box(0, -10, 5, 20, 30), Box(0, 0, 5, 20, 30), "out_of_frame_box", "clipped", "partly to the left"),
        (Box(0, 5, 5, 120, 90), Box(0, 5, 5, 100, 80), "out_of_frame_box", "clipped", "beyond the corner"),
        (Box(0, 100, 5, 120, 30), None, "out_of_frame_box", "box quarantined", "begins where the image ends"),
        (Box(0, 5, -30, 20, -2), None, "out_of_frame_box", "box quarantined", "wholly above"),
        (Box(0, -0.4, 5, 20, 80.3), Box(0, 0, 5, 20, 80), None, None, "rounding is cut off without a word"),
    ],
)
def test_each_fault_is_found_and_named(box: Box, kept: Box | None, kind: str | None, action: str | None, reason: str) -> None:
    boxes, findings = check_boxes("a.jpg", SIZE, [box], CLASSES)
    assert boxes == (() if kept is None else (kept,)), reason
    assert [(f.kind, f.action) for f in findings] == ([] if kind is None else [(kind, action)]), reason


def test_a_box_given_twice_is_kept_once_and_another_class_at_its_place_is_not_the_same() -> None:
    box, other = Box(0, 1, 2, 30, 40), Box(1, 1, 2, 30, 40)
    boxes, findings = check_boxes("a.jpg", SIZE, [box, other, box], CLASSES)
    assert boxes == (box, other)
    assert [(f.kind, f.detail) for f in findings] == [
        ("duplicate_box", "box of class scratch at (1, 2, 30, 40) is there twice")
    ]


def test_the_finding_says_where_and_how_far() -> None:
    _, findings = check_boxes("lot/a.jpg", SIZE, [Box(2, 90, 5, 112.5, 30)], CLASSES)
    assert findings[0].path == "lot/a.jpg"
    assert findings[0].detail == "box of class hole at (90, 5, 112.5, 30) reaches 12.5 px beyond 100x80"


CORNER = st.floats(-200, 300, allow_nan=False)


@given(st.lists(st.builds(Box, st.integers(0, 3), CORNER, CORNER, CORNER, CORNER), max_size=8))
def test_what_is_kept_lies_inside_and_has_area_and_nothing_is_dropped_in_silence(boxes: list[Box]) -> None:
    kept, findings = check_boxes("a.jpg", SIZE, boxes, CLASSES)
    assert all(0 <= b.x1 < b.x2 <= SIZE.width and 0 <= b.y1 < b.y2 <= SIZE.height for b in kept)
    assert len(kept) + sum(f.action == "box quarantined" for f in findings) == len(boxes)
    assert check_boxes("a.jpg", SIZE, kept, CLASSES)[0] == kept or len(set(kept)) < len(kept)
