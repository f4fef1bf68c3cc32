"""Runs a nightowl model anywhere: this file, numpy, and model.onnx with onnxruntime, or model.xml with openvino, are enough.

It is a twin of the code that measured the model, and finds the same boxes; how the image was read is up to the caller. In every
bundle; it may be copied and changed under the licence of nightowl (AGPL-3.0).
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

GREY = 114


class Detector:
    """A model.onnx, or a model.xml with its .bin; `classes` are the names that class numbers stand for."""

    def __init__(self, path: str | Path) -> None:
        metadata, self._run = _on_openvino(str(path)) if str(path).endswith(".xml") else _on_onnxruntime(str(path))
        self._model, self._limits, operating = (
            json.loads(metadata[f"nightowl.{part}"]) for part in ("model", "limits", "operating")
        )
        self.classes: list[str] = self._model["classes"]
        self.thresholds = _thresholds(operating)

    def __call__(self, image_rgb: Any, thresholds: Any = None) -> list[tuple[str, float, list[float]]]:
        """What is found on an image (H, W, 3) uint8, RGB, upright, best first: class, confidence, and x1, y1, x2, y2 in its
        pixels. `thresholds`: one a class; None takes the model's own. Raises ValueError where it has none, or says NaN."""
        least = self.thresholds if thresholds is None else np.asarray(thresholds, np.float32)
        if least is None:
            raise ValueError("the model has no operating point; give thresholds")
        boxes, scores, ids = self._merged([self._tile(image_rgb, *window) for window in self._windows(*image_rgb.shape[:2])])
        counts = scores >= least[ids]
        rows = zip(ids[counts], scores[counts], boxes[counts], strict=True)
        return [(self.classes[number], float(score), box.tolist()) for number, score, box in rows]

    def _windows(self, height: int, width: int) -> Iterator[tuple[int, int, int, int]]:
        """x, y, width and height of each part of the image that the network sees at once."""
        tiling = self._model["tiling"]
        if tiling is None:
            yield 0, 0, width, height
            return
        size = tiling["size_px"]
        step = max(round(size * (1 - tiling["overlap"])), 1)
        across, down = ([*range(0, max(side - size, 0), step), max(side - size, 0)] for side in (width, height))
        for y in down:
            yield from ((x, y, min(size, width), min(size, height)) for x in across)

    def _tile(self, image_rgb: Any, x: int, y: int, width: int, height: int) -> tuple[Any, Any, Any]:
        side = self._model["image_size"]
        tensor, scale, padding = letterbox(image_rgb[y : y + height, x : x + width], side)
        (output,) = self._run(tensor[None])
        if not np.isfinite(output).all():
            raise ValueError("the model's output holds NaN or infinity; it is broken")
        boxes, scores, ids = self._decoded(np.asarray(output, np.float32))
        boxes = np.clip((boxes - np.tile(padding, 2)) / np.tile(scale, 2), 0, np.array([width, height] * 2, np.float32))
        return (boxes + np.array([x, y, x, y], np.float32)).astype(np.float32), scores, ids

    def _decoded(self, output: Any) -> tuple[Any, Any, Any]:
        """Boxes (N, 4) in pixels of the network's input, scores, class numbers, best first."""
        limits = self._limits
        floor = np.float32(limits["confidence_floor"])
        if self._model["head"] == "end2end":
            rows = output[output[:, 4] > floor]
            rows = rows[np.argsort(-rows[:, 4], kind="stable")][: limits["max_detections"]]
            return rows[:, :4], rows[:, 4], rows[:, 5].astype(int)
        boxes, scores = output[:4].T, output[4:].T
        anchor, ids = np.nonzero(scores > floor)
        order = np.argsort(-scores[anchor, ids], kind="stable")[:30_000]
        anchor, ids = anchor[order], ids[order]
        centre, half = boxes[anchor, :2], boxes[anchor, 2:] / np.float32(2)
        corners = np.concatenate([centre - half, centre + half], axis=1)
        kept = suppressed(corners, ids, limits["nms_iou"], limits["max_detections"])
        return corners[kept], scores[anchor, ids][kept], ids[kept]

    def _merged(self, tiles: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
        """Boxes of several tiles as those of one image: what lies in another tile and overlaps is one object."""
        if len(tiles) == 1:
            return tiles[0]
        tiling = self._model["tiling"]
        boxes, scores, ids = (np.concatenate(parts) for parts in zip(*tiles, strict=True))
        tile = np.repeat(np.arange(len(tiles)), [len(found[1]) for found in tiles])
        order = np.argsort(-scores, kind="stable")
        boxes, scores, ids, tile = boxes[order], scores[order], ids[order], tile[order]
        kept: list[int] = []
        for number in np.unique(ids):
            left = np.flatnonzero(ids == number)
            while len(left):
                best, left = left[0], left[1:]
                kept.append(int(best))
                same = (tile[left] != tile[best]) & (_part_of_smaller(boxes[best], boxes[left]) >= tiling["merge_overlap"])
                if tiling["merge"] == "union" and same.any():
                    taken = boxes[left[same]]
                    boxes[best, :2] = np.minimum(boxes[best, :2], taken[:, :2].min(axis=0))
                    boxes[best, 2:] = np.maximum(boxes[best, 2:], taken[:, 2:].max(axis=0))
                left = left[~same]
        chosen = np.sort(np.array(kept, int))[: self._limits["max_detections"]]
        return boxes[chosen], scores[chosen], ids[chosen]


def _on_onnxruntime(path: str) -> tuple[Mapping[str, str], Callable[[Any], Any]]:
    """The metadata of a model.onnx, and a call from its input to its output."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return session.get_modelmeta().custom_metadata_map, lambda batch: session.run(None, {name: batch})[0]


def _on_openvino(path: str) -> tuple[Mapping[str, str], Callable[[Any], Any]]:
    """The same of a model.xml; in float32 as it was measured, where OpenVINO would round to bfloat16 on some processors."""
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    metadata = {name: str(value) for name, value in model.get_rt_info(["framework"]).value.items()}
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
    return metadata, lambda batch: compiled(batch)[0]


def letterbox(image_rgb: Any, side: int) -> tuple[Any, Any, Any]:
    """The image as the network's input (3, S, S) in 0..1, its scale (x, y), and where its corner lies there (x, y)."""
    height, width = image_rgb.shape[:2]
    scale = min(side / height, side / width)
    inner = max(round(width * scale), 1), max(round(height * scale), 1)
    x, y = (round((side - length) / 2 - 0.1) for length in inner)
    square = np.full((side, side, 3), GREY, np.uint8)
    square[y : y + inner[1], x : x + inner[0]] = resized(image_rgb, *inner)
    tensor = np.ascontiguousarray(square.transpose(2, 0, 1)).astype(np.float32) / np.float32(255)
    scales = np.array([inner[0] / width, inner[1] / height], np.float32)
    return tensor, scales, np.array([x, y], np.float32)


def resized(image: Any, width: int, height: int) -> Any:
    """Bilinear in whole numbers (weights of 2048ths), to the bit as OpenCV 5.0's INTER_LINEAR has it on uint8."""
    if image.shape[:2] == (height, width):
        return image
    left, right, of_left, of_right = _places(image.shape[1], width)
    low, high, of_low, of_high = _places(image.shape[0], height, beyond=True)
    pixels = image.astype(np.int32)
    wide = (pixels[:, left] * of_left[:, None] + pixels[:, right] * of_right[:, None]) >> 4
    lower, upper = ((wide[at] * part[:, None, None]) >> 16 for at, part in ((low, of_low), (high, of_high)))
    return ((lower + upper + 2) >> 2).astype(np.uint8)


def _places(before: int, after: int, beyond: bool = False) -> tuple[Any, Any, Any, Any]:
    """For each pixel of the new side, the old ones before and after it, and the weight of each. At the ends one pixel counts
    whole, or, where weights reach `beyond`, twice."""
    at = ((np.arange(after) + 0.5) * (1 / (after / before)) - 0.5).astype(np.float32)
    low = np.floor(at).astype(int)
    part = at - low.astype(np.float32)
    if not beyond:
        part = np.where((low < 0) | (low >= before - 1), np.float32(0), part)
    weights = (np.rint(each * np.float32(2048)).astype(np.int32) for each in (1 - part, part))
    return np.clip(low, 0, before - 1), np.clip(low + 1, 0, before - 1), *weights


def suppressed(boxes: Any, ids: Any, iou: float, most: int) -> Any:
    """Which boxes (sorted, best first) stay: of two of a class that overlap by more than `iou`, the better one."""
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left, kept = np.arange(len(boxes)), list[int]()
    while len(left) and len(kept) < most:
        best, left = left[0], left[1:]
        kept.append(int(best))
        sides = np.minimum(boxes[best, 2:], boxes[left, 2:]) - np.maximum(boxes[best, :2], boxes[left, :2])
        overlap = np.prod(np.maximum(sides, 0), axis=1)
        with np.errstate(invalid="ignore"):
            too_close = overlap / (areas[best] + areas[left] - overlap) > np.float64(iou)
        left = left[~too_close | (ids[left] != ids[best])]
    return np.array(kept, int)


def _part_of_smaller(box: Any, others: Any) -> Any:
    sides = np.maximum(np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2]), 0)
    smaller = np.minimum(np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], axis=1))
    return np.divide(np.prod(sides, axis=1), smaller, out=np.zeros(len(others), np.float32), where=smaller > 0)


