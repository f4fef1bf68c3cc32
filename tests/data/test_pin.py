import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.data import pin
from nightowl.data.findings import Finding
from nightowl.data.golden import GoldenImage
from nightowl.data.manifest import Box, Image, Manifest, in_order, read_manifest, write_manifest
from nightowl.data.pin import build_manifest
from nightowl.errors import DataError
from nightowl.files import sha256_file
from nightowl.params import DataParams, SplitParams
from nightowl.progress import untracked
from tests.datasets import (
    CLASSES,
    Sample,
    a_dataset,
    write_coco_dataset,
    write_image,
    write_text,
    write_voc_dataset,
    write_yolo_dataset,
)

AUTO = DataParams()
LONG_AGO_NS = 1_700_000_000_000_000_000


def build(source: Path, cache: Path | None = None, params: DataParams = AUTO) -> tuple[Manifest, list[Finding]]:
    return build_manifest(source, params, cache or source.parent / "cache.json", untracked)


def settle(source: Path) -> None:
    """Let every file have been changed long ago, as a cache only remembers what has come to rest."""
    for file in source.rglob("*"):
        os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))


def test_the_manifest_holds_what_is_on_disk(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset(4, 2, 2))
    manifest, findings = build(source)
    assert (manifest.classes, manifest.split_rule, findings) == (CLASSES, "train, val and test as given", [])
    assert manifest.num_images() == {"train": 4, "val": 2, "test": 2}
    assert manifest.num_boxes() == {"scratch": 4, "dent": 4}
    for image in manifest.images:
        assert image.sha256 == sha256_file(source / image.path)
        assert (image.num_bytes, image.width, image.height) == ((source / image.path).stat().st_size, 64, 48)


@pytest.mark.parametrize("other", [write_coco_dataset, write_voc_dataset])
def test_every_layout_of_the_same_data_has_the_same_boxes(tmp_path: Path, other: Callable[..., Path]) -> None:
    samples = a_dataset(4, 2, 2)
    wanted = DataParams(classes=CLASSES)
    first, _ = build(write_yolo_dataset(tmp_path / "yolo", samples), params=wanted)
    second, _ = build(other(tmp_path / "other", samples), params=wanted)
    for one, two in zip(sorted(first.images, key=_name), sorted(second.images, key=_name), strict=True):
        assert (_name(one), one.split, one.sha256) == (_name(two), two.split, two.sha256)
        assert [tuple(box) for box in one.boxes] == [pytest.approx(tuple(box), abs=1e-4) for box in two.boxes]


def _name(image: Image) -> str:
    return Path(image.path).name


