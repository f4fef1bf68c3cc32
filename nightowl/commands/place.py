"""Where a command was called: the checkout around the current folder, and the detector that was named."""

from pathlib import Path

from nightowl.errors import ParamsError, did_you_mean
from nightowl.night.checkout import checkout_root
from nightowl.params import detector_names
from nightowl.settings import Settings, load_settings
from nightowl.stages.workspace import Workspace


def settings_here() -> Settings:
    """The settings of the checkout around the current folder. Raises UserError outside one."""
    return load_settings(checkout_root(Path.cwd()))


def workspace_of(name: str) -> Workspace:
    """The named detector's workspace. Raises ParamsError for a name that params.yaml does not list."""
    root = checkout_root(Path.cwd())
    known = detector_names(root)
    if name not in known:
        raise ParamsError(
            f"{root / 'params.yaml'}: no detector {name!r} in its list `detectors` ({', '.join(known) or 'empty'})"
            f"{did_you_mean(name, known)}; "
            f"`nightowl init {name} --source PATH` makes one"
        )
    return Workspace(root, name, load_settings(root))
