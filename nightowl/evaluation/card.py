"""The card that travels inside an exported model: what it is, how its input is made, from where a detection counts.

Kept as ONNX metadata, a key each, so that a file alone is enough to run it as it was measured.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from nightowl.errors import WeightsError
from nightowl.evaluation.model_file import ModelRecord
from nightowl.evaluation.operating import OperatingPoint
from nightowl.params import EvaluateParams
from nightowl.records import Record

PREFIX = "nightowl."


class InputRule(Record):
    """What the network expects to see."""

    layout: Literal["NCHW"] = "NCHW"
    colour: Literal["RGB"] = "RGB"
    scale: str = "1/255, float32"
    letterbox: str = "keep the aspect ratio (scaling up too), bilinear, centred, padded with grey 114"


class ModelCard(Record):
    """All that is needed to run a model as it was measured; `limits` are those of its evaluation."""

    model: ModelRecord
    operating: OperatingPoint
    limits: EvaluateParams
    input: InputRule = InputRule()


def to_metadata(card: ModelCard) -> dict[str, str]:
    """The card as ONNX metadata, keys in order; `names`, `imgsz` and `task` are there for tools that know ultralytics' keys."""
    parts: dict[str, BaseModel] = {name: getattr(card, name) for name in ModelCard.model_fields}
    size = card.model.image_size
    return {
        **{PREFIX + name: part.model_dump_json() for name, part in parts.items()},
        "names": str(dict(enumerate(card.model.classes))),
        "imgsz": str([size, size]),
        "task": "detect",
    }


def from_metadata(path: Path, metadata: Mapping[str, str]) -> ModelCard:
    """The card inside the model file `path`. Raises WeightsError when it lacks one, or part of it."""
    missing = [PREFIX + name for name in ModelCard.model_fields if PREFIX + name not in metadata]
    if missing:
        found = ", ".join(sorted(metadata)) or "none"
        raise WeightsError(f"{path}: not exported by nightowl: its metadata lack {', '.join(missing)} (found: {found})")
    parts = ",".join(f'"{name}":{metadata[PREFIX + name]}' for name in ModelCard.model_fields)
    try:
        return ModelCard.model_validate_json(f"{{{parts}}}")
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"]))
        raise WeightsError(f"{path}: its metadata are not a model card: {where}: {fault['msg']}; export it again") from error