def _thresholds(operating: dict[str, Any]) -> Any:
    """One a class: its own, or the overall one; None when there is none."""
    overall = operating["overall"]
    found = [overall if each["confidence"] is None else each["confidence"] for each in operating["classes"]]
    return None if overall is None else np.array(found, np.float32)


def main(arguments: list[str]) -> None:
    """Print what the model beside this file finds on image files, a line of JSON each. Ends with 2 when one cannot be read."""
    parser = argparse.ArgumentParser(description="Print what the model finds on images, a line of JSON each.")
    parser.add_argument("images", nargs="+", metavar="IMAGE")
    parser.add_argument("--confidence", type=float, help="from where a detection counts, 0 to 1; default: the model's own")
    asked = parser.parse_args(arguments)
    if asked.confidence is not None and not 0 <= asked.confidence <= 1:
        parser.error(f"--confidence: expected 0 to 1, got {asked.confidence:g}")
    detector = Detector(Path(__file__).parent / "model.onnx")
    if asked.confidence is None and detector.thresholds is None:
        parser.error("the model has no operating point; say from where a detection counts: --confidence 0.25")
    thresholds = None if asked.confidence is None else [asked.confidence] * len(detector.classes)
    unread = 0
    for name in asked.images:
        try:
            found = detector(_read(name), thresholds)
        except OSError as error:
            unread += 1
            print(json.dumps({"image": name, "error": str(error)}))
            continue
        rows = [{"class": label, "confidence": round(score, 4), "box_xyxy": box} for label, score, box in found]
        print(json.dumps({"image": name, "detections": rows}))
    if unread:
        sys.exit(2)


def _read(name: str) -> Any:
    """An image file, by Pillow, upright, as (H, W, 3) RGB; of 16 bits a channel the upper 8. Raises OSError."""
    from PIL import Image, ImageOps

    with Image.open(name) as opened:
        image = ImageOps.exif_transpose(opened)
        if image.mode.startswith("I;16"):
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        return np.asarray(image.convert("RGB"))


if __name__ == "__main__":
    main(sys.argv[1:])
