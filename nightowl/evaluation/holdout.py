"""Which test set a decision was made on, by what its images hold: its version, and how much of it another one shares.

A test set that grows by a few images each night is a new version each night, and still nearly the same evidence. So it carries
a sketch, the least digests of its images, from which the share that two test sets have in common is read (bottom-k MinHash,
Broder 1997): exact for small ones, else to about five points.
"""

from nightowl.data.manifest import Manifest
from nightowl.files import canonical_json, sha256_bytes
from nightowl.records import Record

_SKETCH_SIZE, _DIGITS = 100, 12
_SAME_FROM = 0.5


class Holdout(Record):
    """A test set. `version` changes with any image or label, `sketch` holds the least digests of its images, in order."""

    version: str
    num_images: int
    sketch: tuple[str, ...]


def holdout_of(dataset: Manifest) -> Holdout:
    """The test split of a dataset; where its files lie and what they are called does not count."""
    images = dataset.of("test")
    labelled = sorted([image.sha256, [list(box) for box in image.boxes]] for image in images)
    digests = sorted({image.sha256[:_DIGITS] for image in images})
    version = sha256_bytes(canonical_json([dataset.classes, labelled]).encode())
    return Holdout(version=version, num_images=len(images), sketch=tuple(digests[:_SKETCH_SIZE]))


def share_in_common(one: Holdout, other: Holdout) -> float:
    """Images in both over images in either, 0 to 1; two empty ones share nothing."""
    least = sorted({*one.sketch, *other.sketch})[:_SKETCH_SIZE]
    both = set(one.sketch) & set(other.sketch)
    return sum(digest in both for digest in least) / len(least) if least else 0.0


def is_same(one: Holdout, other: Holdout) -> bool:
    """Whether what was decided on one has used up the other: at least half of their images are in both."""
    return one.version == other.version or share_in_common(one, other) >= _SAME_FROM
