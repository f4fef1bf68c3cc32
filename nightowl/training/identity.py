"""All that decides a training's result, gathered: data, the params that bear on it, base weights, our code, libraries."""

from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from nightowl.checkpoint.identity import Identity, flat
from nightowl.files import sha256_file
from nightowl.params import Params
from nightowl.training.base import BaseWeights

_LIBRARIES = ("numba", "numpy", "opencv-python-headless", "torch", "ultralytics")


def training_identity(dataset_sha256: str, params: Params, base: BaseWeights, code: Iterable[Path]) -> Identity:
    """`code` are the source files that the training runs."""
    prepare = params.prepare.model_dump(mode="json", include={"image_size", "cache", "jpeg_quality", "tiling"})
    return Identity(
        dataset_sha256=dataset_sha256,
        params=flat({"prepare": prepare, "train": params.train.model_dump(mode="json")}),
        base=flat(base.model_dump(mode="json")),
        code={_name(file): sha256_file(file) for file in code},
        libraries={name: version(name) for name in _LIBRARIES},
    )


def _name(file: Path) -> str:
    """A source file's name from the package on: the same in every checkout."""
    parts = file.parts
    start = max((place for place, part in enumerate(parts) if part == "nightowl"), default=len(parts) - 2)
    return "/".join(parts[start:])
