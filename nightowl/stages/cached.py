"""Whose prepared images are whose: an index of the cache is named by content, a person knows detectors and dataset versions."""

from typing import Literal, NamedTuple

from nightowl.data.cache.opening import recipe
from nightowl.data.manifest import read_manifest
from nightowl.data.tiling import in_views
from nightowl.files import sha256_file
from nightowl.params import PrepareParams
from nightowl.stages.workspace import Workspace

_SPLITS: tuple[Literal["train", "val"], ...] = ("train", "val")


class Use(NamedTuple):
    """What prepared images are for. `dataset_version` is the pinned one, as a night says it."""

    detector: str
    split: Literal["train", "val"]
    dataset_version: str


def uses_of(workspace: Workspace, params: PrepareParams) -> dict[tuple[str, str], Use]:
    """By form and name of the index: what a training of the detector would open now. Empty before its data was prepared."""
    if not (workspace.manifest.exists() and workspace.dataset.exists()):
        return {}
    version = sha256_file(workspace.manifest)
    views = in_views(read_manifest(workspace.dataset), params.tiling)
    found = dict[tuple[str, str], Use]()
    for split in _SPLITS:
        made = recipe(params, split)
        found[made.form.name, made.key_of_all(views.of(split))] = Use(workspace.detector, split, version)
    return found
