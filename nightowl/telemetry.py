"""Telemetry off, in every library that has some: nothing is sent anywhere that the user did not name.

The libraries read these variables when they are imported, so this is called first by every entry point. What the user set
by hand is left alone.
"""

import os

_OFF = {
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "YOLO_AUTOINSTALL": "false",
    "YOLO_OFFLINE": "1",
}


def turn_telemetry_off() -> None:
    for name, value in _OFF.items():
        os.environ.setdefault(name, value)
