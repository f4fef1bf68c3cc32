"""Detections of one model on one set of images, as a table that is kept, so that later questions need no model.

The images that were looked at travel with it: one without any detection is there, and differs from one never looked at.
Boxes are `boxes_xyxy`, pixels of the image as seen, the same as in the manifest.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nightowl.errors import DataError
from nightowl.evaluation.postprocess import Found
from nightowl.files import write_atomic

_CORNERS = ("x1", "y1", "x2", "y2")


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """N detections: image_index (N,) into `images`, class_id (N,) into `classes`, score (N,), boxes_xyxy (N, 4)."""

    classes: tuple[str, ...]
    images: tuple[str, ...]
    image_index: NDArray[np.int32]
    class_id: NDArray[np.int32]
    score: NDArray[np.float32]
    boxes_xyxy: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.score)

    def select(self, mask: NDArray[np.bool_]) -> "Detections":
        """Those of a mask (N,); the images stay."""
        return replace(
            self,
            image_index=self.image_index[mask],
            class_id=self.class_id[mask],
            score=self.score[mask],
            boxes_xyxy=self.boxes_xyxy[mask],
        )

    def of_images(self, inside: NDArray[np.bool_]) -> "Detections":
        """Those on the images (I,) that are inside; the others are as if never looked at."""
        kept = self.select(inside[self.image_index])
        number = np.cumsum(inside, dtype=np.int32) - 1
        images = tuple(path for path, own in zip(self.images, inside, strict=True) if own)
        return replace(kept, images=images, image_index=number[kept.image_index])

    def from_confidence(self, confidence: float | NDArray[np.float32]) -> "Detections":
        """Those whose score reaches the threshold: one number, or one a class."""
        limit = confidence[self.class_id] if isinstance(confidence, np.ndarray) else confidence
        return self.select(np.asarray(self.score >= limit, np.bool_))

    def of_image(self, path: str) -> Found:
        """Those of one image, best first."""
        one = self.select(self.image_index == self.images.index(path))
        order = np.argsort(-one.score, kind="stable")
        return Found(one.boxes_xyxy[order], one.score[order], one.class_id[order])

    def with_classes(self, classes: tuple[str, ...]) -> "Detections":
        """The same detections under another class list, matched by name; those of classes not in it are left out."""
        place = {name: index for index, name in enumerate(classes)}
        renumber = np.array([place.get(name, -1) for name in self.classes], np.int32)
        known = self.select(renumber[self.class_id] >= 0)
        return replace(known, classes=classes, class_id=renumber[known.class_id])


def gather(classes: tuple[str, ...], images: Sequence[str], found: Sequence[Found]) -> Detections:
    """The table of what was found, one entry an image in the same order."""
    counts = [len(each.score) for each in found]
    return Detections(
        classes,
        tuple(images),
        np.repeat(np.arange(len(found), dtype=np.int32), counts),
        np.concatenate([np.zeros(0, np.int32), *(each.class_id for each in found)]),
        np.concatenate([np.zeros(0, np.float32), *(each.score for each in found)]),
        np.concatenate([np.zeros((0, 4), np.float32), *(each.boxes_xyxy for each in found)]),
    )


def write_detections(path: Path, detections: Detections) -> None:
    """Publish the table as Parquet: image, class, class_id, score, x1, y1, x2, y2; images and classes in its metadata."""
    images, classes = pa.array(detections.images, pa.string()), pa.array(detections.classes, pa.string())
    columns = {
        "image": images.take(pa.array(detections.image_index)),
        "class": classes.take(pa.array(detections.class_id)),
        "class_id": pa.array(detections.class_id),
        "score": pa.array(detections.score),
        **{name: pa.array(np.ascontiguousarray(detections.boxes_xyxy[:, i])) for i, name in enumerate(_CORNERS)},
    }
    header = {"images": json.dumps(detections.images), "classes": json.dumps(detections.classes)}
    content = BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(header), content, compression="zstd")
    write_atomic(path, content.getvalue())


def read_detections(path: Path) -> Detections:
    """The table at `path`. Raises DataError when it is absent or not such a table."""
    try:
        table = pq.read_table(BytesIO(path.read_bytes()))
        header = table.schema.metadata or {}
        images, classes = tuple(json.loads(header[b"images"])), tuple(json.loads(header[b"classes"]))
        index = {name: i for i, name in enumerate(images)}
        return Detections(
            classes,
            images,
            np.array([index[name] for name in table["image"].to_pylist()], np.int32),
            table["class_id"].to_numpy().astype(np.int32),
            table["score"].to_numpy().astype(np.float32),
            np.stack([table[name].to_numpy() for name in _CORNERS], axis=1).astype(np.float32),
        )
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: expected a table of detections: {error!r}; run the stage evaluate again") from error
