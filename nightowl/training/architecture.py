"""The detector architectures that ultralytics describes, read from its YAML files without importing it (or torch).

A name is `FAMILY[SCALE].yaml`: `yolo11n.yaml` is `yolo11.yaml` at the scale n.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ruamel.yaml import YAML

from nightowl.errors import WeightsError

# The heads that find boxes of classes fixed in training; others segment, classify, or need a text prompt.
DETECTION_HEADS = ("Detect", "v10Detect")
_NAME = re.compile(r"(?P<family>yolov?\d+)(?P<scale>[a-z]?)(?P<variant>-[a-z0-9-]+)?\.yaml")


def architecture(name: str) -> Mapping[str, object]:
    """The model description for `name`, with its scale filled in, as ultralytics takes it.

    Raises:
        WeightsError: when no detector of that name is known; the known ones are listed.
    """
    match = _NAME.fullmatch(name)
    if match:
        family = f"{match['family']}{match['variant'] or ''}.yaml"
        path = _files().get(name) or _files().get(family)
        scales = _scales(path) if path else ()
        if path and (match["scale"] in scales or not scales):
            return {**_read(path), "scale": match["scale"] if scales else "", "yaml_file": name}
    raise WeightsError(f"train.base: {name} is no detector architecture; known: {', '.join(_known())}")


@cache
def _files() -> dict[str, Path]:
    """Every file that describes a detector, by name."""
    spec = find_spec("ultralytics")
    assert spec is not None and spec.submodule_search_locations, "ultralytics is a dependency"
    models = Path(next(iter(spec.submodule_search_locations))) / "cfg" / "models"
    named = {path.name: path for path in sorted(models.rglob("*.yaml")) if _NAME.fullmatch(path.name)}
    return {name: path for name, path in named.items() if _head(_read(path)) in DETECTION_HEADS}


def _known() -> list[str]:
    """Every name that `architecture` takes, the scales of a family together: `yolo11[nsmlx].yaml`."""
    return sorted(_with_scales(name, "".join(_scales(path))) for name, path in _files().items())


def _with_scales(name: str, scales: str) -> str:
    match = _NAME.fullmatch(name)
    assert match is not None
    return f"{match['family']}[{scales}]{match['variant'] or ''}.yaml" if scales and not match["scale"] else name


def _scales(path: Path) -> tuple[str, ...]:
    scales = _read(path).get("scales")
    return tuple(scales) if isinstance(scales, dict) else ()


def _head(description: Mapping[str, object]) -> object:
    head = description.get("head")
    return head[-1][2] if isinstance(head, list) and head else None


@cache
def _read(path: Path) -> dict[str, object]:
    values = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    assert isinstance(values, dict), f"{path} is part of ultralytics"
    return {str(key): value for key, value in values.items()}
