"""A split of a dataset version, ready to be read: built where it is not."""

import sys
from pathlib import Path
from typing import Literal

from nightowl.data.cache.build import Means, build_cache
from nightowl.data.cache.forecast import gigabytes
from nightowl.data.cache.forms import Form
from nightowl.data.cache.packed import PackedImages
from nightowl.data.cache.place import FOLDER
from nightowl.data.cache.prune import prune
from nightowl.data.cache.reading import open_packed
from nightowl.data.cache.recipe import Origin, Recipe
from nightowl.data.manifest import Manifest
from nightowl.params import PrepareParams
from nightowl.settings import Settings, home_of

DAY_SECONDS = 86_400


def open_cache(
    dataset: Manifest, split: Literal["train", "val"], source: Path, params: PrepareParams, settings: Settings
) -> PackedImages:
    """The images of `dataset.of(split)`, in that order, as `params` prepare them; their files lie under `source`.

    Where several ranks call it, the first builds, and the others find all there; what it returns can be sent to processes.

    Raises:
        DataError, StorageError: as `build_cache` does.
    """
    root, max_bytes = home_of(settings) / FOLDER, cache_max_bytes(settings)
    origin = Origin(dataset.of(split), source, recipe(params, split))
    index = build_cache(origin, root, Means(max_bytes, say=_say))
    packed = open_packed(index, origin)
    gone = prune(root, settings.cache_max_age_days * DAY_SECONDS, max_bytes)
    if gone.num_shards:
        _say(f"pruned {gigabytes(gone.num_bytes)} of prepared images that were not used lately")
    return packed


def cache_max_bytes(settings: Settings) -> int | None:
    """What all prepared images may take, in bytes; None for no limit but the disk's."""
    return None if settings.cache_max_gb is None else int(settings.cache_max_gb * 1e9)


def recipe(params: PrepareParams, split: Literal["train", "val"]) -> Recipe:
    """Training images as ultralytics scales them, in the form that params name; those of val exactly as letterbox would
    have them, and always raw, so that a figure of val is one of the pixels that are shipped."""
    if split == "val":
        return Recipe(params.image_size, "letterbox", Form("raw"))
    form = Form("raw") if params.cache == "raw" else Form("jpeg", params.jpeg_quality)
    return Recipe(params.image_size, "load_image", form)


def _say(line: str) -> None:
    print(line, file=sys.stderr)
