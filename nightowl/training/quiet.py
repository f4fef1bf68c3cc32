"""Ultralytics kept quiet: no telemetry, no downloads by itself, no installing, no output, nothing written where users work.

It reads these variables when it is imported, so `silence` is called just before, and nowhere else.
"""

import atexit
import os
from functools import cache
from tempfile import TemporaryDirectory

_QUIET = {
    "DO_NOT_TRACK": "1",
    "YOLO_OFFLINE": "1",
    "YOLO_AUTOINSTALL": "false",
    "YOLO_VERBOSE": "false",
    # Weights are unpickled with weights_only and a list of known classes: a .pt cannot run code of its own.
    "ULTRALYTICS_SAFE_LOAD": "1",
}


@cache
def silence() -> TemporaryDirectory[str]:
    """Set the environment; returns the folder, gone when the process ends, that its settings file goes to.

    The folder is new each time: what somebody once set with `yolo settings` must not change what is trained here.
    """
    folder = TemporaryDirectory(prefix="nightowl-ultralytics-")
    atexit.register(folder.cleanup)
    os.environ.update(_QUIET)
    os.environ["YOLO_CONFIG_DIR"] = folder.name
    os.environ.setdefault("MPLCONFIGDIR", folder.name)
    return folder
