"""Base weights, pinned by digest before a night: found, or named as missing with what to do; never replaced in silence.

Weights are kept by their digest in the home, so a record says nothing of the machine it was made on, and a night does not
depend on a folder that somebody may tidy up.
"""

from pathlib import Path

from nightowl.data.blobs import BlobStore
from nightowl.errors import WeightsError
from nightowl.settings import Settings, home_of
from nightowl.training.architecture import architecture
from nightowl.training.base import BaseWeights

CHAMPION = "champion"
_OTHER_TASKS = ("seg", "obb", "pose", "cls", "sem", "depth")
_EXAMPLE = "yolo11n"


def pin_base(base: str, settings: Settings, champion_sha256: str | None, root: Path | None = None) -> BaseWeights:
    """What `params.train.base` names, by digest. `root` is the checkout that a relative path starts from (default: here).

    A .pt is looked for in the weights folder, then as a path; a published name is downloaded where settings allow it.

    Raises:
        WeightsError: when it cannot be had, or is no detector's; it says where it was looked for and what to do.
    """
    _refuse_other_tasks(base)
    if base == CHAMPION:
        return BaseWeights(kind="champion", name=CHAMPION, sha256=_champion(champion_sha256))
    if base.endswith(".yaml"):
        architecture(base)
        return BaseWeights(kind="yaml", name=base, sha256=None)
    if not base.endswith(".pt"):
        raise WeightsError(f"train.base: {base}: expected NAME.yaml (random weights), a .pt file, or `{CHAMPION}`")
    path = _found(base, settings, root or Path.cwd())
    return BaseWeights(kind="file", name=path.name, sha256=_blobs(settings).put(path))


def base_file(base: BaseWeights, settings: Settings) -> Path | None:
    """The pinned weights' file, compared with its digest; None for a YAML. Raises WeightsError when gone or altered."""
    if base.sha256 is None:
        return None
    return _blobs(settings).verified_path(base.sha256, f"base weights {base.name}")


def _blobs(settings: Settings) -> BlobStore:
    return BlobStore(home_of(settings) / "blobs")


def _champion(sha256: str | None) -> str:
    if sha256 is None:
        raise WeightsError(
            f"train.base: {CHAMPION}, but this detector has no champion yet; for its first night set train.base: "
            f"{_EXAMPLE}.pt (published weights) or {_EXAMPLE}.yaml (random weights)"
        )
    return sha256


def _refuse_other_tasks(base: str) -> None:
    first, *parts = Path(base).stem.split("-")
    if Path(base).suffix in (".pt", ".yaml") and set(parts) & set(_OTHER_TASKS):
        raise WeightsError(
            f"train.base: {base}: nightowl trains detectors only, and these weights are for another task "
            f"({', '.join('-' + task for task in _OTHER_TASKS)}); use {first or _EXAMPLE}{Path(base).suffix}"
        )


def _found(base: str, settings: Settings, root: Path) -> Path:
    assert settings.weights is not None, "settings come from load_settings"
    places = list(dict.fromkeys([settings.weights / base, root / base]))
    for place in places:
        if place.is_file():
            return place
    reason = "it is a path, so it was not downloaded"
    if Path(base).name == base:
        reason = "downloads are off (setting allow_downloads)"
        if settings.allow_downloads:
            try:
                return _download(base, settings.weights)
            except WeightsError as error:
                reason = str(error)
    looked = " and ".join(map(str, places))
    raise WeightsError(
        f"train.base: {base} could not be had: not at {looked}; {reason}. Put the file into {settings.weights}, or set "
        f"train.base: {_random_of(base)} to start from random weights"
    )


def _download(name: str, folder: Path) -> Path:
    from nightowl.training.yolo import download_weights  # it imports torch, which pinning does without

    return download_weights(name, folder)


def _random_of(base: str) -> str:
    """The architecture of the same name where there is one."""
    name = f"{Path(base).stem}.yaml"
    try:
        architecture(name)
    except WeightsError:
        return f"{_EXAMPLE}.yaml"
    return name
