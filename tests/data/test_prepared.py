from dataclasses import replace

import pytest

from nightowl.data.findings import Finding
from nightowl.data.manifest import SPLITS, Box, Image, Manifest
from nightowl.data.prepared import Prepared, prepare, require_usable
from nightowl.errors import DataError

GOOD = Box(0, 1, 2, 30, 40)


def a_manifest(num: int = 30, boxes: tuple[Box, ...] = (GOOD,)) -> Manifest:
    images = [Image(f"{number:03}.jpg", f"{number:064x}", 1, 64, 48, SPLITS[number % 3], boxes) for number in range(num)]
    return Manifest(("scratch", "dent"), tuple(images), "rule", "digest")


def with_boxes(manifest: Manifest, boxes: dict[str, tuple[Box, ...]]) -> Manifest:
    return replace(manifest, images=tuple(replace(i, boxes=boxes.get(i.path, i.boxes)) for i in manifest.images))


def finding(path: str) -> Finding:
    return Finding(kind="unreadable_image", path=path, detail="no image", action="image quarantined")


def test_sound_data_stays_as_it_is() -> None:
    manifest = a_manifest()
    prepared = prepare(manifest, [], {})
    assert prepared.dataset == manifest
    assert [f.kind for f in prepared.findings] == ["class_without_boxes", "no_background_images"]
    summary = prepared.summary
    assert (summary.images, summary.boxes) == ({"train": 10, "val": 10, "test": 10}, {"scratch": 30, "dent": 0})
    assert (summary.broken_fraction, summary.dataset_version) == (0, manifest.version())


def test_broken_images_and_boxes_leave_with_a_finding_each_and_are_counted() -> None:
    boxes = {"001.jpg": (GOOD, Box(0, 5, 5, 5, 9)), "002.jpg": (Box(0, 1, 1, 100, 40),), "003.jpg": (GOOD, GOOD)}
    prepared = prepare(with_boxes(a_manifest(), boxes), [finding("gone.jpg")], {"000.jpg": "truncated"})
    kept = {image.path: image.boxes for image in prepared.dataset.images}
    assert "000.jpg" not in kept
    assert kept["001.jpg"] == (GOOD,)
    assert kept["002.jpg"] == (Box(0, 1, 1, 64, 40),)
    assert kept["003.jpg"] == (GOOD,)
    summary = prepared.summary
    assert (summary.quarantined_images, summary.quarantined_boxes, summary.clipped_boxes) == (2, 2, 1)
    assert summary.broken_fraction == 3 / 31, "gone, 000 and 001; a clipped or doubled box loses nothing"
    broken = {"duplicate_box": 1, "out_of_frame_box": 1, "unreadable_image": 2, "zero_area_box": 1}
    assert summary.findings == broken | {"class_without_boxes": 1, "no_background_images": 1}


def test_an_image_whose_label_stood_for_an_object_nobody_can_place_goes_whole() -> None:
    line = Finding(kind="unparsable_label", path="004.jpg", detail="line 1: 'dent 0.5'", action="left out")
    inverted = {"001.jpg": (GOOD, Box(1, 9, 5, 5, 9))}
    prepared = prepare(with_boxes(a_manifest(), inverted), [line], {})
    assert {"001.jpg", "004.jpg"}.isdisjoint(image.path for image in prepared.dataset.images), "its object would be background"
    actions = {f.path: f.action for f in prepared.findings if f.kind in ("unparsable_label", "inverted_box")}
    assert actions == {"001.jpg": "image quarantined", "004.jpg": "image quarantined"}
    assert (prepared.summary.quarantined_images, prepared.summary.quarantined_boxes) == (2, 0)


def test_more_broken_images_than_allowed_stop_it() -> None:
    prepared = prepare(a_manifest(), [], {f"{number:03}.jpg": "truncated" for number in range(4)})
    require_usable(prepared, 0.2)
    with pytest.raises(DataError) as raised:
        require_usable(prepared, 0.1)
    assert str(raised.value) == (
        "13.3% of the images (4 of 30) cannot be read or lost a label, at most 10.0% are allowed "
        "(params prepare.max_quarantined_fraction): "
        "4 unreadable_image; first: 000.jpg: truncated; repair the data or raise the limit"
    )


def test_an_image_counts_once_among_the_broken_and_what_breaks_nothing_does_not() -> None:
    lost, outside = Box(0, 5, 5, 5, 9), Box(0, 90, 5, 99, 9)
    boxes = {"001.jpg": (GOOD, lost, lost, outside), "002.jpg": (GOOD, GOOD), "003.jpg": (outside, GOOD)}
    stray = Finding(kind="label_without_image", path="x.txt", detail="no image", action="left out")
    prepared = prepare(with_boxes(a_manifest(), boxes), [stray], {"000.jpg": "truncated"})
    with pytest.raises(
        DataError, match=r"10\.0% of the images \(3 of 30\) .*: 1 out_of_frame_box, 1 unreadable_image, 1 zero_ar"
    ):
        require_usable(prepared, 0.05)


@pytest.mark.parametrize(
    ("prepared", "message"),
    [
        (prepare(a_manifest(boxes=()), [], {}), "no usable box is left in 30 images: none was labelled"),
        (prepare(a_manifest(boxes=(Box(0, 5, 5, 5, 9),)), [], {}), "no usable box is left in 30 images: 30 zero_area_box"),
        (prepare(a_manifest(), [], {f"{n:03}.jpg": "x" for n in range(30)}), "no usable box is left in 0 images"),
        (prepare(a_manifest(), [], {f"{n:03}.jpg": "x" for n in range(2, 30, 3)}), "no usable image is left in test: 10 unre"),
        (prepare(Manifest(("a",), (), "rule"), [], {}), "no usable box is left in 0 images"),
    ],
)
def test_data_of_which_nothing_is_left_stops_it(prepared: Prepared, message: str) -> None:
    with pytest.raises(DataError, match=message):
        require_usable(prepared, 1.0)
