"""The looks of a data set's images, each decoded once: what the store knows is read and checked, but not decoded."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from nightowl.data.images import verified_bytes
from nightowl.data.look import Look, look_at
from nightowl.data.look_store import LookStore
from nightowl.data.manifest import Image
from nightowl.data.threads import in_threads
from nightowl.errors import DataError
from nightowl.progress import Track, track


def looks_of(source: Path, images: Sequence[Image], store: LookStore, progress: Track = track) -> dict[str, Look | str]:
    """The look of each image by its path, or why it does not decode whole (without the path).

    Raises:
        DataError: when an image is gone, or is not the one that was pinned.
    """
    known = store.load({image.sha256 for image in images})
    found = in_threads(lambda image: _look(source, image, known), images, "verifying images", progress)
    store.add({image.sha256: look for image, look in zip(images, found, strict=True) if image.sha256 not in known})
    return dict(zip((image.path for image in images), found, strict=True))


def _look(source: Path, image: Image, known: Mapping[str, Look | str]) -> Look | str:
    """The look, or the fault without the path, as the same content may lie elsewhere tomorrow."""
    content = verified_bytes(source, image)
    before = known.get(image.sha256)
    if before is not None:
        return before
    try:
        return look_at(content, image.path)
    except DataError as error:
        return str(error).removeprefix(f"{image.path}: ")
