"""The labels of the measured images, kept beside the detections, so that both can be questioned without the dataset.

Boxes are `boxes_xyxy` in pixels of the image as seen.
"""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nightowl.errors import DataError
from nightowl.evaluation.truth import Truth
from nightowl.files import write_atomic

_CORNERS = ("x1", "y1", "x2", "y2")


def write_truth(path: Path, truth: Truth) -> None:
    """Publish the labels as Parquet: image, class_id, ignore, x1, y1, x2, y2; all images and classes in its metadata."""
    columns = {
        "image": pa.array(truth.images, pa.string()).take(pa.array(truth.image_index)),
        "class_id": pa.array(truth.class_id),
        "ignore": pa.array(truth.ignore),
        **{name: pa.array(np.ascontiguousarray(truth.boxes_xyxy[:, i])) for i, name in enumerate(_CORNERS)},
    }
    header = {"images": json.dumps(truth.images), "classes": json.dumps(truth.classes)}
    content = BytesIO()
    pq.write_table(pa.table(columns).replace_schema_metadata(header), content, compression="zstd")
    write_atomic(path, content.getvalue())


def read_truth(path: Path) -> Truth:
    """The labels at `path`. Raises DataError when it is absent or not such a table."""
    try:
        table = pq.read_table(BytesIO(path.read_bytes()))
        header = table.schema.metadata or {}
        images, classes = tuple(json.loads(header[b"images"])), tuple(json.loads(header[b"classes"]))
        index = {name: i for i, name in enumerate(images)}
        return Truth(
            classes,
            images,
            np.array([index[name] for name in table["image"].to_pylist()], np.int32),
            table["class_id"].to_numpy().astype(np.int32),
            np.stack([table[name].to_numpy() for name in _CORNERS], axis=1).astype(np.float64),
            table["ignore"].to_numpy(zero_copy_only=False).astype(np.bool_),
        )
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise DataError(f"{path}: expected a table of labels: {error!r}; run the stage evaluate again") from error
