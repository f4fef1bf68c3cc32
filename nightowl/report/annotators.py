"""The list of suspicious labels as files beside the report: JSON and CSV to read, COCO to open in a labelling tool.

The COCO file holds the boxes to look at and no others: each with the class that the model expects, its score, and why.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path

from nightowl.data.manifest import Manifest
from nightowl.evaluation.suspicious import Suspicion
from nightowl.files import write_atomic

NAME = "suspicious_labels"
_COLUMNS = ("image", "why", "class", "labelled", "score", "x1", "y1", "x2", "y2")


def write_lists(folder: Path, listed: Sequence[Suspicion], dataset: Manifest) -> None:
    """Publish the three files in `folder`. An empty list is a file too: it says that nothing is suspicious."""
    plain = [each.model_dump(mode="json") for each in listed]
    write_atomic(folder / f"{NAME}.json", json.dumps(plain, indent=1, ensure_ascii=False) + "\n")
    write_atomic(folder / f"{NAME}.csv", _csv(listed))
    write_atomic(folder / f"{NAME}.coco.json", json.dumps(_coco(listed, dataset), ensure_ascii=False) + "\n")


def _csv(listed: Sequence[Suspicion]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_COLUMNS)
    for each in listed:
        score = "" if each.score is None else each.score
        table.writerow(
            [_harmless(each.image), each.why, _harmless(each.name), _harmless(each.labelled or ""), score, *each.box_xyxy]
        )
    return text.getvalue()


def _harmless(text: str) -> str:
    """A name that a spreadsheet would run as a formula is set apart as text."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _coco(listed: Sequence[Suspicion], dataset: Manifest) -> dict[str, object]:
    """COCO: boxes are x, y, width, height in pixels; ids count from 1."""
    paths = {each.image for each in listed}
    images = [image for image in dataset.images if image.path in paths]
    number = {image.path: index for index, image in enumerate(images, 1)}
    return {
        "images": [{"id": number[i.path], "file_name": i.path, "width": i.width, "height": i.height} for i in images],
        "categories": [{"id": index, "name": name} for index, name in enumerate(dataset.classes, 1)],
        "annotations": [_annotation(index, number[each.image], each, dataset) for index, each in enumerate(listed, 1)],
    }


def _annotation(index: int, image: int, each: Suspicion, dataset: Manifest) -> dict[str, object]:
    x1, y1, x2, y2 = each.box_xyxy
    width, height = round(x2 - x1, 2), round(y2 - y1, 2)
    return {
        "id": index,
        "image_id": image,
        "category_id": dataset.classes.index(each.name) + 1,
        "bbox": [x1, y1, width, height],
        "area": round(width * height, 2),
        "iscrowd": 0,
        "score": each.score,
        "attributes": {"why": each.why, "labelled": each.labelled},
    }
