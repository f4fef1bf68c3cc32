"""A source folder pinned as a manifest: every image's digest, size, split and labels, and every fault of reading it.

Pinning unchanged data again opens no image: the stat cache stands for the content. An image that cannot be read is left out of
the manifest and is in the findings, where it counts as quarantined.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from nightowl.data.dataset import SourceDataset, assemble
from nightowl.data.findings import Finding
from nightowl.data.formats.detect import list_source
from nightowl.data.golden import GoldenImage, with_golden
from nightowl.data.images import size_of_bytes
from nightowl.data.manifest import Image, Manifest, in_order
from nightowl.data.stat_cache import Facts, Known, Stamp, load_known, save_known, stamp_of
from nightowl.data.threads import in_threads
from nightowl.errors import DataError
from nightowl.files import read_regular
from nightowl.params import DataParams
from nightowl.progress import Track, track


def build_manifest(
    source: Path, params: DataParams, cache: Path, progress: Track = track, golden: Sequence[GoldenImage] = ()
) -> tuple[Manifest, list[Finding]]:
    """The manifest of `source` under `params`, and what is wrong with it. `cache` is a file that this may replace; `golden`
    images are test, whatever the split says.

    Raises:
        DataError: when the source cannot be used at all (see `list_source` and `take_splits`).
    """
    listing = list_source(source, params)
    facts = measure(source, sorted({image.path for image in listing.images}), cache, progress)
    sizes = {path: known if isinstance(known, str) else known.size for path, known in facts.items()}
    dataset = assemble(source, listing, sizes, params.split)
    manifest, missing = with_golden(_manifest(dataset, facts, params.digest()), golden)
    return manifest, [*dataset.findings, *missing]


def measure(source: Path, paths: Sequence[str], cache: Path, progress: Track) -> dict[str, Facts | str]:
    """The facts of each image, or what is wrong with it (without the path); files that `cache` knows are not opened."""
    known = load_known(cache, source)
    read = in_threads(lambda path: _measure_one(source, path, known), paths, "pinning images", progress)
    measured = dict(zip(paths, read, strict=True))
    renewed = {path: found for path, found in measured.items() if not isinstance(found, str)}
    if renewed != known:
        save_known(cache, source, renewed)
    return {path: found if isinstance(found, str) else found[1] for path, found in measured.items()}


def _measure_one(source: Path, path: str, known: Known) -> tuple[Stamp, Facts] | str:
    file = source / path
    try:
        stamp = stamp_of(file)
        before = known.get(path)
        if before is not None and before[0] == stamp:
            return before
        content = read_regular(file)
        return stamp, Facts(hashlib.sha256(content).hexdigest(), len(content), size_of_bytes(content, path))
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    except DataError as error:
        return str(error).removeprefix(f"{path}: ")


def _manifest(dataset: SourceDataset, facts: dict[str, Facts | str], digest: str) -> Manifest:
    images = []
    for image in dataset.images:
        known = facts[image.path]
        assert isinstance(known, Facts)
        images.append(Image(image.path, known.sha256, known.num_bytes, *image.size, image.split, image.boxes))
    return Manifest(dataset.classes, in_order(images), dataset.split_rule, digest)
