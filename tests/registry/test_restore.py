"""What comes back from the registry: the champion for tonight, the inputs of a past night."""

from pathlib import Path

import pytest

from nightowl.data.blobs import BlobStore
from nightowl.errors import RegistryError
from nightowl.evaluation.champion import read_champion
from nightowl.files import sha256_bytes
from nightowl.registry.restore import champion_record, fetch_champion_blobs, reference_record, restore_inputs
from nightowl.registry.store import Registry
from nightowl.training.base import BaseWeights
from tests.bundles import Made, new_registry, registered

ONE = Made(night="night-1", weights=b"one")


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """One version, which is champion."""
    made = new_registry(tmp_path / "home")
    registered(made, tmp_path, ONE)
    made.promote("demo", "1", "first", by="tester")
    return made


def test_the_champion_is_pinned_with_its_digests(registry: Registry) -> None:
    champion = champion_record(registry, "demo")
    assert champion is not None
    assert (champion.version, champion.night_key, champion.classes) == ("1", "key of night-1", ("open",))
    assert champion.weights_sha256 == sha256_bytes(b"one")
    assert champion_record(registry, "another") is None
    assert reference_record(registry, "demo") == champion
    assert reference_record(registry, "another") is None


def test_the_champions_files_come_into_the_blob_store_once(registry: Registry, tmp_path: Path) -> None:
    champion = champion_record(registry, "demo")
    assert champion is not None
    for _ in range(2):
        fetch_champion_blobs(registry, champion, tmp_path / "blobs")
    store = BlobStore(tmp_path / "blobs")
    assert store.path_of(champion.weights_sha256).read_bytes() == b"one"
    assert store.path_of(champion.onnx_sha256).read_bytes() == b"onnx of one"


def test_a_clean_clone_gets_the_inputs_of_a_version(registry: Registry, tmp_path: Path) -> None:
    restore_inputs(registry, "demo", "champion", tmp_path / "clone")
    restored = tmp_path / "clone" / "inputs" / "demo"
    pinned = tmp_path / "night-1-0" / "night" / "inputs"
    names = [
        "base.json",
        "champion.json",
        "decisions.json",
        "findings.json",
        "golden.txt",
        "manifest.jsonl",
        "previous.json",
        "reference.json",
        "slices.json",
    ]
    assert sorted(path.name for path in restored.iterdir()) == names
    assert [(restored / name).read_bytes() for name in names] == [(pinned / name).read_bytes() for name in names]


def test_a_night_against_a_champion_comes_back_with_its_files(registry: Registry, tmp_path: Path) -> None:
    champion = champion_record(registry, "demo")
    assert champion is not None
    reference = champion.model_copy(update={"version": "1"})
    warm = BaseWeights(kind="champion", name="champion", sha256=champion.weights_sha256)
    registered(registry, tmp_path, Made(night="night-2", weights=b"two", champion=champion, reference=reference, base=warm))
    restore_inputs(registry, "demo", "2", tmp_path / "clone")
    assert read_champion(tmp_path / "clone" / "inputs" / "demo" / "champion.json") == champion
    assert read_champion(tmp_path / "clone" / "inputs" / "demo" / "reference.json") == reference
    store = BlobStore(registry.home / "blobs")
    assert store.path_of(champion.weights_sha256).read_bytes() == b"one"
    assert store.path_of(champion.onnx_sha256).read_bytes() == b"onnx of one"


def test_a_warm_start_from_weights_that_nobody_registered_is_said_and_nothing_is_written(
    registry: Registry, tmp_path: Path
) -> None:
    lost = BaseWeights(kind="champion", name="champion", sha256="f" * 64)
    registered(registry, tmp_path, Made(night="night-2", weights=b"two", base=lost))
    with pytest.raises(RegistryError, match="base weights ffffffffffff are of a champion that is no longer registered"):
        restore_inputs(registry, "demo", "2", tmp_path / "clone")
    assert not (tmp_path / "clone" / "inputs").exists()


def test_a_damaged_bundle_leaves_the_inputs_as_they_were(registry: Registry, tmp_path: Path) -> None:
    inputs = tmp_path / "clone" / "inputs" / "demo"
    inputs.mkdir(parents=True)
    (inputs / "manifest.jsonl").write_text("pinned before")
    (stored,) = (tmp_path / "home" / "registry" / "artifacts").rglob("manifest.jsonl")
    stored.write_bytes(b"flipped")
    with pytest.raises(RegistryError, match=r"inputs/manifest\.jsonl is damaged"):
        restore_inputs(registry, "demo", "1", tmp_path / "clone")
    assert (inputs / "manifest.jsonl").read_text() == "pinned before"


def test_what_a_champion_found_when_it_was_made_comes_with_it(tmp_path: Path) -> None:
    made = new_registry(tmp_path / "home")
    registered(made, tmp_path, Made(detections=b"a table"))
    made.promote("demo", "1", "first", by="tester")
    champion = champion_record(made, "demo")
    assert champion is not None and champion.detections_sha256 == sha256_bytes(b"a table")
    fetch_champion_blobs(made, champion, tmp_path / "blobs")
    store = BlobStore(tmp_path / "blobs")
    assert store.path_of(champion.detections_sha256).read_bytes() == b"a table"
    assert store.path_of(champion.dataset_version).read_bytes() == b"{}\n"