def test_fractions_refer_to_the_image_as_seen(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    write_image(source / "images" / "train" / "turned.jpg", orientation=6)
    write_text(source / "labels" / "train" / "turned.txt", "0 0.5 0.5 0.5 0.5\n")
    image = next(image for image in build(source)[0].images if "turned" in image.path)
    assert (image.width, image.height) == (48, 64)
    assert image.boxes == (Box(0, 12, 16, 36, 48),)


def test_the_version_is_the_same_wherever_the_data_lies(tmp_path: Path) -> None:
    here, there = (build(write_yolo_dataset(tmp_path / name / "data", a_dataset()))[0] for name in ("here", "there"))
    assert here.version() == there.version()


def test_any_change_of_pixels_labels_or_params_is_another_version(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    versions = [build(source)[0].version()]
    write_image(source / "images" / "train" / "train000.png", seed=99)
    versions.append(build(source)[0].version())
    write_text(source / "labels" / "train" / "train000.txt", "1 0.5 0.5 0.2 0.2\n")
    versions.append(build(source)[0].version())
    versions.append(build(source, params=DataParams(layout="yolo"))[0].version())
    assert len(set(versions)) == 4


def test_unchanged_data_is_pinned_again_without_opening_an_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    settle(source)
    first = build(source)
    opened: list[str] = []
    measure = pin.size_of_bytes
    monkeypatch.setattr(pin, "size_of_bytes", lambda content, name: opened.append(name) or measure(content, name))
    assert build(source) == first
    assert opened == []
    write_image(source / "images" / "train" / "train000.png", seed=99)
    assert build(source)[0] != first[0]
    assert opened == ["images/train/train000.png"]


def test_what_was_changed_a_moment_ago_is_not_trusted(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    path = source / "images" / "train" / "train000.png"
    before = build(source)[0]
    stamp = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"?")  # same length
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # and same time
    assert build(source)[0].version() != before.version()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "root": "/elsewhere", "files": {}}'])
def test_a_broken_cache_costs_only_time(tmp_path: Path, content: bytes) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    expected = build(source, tmp_path / "other.json")
    write_text(tmp_path / "cache.json", content)
    assert build(source, tmp_path / "cache.json") == expected


def test_an_unreadable_image_is_not_in_the_manifest_but_in_the_findings(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset())
    write_text(source / "images" / "train" / "train000.png", "no image")
    manifest, findings = build(source)
    assert "images/train/train000.png" not in [image.path for image in manifest.images]
    (finding,) = findings
    assert (finding.kind, finding.path, finding.action) == (
        "unreadable_image",
        "images/train/train000.png",
        "image quarantined",
    )
    assert str(tmp_path) not in finding.detail, "findings are the same on every machine"


def test_when_no_image_can_be_read_it_stops(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset(2, 0, 0))
    for number in range(2):
        write_text(source / "images" / "train" / f"train00{number}.png", "no image")
    with pytest.raises(DataError, match=r"none of 2 images can be read; first: images/train/train000\.png: cannot be read"):
        build(source)


def test_one_folder_as_val_and_test_is_val_and_test_is_taken_by_hash(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset(60, 5, 0))
    write_text(source / "data.yaml", "train: images/train\nval: images/val\ntest: images/val\nnames: [scratch, dent]\n")
    manifest, findings = build(source)
    assert [finding.kind for finding in findings if finding.kind != "same_content"] == ["split_overlap"]
    assert manifest.split_rule.startswith("train and val as given; test (15%) taken from train by hash")
    assert manifest.num_images()["val"] == 5
    assert all(image.path.startswith("images/train/") for image in manifest.of("test"))


def test_golden_images_are_test_wherever_they_lie_and_a_missing_one_is_said(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset(3, 2, 2))
    golden = [
        GoldenImage(sha256_file(source / "images" / "val" / "val000.png"), "an/old/name.png"),
        GoldenImage("a" * 64, "gone.png"),
    ]
    manifest, findings = build_manifest(source, AUTO, tmp_path / "cache.json", untracked, golden)
    assert manifest.num_images() == {"train": 3, "val": 1, "test": 3}
    assert manifest.split_rule == "train, val and test as given; 1 golden images are test"
    assert [(f.kind, f.path) for f in findings] == [("golden_missing", "gone.png")]


def test_a_table_beside_the_data_keeps_a_lot_together(tmp_path: Path) -> None:
    source = write_yolo_dataset(tmp_path / "data", a_dataset(60, 0, 0))
    rows = "".join(f"train{number:03}.png,lot{number // 3}\n" for number in range(60))
    write_text(source / "lots.csv", f"image,lot\n{rows}")
    manifest, _ = build(source, params=DataParams(split=SplitParams(group_table="lots.csv", group_column="lot")))
    lots: dict[int, set[str]] = {}
    for image in manifest.images:
        lots.setdefault(int(Path(image.path).stem[-3:]) // 3, set()).add(image.split)
    assert all(len(splits) == 1 for splits in lots.values())
    assert manifest.split_rule.endswith("by hash of the column lot of lots.csv")


def test_the_digest_of_data_params_covers_every_value() -> None:
    params = [AUTO, DataParams(layout="yolo"), DataParams(classes=("a",)), DataParams(splits={"train": "t.txt"})]
    assert len({p.digest() for p in params}) == 4
    assert DataParams().digest() == AUTO.digest()


PATHS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
CORNERS = st.floats(-50, 5000).map(lambda value: round(value, 3))
BOXES = st.builds(Box, st.integers(0, 80), CORNERS, CORNERS, CORNERS, CORNERS, st.booleans())
IMAGES = st.builds(
    Image,
    PATHS,
    st.text("0123456789abcdef", min_size=64, max_size=64),
    st.integers(1, 1 << 40),
    st.integers(1, 20000),
    st.integers(1, 20000),
    st.sampled_from(["train", "val", "test"]),
    st.lists(BOXES, max_size=4).map(tuple),
)
MANIFESTS = st.builds(
    Manifest,
    st.lists(PATHS, min_size=1, max_size=4).map(tuple),
    st.lists(IMAGES, max_size=6, unique_by=lambda image: image.path).map(in_order),
    PATHS,
    st.text("0123456789abcdef", max_size=64),
)


@given(MANIFESTS)
def test_a_manifest_reads_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, manifest: Manifest) -> None:
    path = tmp_path_factory.mktemp("manifest") / "manifest.jsonl"
    write_manifest(path, manifest)
    assert read_manifest(path) == manifest
    assert sha256_file(path) == manifest.version()


def test_bccd_has_the_counts_that_its_authors_give(tmp_path: Path, bccd: Path, bccd_params: DataParams) -> None:
    manifest, findings = build_manifest(bccd, bccd_params, tmp_path / "cache.json", untracked)
    assert manifest.num_images() == {"train": 205, "val": 87, "test": 72}
    assert manifest.num_boxes() == {"RBC": 4155, "WBC": 372, "Platelets": 361}
    assert Counter((image.width, image.height) for image in manifest.images) == {(640, 480): 364}
    assert findings == []
    again, _ = build_manifest(bccd, bccd_params, tmp_path / "cache.json", untracked)
    assert again.version() == manifest.version()


def test_samples_without_a_split_are_divided_by_hash(tmp_path: Path) -> None:
    source = write_voc_dataset(tmp_path / "data", [Sample(f"{number:03}") for number in range(60)])
    (source / "ImageSets" / "Main" / "train.txt").unlink()
    manifest, _ = build(source)
    assert manifest.split_rule == "val (15%) and test (15%) taken by hash of the path without suffix"
    assert all(manifest.num_images().values())
