"""What a training starts from, read alike by the stage and by each of its ranks."""

from pathlib import Path

import nightowl
from nightowl.checkpoint.identity import Identity
from nightowl.data.cache.opening import open_cache
from nightowl.data.manifest import Image, Manifest, Split, read_manifest
from nightowl.data.source import source_folder
from nightowl.data.tiling import in_views
from nightowl.errors import DataError
from nightowl.files import sha256_file
from nightowl.params import Params
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights, read_base
from nightowl.training.identity import training_identity
from nightowl.training.job import Job
from nightowl.training.sources import imported_sources

# The packages whose source decides what is trained; of them counts what is imported from here on.
_PACKAGES = ("nightowl.data", "nightowl.evaluation", "nightowl.training")
# Where data lies: images are held to their pinned digests, wherever they are read from.
_NO_PART_IN_IT = ("nightowl.data.source",)
_WHY: dict[Split, str] = {"train": "there is nothing to learn from", "val": "no epoch could be chosen"}


def pinned(workspace: Workspace) -> tuple[BaseWeights, Manifest]:
    """Base weights and data set. Raises WeightsError, DataError when they are not there, or cannot be trained on."""
    base, dataset = read_base(workspace.base), read_manifest(workspace.dataset)
    for split, why in _WHY.items():
        _check(dataset.of(split), split, why)
    return base, dataset


def identity_of(params: Params, workspace: Workspace, base: BaseWeights) -> Identity:
    code = imported_sources(Path(__file__), Path(nightowl.__file__).parent.parent, _PACKAGES, _NO_PART_IN_IT)
    return training_identity(sha256_file(workspace.dataset), params, base, code)


def prepared(params: Params, workspace: Workspace, dataset: Manifest, base: BaseWeights) -> Job:
    """The training, with its images in the prepared cache, which this fills where it lacks some. Raises DataError."""
    settings = workspace.settings
    source = source_folder(settings, workspace.detector)
    views = in_views(dataset, params.prepare.tiling)
    train, val = (open_cache(views, split, source, params.prepare, settings) for split in ("train", "val"))
    return Job(params, settings, dataset, views, base, train, val)


def _check(images: tuple[Image, ...], split: Split, why: str) -> None:
    if not images:
        raise DataError(f"{split}: expected images, found none: {why}; give this split some (params: data.split)")
    if not any(not box.ignore for image in images for box in image.boxes):
        raise DataError(f"{split}: expected boxes, found none on {len(images)} images: {why}; label some of them")
