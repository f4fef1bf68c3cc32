"""Base weights, pinned by digest before a night: found, or named as missing with what to do; never replaced in silence.

Weights are kept by their digest in the home, so a record says nothing of the machine it was made on, and a night does not
depend on a folder that somebody may tidy up.
"""

import socket
from pathlib import Path
from urllib.request import getproxies

from nightowl.data.blobs import BlobStore
from nightowl.errors import WeightsError
from nightowl.settings import Settings, home_of
from nightowl.training.architecture import architecture
from nightowl.training.base import BaseWeights

CHAMPION = "champion"
_OTHER_TASKS = ("seg", "obb", "pose", "cls", "sem", "depth")
_EXAMPLE = "yolo11n"
_PUBLISHER, _PUBLISHER_SECONDS = "github.com", 10.0  # of what ultralytics publishes


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
    places = _places(base, settings, root)
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


def missing_base(base: str, settings: Settings, root: Path) -> str | None:
    """A sentence about base weights that are not on this machine: what the first night will do. None when nothing is amiss."""
    if not base.endswith(".pt") or any(place.is_file() for place in _places(base, settings, root)):
        return None
    if Path(base).name == base and settings.allow_downloads:
        return f"train.base: {base} is not in {settings.weights}; the first night downloads it, where ultralytics publishes it"
    return (
        f"train.base: {base} is not in {settings.weights} and is not downloaded: put it there before the first night, or set "
        f"train.base: {_random_of(base)} to start from random weights"
    )


def _places(base: str, settings: Settings, root: Path) -> list[Path]:
    """Where a .pt is looked for."""
    assert settings.weights is not None, "settings come from load_settings"
    return list(dict.fromkeys([settings.weights / base, root / base]))


def _require_publisher() -> None:
    """Raises WeightsError at once where nobody answers: the download itself would try for minutes. A proxy knows for itself."""
    if "https" in getproxies():
        return
    try:
        socket.create_connection((_PUBLISHER, 443), _PUBLISHER_SECONDS).close()
    except OSError as error:
        raise WeightsError(f"it was not downloaded: {_PUBLISHER} cannot be reached ({error})") from error


def _download(name: str, folder: Path) -> Path:
    _require_publisher()
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
