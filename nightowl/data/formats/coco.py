"""COCO JSON: one file a split (`instances_train2017.json`, Roboflow's `train/_annotations.coco.json`) or a single one.

Class ids become contiguous in order of category id, matched between files by name. `iscrowd` becomes ignore. A category that
is only the supercategory of others and has no box (Roboflow adds one) is no class. The files say which images belong to the
data set: others in the folder do not.
"""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from nightowl.data.findings import Action, Finding, Kind
from nightowl.data.formats.classes import check_names, class_order, not_among
from nightowl.data.formats.listing import Labelled, Listing, content_of, inside, read_text, relative, require_folder, said_size
from nightowl.data.manifest import SPLITS, Box, Split
from nightowl.errors import DataError
from nightowl.files import open_regular
from nightowl.params import DataParams

_SPLIT_WORD = re.compile(r"(?<![a-z])(train|valid|validation|val|test)(?![a-z])")
ROBOFLOW = "_annotations.coco.json"
_PEEK_BYTES = 1 << 20
_PROBES = 50
_CROWD = {"none": False, "0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}

Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class CocoFile:
    """One parsed JSON: its path inside the source, its split by name, and its three tables."""

    path: str
    split: Split | None
    images: list[Row]
    annotations: list[Row]
    categories: list[Row]


def coco_evidence(root: Path, params: DataParams) -> list[str]:
    """What in `root` speaks for this layout; empty when nothing does."""
    return [relative(root, path) for path in _files(root, params)]


def list_coco(root: Path, params: DataParams) -> Listing:
    """The data set in `root`. Raises DataError on a broken file, or two files for one split."""
    files = _parsed(root, params)
    classes = class_order(_class_names(files), params.classes)
    images, findings = list[Labelled](), list[Finding]()
    for file in files:
        listed, faults = _labelled(root, params, file, classes)
        images += listed
        findings += faults
    found = ", ".join(f"{file.path} ({file.split or 'no split'}) {len(file.images)}" for file in files)
    return Listing("coco", classes, tuple(images), "pixels", tuple(findings), f"COCO layout by {found} images")


def _files(root: Path, params: DataParams) -> list[Path]:
    named = [name for name in params.splits.values() if name.endswith(".json")]
    if named:
        return [_named(root, name, "params data.splits") for name in named]
    if params.annotations is not None and params.annotations.endswith(".json"):
        return [_named(root, params.annotations, "params data.annotations")]
    if params.annotations is not None and params.annotations.endswith((".yaml", ".yml")):
        return []
    if params.annotations is not None:
        candidates = [*require_folder(root, params.annotations, "params data.annotations").glob("*.json")]
    else:
        candidates = [*root.glob("*.json"), *root.glob("annotations/*.json"), *root.glob(f"*/{ROBOFLOW}")]
    found = sorted(path for path in candidates if _looks_like_coco(path))
    instances = [path for path in found if path.name.startswith("instances_")]
    return instances or found  # beside instances_*, the official set has captions_*, person_keypoints_* and the like


def _named(root: Path, name: str, key: str) -> Path:
    path = inside(root, root, name)
    if path is None or not path.is_file():
        raise DataError(f"{key}: {name}: no such file inside {root}; it holds {content_of(root)}")
    return path


def _looks_like_coco(path: Path) -> bool:
    with open_regular(path) as file:
        start = file.read(_PEEK_BYTES).lstrip(b"\xef\xbb\xbf \r\n\t")
    return start.startswith(b"{") and any(f'"{key}"'.encode() in start for key in ("images", "annotations", "categories"))


def _parsed(root: Path, params: DataParams) -> list[CocoFile]:
    paths = _files(root, params)
    if not paths:
        raise DataError(
            f"{root}: no COCO file; expected annotations/*.json, */{ROBOFLOW} or *.json with `images`, `annotations` and "
            f"`categories`; it holds {content_of(root)}; params data.annotations may name the file"
        )
    of_param = {name: split for split, name in params.splits.items()}
    files = [_parse(root, path, of_param.get(relative(root, path)) or split_of_name(relative(root, path))) for path in paths]
    splits = [file.split for file in files]
    if len(files) > 1 and (None in splits or len(set(splits)) < len(splits)):
        listed = ", ".join(f"{file.path} ({file.split or 'no split in its name'})" for file in files)
        raise DataError(f"{root}: expected one COCO file a split, found {listed}; say which in params data.splits")
    return sorted(files, key=lambda file: SPLITS.index(file.split) if file.split else 0)


def split_of_name(path: str) -> Split | None:
    """The split that a path names, in its file name or else in its folder; None when it names none."""
    for part in reversed(path.lower().split("/")[-2:]):
        words = set(_SPLIT_WORD.findall(part.replace("_", " ").replace("-", " ")))
        if len(words) == 1:
            word = words.pop()
            return "train" if word == "train" else "test" if word == "test" else "val"
    return None


def _parse(root: Path, path: Path, split: Split | None) -> CocoFile:
    name = relative(root, path)
    try:
        values = json.loads(read_text(root, path))
    except ValueError as error:
        raise DataError(f"{path}: not readable as JSON: {error}") from error
    except RecursionError:
        raise DataError(f"{path}: nested deeper than COCO is; is it COCO?") from None
    tables = []
    for key in ("images", "annotations", "categories"):
        table = values.get(key) if isinstance(values, dict) else None
        if not isinstance(table, list) or not all(isinstance(row, dict) for row in table):
            raise DataError(f"{path}: expected a list of objects under `{key}`, found {type(table).__name__}; is it COCO?")
        tables.append(table)
    file = CocoFile(name, split, *tables)
    _require_distinct(path, "image", [_whole(row, "id", path) for row in file.images])
    _require_distinct(path, "category", [_whole(row, "id", path) for row in file.categories])
    check_names([row.get("name", "") for row in file.categories], f"{path}: categories")
    return file


def _require_distinct(path: Path, what: str, ids: list[int]) -> None:
    if len(set(ids)) < len(ids):
        twice = next(number for number in ids if ids.count(number) > 1)
        raise DataError(f"{path}: {what} id {twice} occurs more than once; ids must differ")


def _whole(row: Row, key: str, path: Path | str = "") -> int:
    value = row.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise DataError(f"{path}: expected a whole number under `{key}`, found {value!r} in {str(row)[:80]}")
    return value


def _by_id(file: CocoFile) -> dict[int, str]:
    return {_whole(row, "id"): str(row["name"]).strip() for row in file.categories}


def _class_names(files: list[CocoFile]) -> tuple[str, ...]:
    """Names in order of category id, those of the first file first; a supercategory without a box of its own is no class."""
    names: dict[str, None] = {}
    for file in files:
        used = {number for row in file.annotations if isinstance(number := row.get("category_id"), int)}
        above = {name for row in file.categories if isinstance(name := row.get("supercategory"), str)}
        for row in sorted(file.categories, key=lambda row: _whole(row, "id")):
            only_groups = row["name"] in above and row["id"] not in used and row.get("supercategory") != row["name"]
            if not only_groups:
                names[str(row["name"]).strip()] = None
    return tuple(names)


def _labelled(root: Path, params: DataParams, file: CocoFile, classes: tuple[str, ...]) -> tuple[list[Labelled], list[Finding]]:
    paths, findings = _paths(root, params, file)
    names = _by_id(file)
    boxes: dict[int, list[Box]] = {number: [] for number in paths}
    absent = {_whole(row, "id") for row in file.images} - set(paths)
    for row in file.annotations:
        image_id, said = row.get("image_id"), f"annotation {row.get('id')} of {file.path}"
        if not isinstance(image_id, int) or image_id not in boxes:
            if not isinstance(image_id, int) or image_id not in absent:
                findings.append(_finding("label_without_image", file.path, f"{said}: no image id {image_id}"))
            continue
        corners, number = _corners(row.get("bbox")), _whole(row, "category_id", root / file.path)
        if number not in names:
            ids = ", ".join(map(str, sorted(names)))
            detail = f"{said}: category id {number}, but the file has {len(names)} categories (ids {ids}); add or correct it"
            findings.append(_finding("unknown_class", paths[image_id], detail, "box quarantined"))
            continue
        if names[number] not in classes:
            detail = f"{said}: {not_among(names[number], classes)}"
            findings.append(_finding("unknown_class", paths[image_id], detail, "box quarantined"))
            continue
        if corners is None:
            findings.append(
                _finding("unparsable_label", paths[image_id], f"{said}: bbox is {str(row.get('bbox'))[:80]}, not 4 numbers")
            )
            continue
        crowd = _CROWD.get(str(row.get("iscrowd")).lower())
        if crowd is None:
            detail = f"{said}: iscrowd is {str(row.get('iscrowd'))[:80]!r}, neither 0 nor 1"
            findings.append(_finding("unparsable_label", paths[image_id], detail))
            continue
        boxes[image_id].append(Box(classes.index(names[number]), *corners, ignore=crowd))
    sizes = {_whole(row, "id"): said_size(row.get("width"), row.get("height")) for row in file.images}
    return [Labelled(paths[number], file.split, tuple(found), sizes[number]) for number, found in boxes.items()], findings


def _corners(bbox: object) -> tuple[float, float, float, float] | None:
    """xywh as xyxy, or None when it is not four finite numbers."""
    if not isinstance(bbox, list) or len(bbox) != 4:
        return None
    if not all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max for value in bbox
    ):
        return None  # neither NaN nor infinite, nor an integer beyond what a float holds
    x, y, width, height = map(float, bbox)
    return x, y, x + width, y + height


