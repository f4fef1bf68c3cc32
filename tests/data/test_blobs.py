import hashlib
from pathlib import Path

import pytest

from nightowl.data.blobs import BlobStore
from nightowl.errors import WeightsError


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "home" / "blobs")


def test_what_is_put_is_found_by_its_digest(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "best.pt").write_bytes(b"weights")
    sha256 = store.put(tmp_path / "best.pt")
    assert sha256 == hashlib.sha256(b"weights").hexdigest()
    assert store.has(sha256)
    assert store.path_of(sha256).read_bytes() == b"weights"
    assert store.verified_path(sha256, "base weights") == store.path_of(sha256)


def test_the_same_content_is_kept_once(store: BlobStore, tmp_path: Path) -> None:
    for name in ("a.pt", "b.pt"):
        (tmp_path / name).write_bytes(b"same")
        store.put(tmp_path / name)
    assert len(list(store.root.iterdir())) == 1


def test_a_failed_put_leaves_nothing(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        store.put(tmp_path / "absent.pt")
    assert list(store.root.iterdir()) == []


def test_altered_content_is_refused(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "best.pt").write_bytes(b"weights")
    sha256 = store.put(tmp_path / "best.pt")
    store.path_of(sha256).chmod(0o644)
    store.path_of(sha256).write_bytes(b"weightz")
    with pytest.raises(WeightsError, match=r"the champion was altered: expected sha256 .*delete the file"):
        store.verified_path(sha256, "the champion")


def test_absent_content_says_what_to_do(store: BlobStore) -> None:
    assert not store.has("0" * 64)
    with pytest.raises(WeightsError, match=r"base weights .* not there; pin the inputs again"):
        store.verified_path("0" * 64, "base weights")


@pytest.mark.parametrize("digest", ["", "../../etc/passwd", "A" * 64, "0" * 63])
def test_a_digest_cannot_name_another_folder(store: BlobStore, digest: str) -> None:
    with pytest.raises(ValueError, match="64 lower-case hex"):
        store.path_of(digest)
