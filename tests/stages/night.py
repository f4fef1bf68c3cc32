"""A workspace in which prepare and train have run, for the stages that come after: tiny images, a tiny model."""

from pathlib import Path

import cv2
import numpy as np
import torch

from nightowl.data.manifest import Box, Image, Manifest, in_order, write_manifest
from nightowl.evaluation.champion import ChampionRecord, write_champion
from nightowl.files import sha256_file, write_atomic, write_record
from nightowl.params import EvaluateParams, Params
from nightowl.settings import Settings
from nightowl.stages.workspace import Workspace
from tests.tiny import CLASSES, tiny_card, tiny_module

# Fewer candidates than a night keeps: random weights find something everywhere.
PARAMS = Params(evaluate=EvaluateParams(confidence_floor=0.3))


def a_night(root: Path, classes: tuple[str, ...] = CLASSES) -> Workspace:
    """Six labelled images each in val and test under `root`/source; the weights are a stand-in file of their own digest."""
    source = root / "source"
    source.mkdir()
    settings = Settings(home=root / "home", sources={"demo": str(source)}, device="cpu")
    workspace = Workspace(root, "demo", settings)
    random = np.random.default_rng(0)
    images = [_image(source, f"{split}-{index}.png", split, random) for split in ("val", "test") for index in range(6)]
    write_manifest(workspace.dataset, Manifest(classes, in_order(images), "given"))
    write_atomic(workspace.weights, b"weights")
    record = tiny_card().model.model_copy(update={"weights_sha256": sha256_file(workspace.weights), "classes": classes})
    write_record(workspace.model, record)
    for path, content in ((workspace.champion, "null\n"), (workspace.reference, "null\n"), (workspace.decisions, "[]\n")):
        write_atomic(path, content)
    return workspace


def crown(
    workspace: Workspace, onnx: Path, classes: tuple[str, ...] = CLASSES, reference: ChampionRecord | None = None
) -> ChampionRecord:
    """Pin the exported file as version 3 of the detector, and a reference."""
    from nightowl.data.blobs import BlobStore

    assert workspace.settings.home is not None
    champion = ChampionRecord(
        detector="demo",
        version="3",
        night_key="k",
        classes=classes,
        image_size=tiny_card().model.image_size,
        weights_sha256="9" * 64,
        onnx_sha256=BlobStore(workspace.settings.home / "blobs").put(onnx),
        dataset_version="1" * 64,
    )
    write_champion(workspace.champion, champion)
    write_champion(workspace.reference, reference or champion)
    return champion


def load_tiny(path: Path, sha256: str) -> torch.nn.Module:
    """Stands in for loading a trained `.pt`: the digest is checked, the module is the tiny one."""
    assert sha256_file(path) == sha256
    return tiny_module()


def _image(source: Path, name: str, split: str, random: np.random.Generator) -> Image:
    pixels = cv2.resize(random.integers(0, 256, (6, 6, 3), np.uint8), (120, 96), interpolation=cv2.INTER_NEAREST)
    cv2.imwrite(str(source / name), pixels)
    boxes = tuple(Box(int(random.integers(0, 3)), x, y, x + 20, y + 20) for x, y in random.integers(0, 70, (4, 2)).tolist())
    path = source / name
    return Image(name, sha256_file(path), path.stat().st_size, 120, 96, split, boxes)  # type: ignore[arg-type]
