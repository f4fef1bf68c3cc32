"""What `dvc.yaml` says, read as data: the stages of a detector, in order, and the code that they depend on."""

from pathlib import Path

from dvc.repo import Repo
from ruamel.yaml import YAML


def stage_names(root: Path) -> list[str]:
    """The stages in the order of `dvc.yaml`, without the detector."""
    return list(_stages(root))


def code_paths(root: Path, detector: str) -> list[str]:
    """Every dependency of the detector's stages that is code: neither pinned nor made by a stage."""
    found = {
        dependency.replace("${item}", detector)
        for stage in _stages(root).values()
        for dependency in stage["do"]["deps"]
        if not dependency.startswith(("inputs/", "out/"))
    }
    return sorted({"dvc.yaml", *found})


def share_cache(root: Path, tree: Path) -> bool:
    """Give the working tree at `tree` the cache and remotes of the checkout at `root`; returns whether there is a remote.

    DVC resolves relative paths against the file they stand in, so they are written out as absolute ones.
    """
    with Repo(str(root)) as repo:
        cache, config = repo.cache.local_cache_dir, repo.config
        remotes = {name: dict(values) for name, values in config["remote"].items()}
        default = config["core"].get("remote")
    lines = [*(["[core]", f"    remote = {default}"] if default else []), "[cache]", f"    dir = {cache}"]
    for name, values in remotes.items():
        lines += [f"['remote \"{name}\"']", *(f"    {key} = {value}" for key, value in values.items())]
    local = tree / ".dvc" / "config.local"
    local.touch(mode=0o600)  # a remote may hold credentials
    local.write_text("\n".join(lines) + "\n")
    return default is not None


def _stages(root: Path) -> dict[str, dict[str, dict[str, list[str]]]]:
    text = (root / "dvc.yaml").read_text(encoding="utf-8")
    stages: dict[str, dict[str, dict[str, list[str]]]] = YAML(typ="safe", pure=True).load(text)["stages"]
    return stages