def _paths(root: Path, params: DataParams, file: CocoFile) -> tuple[dict[int, str], list[Finding]]:
    """Image id to path inside the source, and findings for files that are not there."""
    names = {_whole(row, "id"): str(row.get("file_name", "")) for row in file.images}
    base = _base(root, params, file, list(names.values()))
    paths, findings, owner = dict[int, str](), list[Finding](), dict[str, int]()
    for number, name in names.items():
        found = inside(root, base, name)
        if found is None or not name:
            raise DataError(f"{root / file.path}: image {number}: file_name {name!r} is not inside {root}; correct it")
        path = relative(root, found)
        if path in owner:
            raise DataError(f"{root / file.path}: images {owner[path]} and {number} are both {path}; keep one")
        owner[path] = number
        if found.is_file():
            paths[number] = path
        else:
            findings.append(_finding("label_without_image", path, f"listed in {file.path}, but there is no such file"))
    return paths, findings


def _base(root: Path, params: DataParams, file: CocoFile, names: list[str]) -> Path:
    """The folder that `file_name` is relative to: of the usual ones, that which holds most of the first images."""
    if params.images is not None:
        return require_folder(root, params.images, "params data.images")
    json_path = root / file.path
    folder = json_path.stem.removeprefix("instances_")
    words = [folder, file.split or "", "valid" if file.split == "val" else ""]
    places = [json_path.parent, root, root / "images"]
    places += [place / word for word in words if word for place in (root, root / "images")]
    probes = names[:_PROBES]
    hits = [sum((found := inside(root, place, name)) is not None and found.is_file() for name in probes) for place in places]
    if names and max(hits) == 0:
        tried = ", ".join(dict.fromkeys(f"{relative(root, place)}/" for place in places if place.is_dir())).replace(
            "./", "(top)"
        )
        raise DataError(
            f"{json_path}: its images were not found: {names[0]!r} is in none of these folders of {root}: {tried}; "
            "name their folder: --images FOLDER for inspect and init, data.images in params"
        )
    return places[hits.index(max(hits))]


def _finding(kind: Kind, path: str, detail: str, action: Action = "left out") -> Finding:
    return Finding(kind=kind, path=path, detail=detail, action=action)
