"""The Ultralytics YOLO layout: a yaml with `names`, `train` and `val`, and a label file beside each image.

Every entry of the yaml may be a folder, a file that lists images, or a list of these, relative to `path` (itself relative to
the yaml). Labels lie where the last `/images/` of an image's path is replaced by `/labels/`. An image without a label file, or
with an empty one, is background and is kept. Polygons become their boxes. Without a yaml, `data.classes` gives the names and
the folders give the splits.
"""

from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nightowl.data.findings import Finding
from nightowl.data.formats.classes import check_names, class_order
from nightowl.data.formats.listing import (
    SPLIT_NAMES,
    Labelled,
    Listing,
    content_of,
    images_below,
    inside,
    is_image,
    read_lines,
    read_text,
    relative,
    require_folder,
    split_of_folder,
)
from nightowl.data.formats.yolo_labels import Names, once_each, parse_labels, stray_labels
from nightowl.data.manifest import SPLITS, Box, Split
from nightowl.errors import DataError
from nightowl.params import DataParams

_USUAL_NAMES = ("data.yaml", "dataset.yaml")


def yolo_evidence(root: Path, params: DataParams) -> list[str]:
    """What in `root` speaks for this layout; empty when nothing does."""
    named = [relative(root, path) for path in _yamls(root, params)]
    if named:
        return named
    places = [root / "labels", *(root / name / "labels" for names in SPLIT_NAMES.values() for name in names)]
    return [f"{relative(root, place)}/*.txt" for place in places if place.is_dir() and any(place.rglob("*.txt"))]


def list_yolo(root: Path, params: DataParams) -> Listing:
    """The data set in `root`. Raises DataError on faults of the yaml or a missing folder."""
    yamls = _yamls(root, params)
    if len(yamls) > 1:
        listed = ", ".join(path.name for path in yamls)
        raise DataError(f"{root}: several YOLO descriptions: {listed}; name the one to use in params data.annotations")
    if yamls and params.images is not None:
        raise DataError(
            f"params data.images: {params.images}: {yamls[0]} says itself where its images are (train, val, test); remove "
            "data.images, or correct the yaml"
        )
    if yamls:
        where = relative(root, yamls[0])
        names, splits, notes = _read_description(root, yamls[0])
    else:
        where, names, splits, notes = _undescribed(root, params)
    classes = class_order(names, params.classes)
    images, findings = _labelled(root, splits, Names(names, where, classes))
    found = ", ".join(f"{split} {len(splits[split])}" for split in splits)
    description = ". ".join([f"YOLO layout by {where}: {found} images", *notes])
    return Listing("yolo", classes, tuple(images), "fractions", tuple(findings), description)


def _yamls(root: Path, params: DataParams) -> list[Path]:
    if params.annotations is not None and params.annotations.endswith((".yaml", ".yml")):
        named = inside(root, root, params.annotations)
        if named is None or not named.is_file():
            raise DataError(f"params data.annotations: {params.annotations}: no such file inside {root}")
        return [named]
    files = sorted(path for path in root.iterdir() if path.suffix in (".yaml", ".yml") and path.is_file())
    return [path for path in files if _describes_data(root, path)]


def _describes_data(root: Path, path: Path) -> bool:
    try:
        values = _load(root, path)
    except DataError:
        if path.name in _USUAL_NAMES:
            raise
        return False
    return path.name in _USUAL_NAMES or ("names" in values and any(key in values for key in ("train", "val", "test")))


def _load(root: Path, path: Path) -> dict[str, object]:
    try:
        values = YAML(typ="safe", pure=True).load(read_text(root, path))
    except (YAMLError, ValueError) as error:
        raise DataError(f"{path}: not readable as YAML: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise DataError(f"{path}: nested deeper than any description of data is; is it one?") from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: expected `names`, `train` and `val`, found {type(values).__name__}")
    return {str(key): value for key, value in values.items()}


def _read_description(root: Path, path: Path) -> tuple[tuple[str, ...], dict[Split, list[str]], list[str]]:
    """Class names, images a split, and what has to be said about how it was read."""
    values, notes = _load(root, path), list[str]()
    if "kpt_shape" in values:
        raise DataError(f"{path}: kpt_shape: these are labels of key points; nightowl trains detection: export boxes instead")
    names = _names(values, path)
    base = path.parent
    if values.get("path"):
        named = inside(root, path.parent, str(values["path"]))
        if named is not None and named.is_dir():
            base = named
        else:
            notes.append(
                f"Its `path: {values['path']}` is not a folder in the source, so entries are taken relative to the yaml"
            )
    splits: dict[Split, list[str]] = {}
    for split in SPLITS:
        entries = _entries(values, split, path)
        if split == "test" and entries and not any(_resolve(root, base, path, entry) for entry in entries):
            notes.append(f"Its `test: {values['test']}` does not exist, so it counts as not given")
        elif entries:
            splits[split] = sorted({image for entry in entries for image in _images(root, base, path, split, entry)})
    if not splits:
        raise DataError(f"{path}: none of `train`, `val`, `test`; expected at least `train`")
    return names, splits, notes


def _names(values: dict[str, object], path: Path) -> tuple[str, ...]:
    names = values.get("names")
    if isinstance(names, dict):
        ids = sorted(names, key=lambda key: (not str(key).isdecimal(), int(key) if str(key).isdecimal() else 0))
        if [str(key) for key in ids] != [str(number) for number in range(len(names))]:
            raise DataError(f"{path}: names: expected the ids 0 to {len(names) - 1}, found {', '.join(map(str, names))}")
        names = [names[key] for key in ids]
    if not isinstance(names, list):
        raise DataError(f"{path}: names: expected a list, or a mapping from id to name, found {names!r}")
    texts = check_names(names, f"{path}: names")
    if "nc" in values and values["nc"] != len(texts):
        raise DataError(f"{path}: nc is {values['nc']}, but there are {len(texts)} names ({', '.join(texts)}); correct one")
    return texts


def _entries(values: dict[str, object], split: Split, path: Path) -> list[str]:
    keys = [key for key in SPLIT_NAMES[split] if values.get(key)]
    if len(keys) > 1:
        raise DataError(f"{path}: both {' and '.join(f'`{key}`' for key in keys)} are given; keep one")
    value = values[keys[0]] if keys else []
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise DataError(f"{path}: {split}: expected a path or a list of paths, found {value!r}")
    return entries


def _resolve(root: Path, base: Path, yaml: Path, entry: str) -> Path | None:
    """Where an entry lies: relative to `path`, to the yaml, or, as Roboflow writes `../train/images`, without its `../`."""
    shortened = entry.replace("\\", "/")
    while shortened.startswith("../"):
        shortened = shortened[3:]
    tries = (inside(root, base, entry), inside(root, yaml.parent, entry), inside(root, yaml.parent, shortened))
    return next((path for path in tries if path is not None and path.exists()), None)


def _images(root: Path, base: Path, yaml: Path, split: Split, entry: str) -> list[str]:
    found = _resolve(root, base, yaml, entry)
    if found is None:
        outside = inside(root, base, entry) is None
        what = "leads out of the source folder" if outside else "no such folder or list file"
        raise DataError(f"{yaml}: {split}: {entry}: {what} {root}, which holds {content_of(root)}; correct the entry")
    if found.is_dir():
        return images_below(root, found)
    if found.suffix != ".txt":
        raise DataError(f"{yaml}: {split}: {entry}: expected a folder of images or a .txt file that lists images")
    return [_listed(root, base, found, line) for line in read_lines(root, found)]


def _listed(root: Path, base: Path, list_file: Path, line: str) -> str:
    tries = [path for place in (list_file.parent, base, root) if (path := inside(root, place, line)) is not None]
    if not tries or not is_image(tries[0]):
        expected = "an image inside the source folder" if not tries else "an image file"
        raise DataError(f"{list_file}: {line}: expected {expected} {root}; correct the line")
    return relative(root, next((path for path in tries if path.is_file()), tries[0]))


def _undescribed(root: Path, params: DataParams) -> tuple[str, tuple[str, ...], dict[Split, list[str]], list[str]]:
    """A layout without a yaml: splits by folders named so, otherwise none, which the caller's `train` then stands for."""
    if params.classes is None:
        raise DataError(
            f"{root}: a YOLO layout without a yaml that has `names` and `train`; it holds {content_of(root)}; "
            "add a data.yaml, or give the names in params data.classes"
        )
    folder = require_folder(root, params.images, "params data.images") if params.images else root
    splits: dict[Split, list[str]] = {}
    for image in images_below(root, folder):
        splits.setdefault(split_of_folder(image) or "train", []).append(image)
    return "its folders", check_names(params.classes, "params data.classes"), splits, []


def _labelled(root: Path, splits: dict[Split, list[str]], known: Names) -> tuple[list[Labelled], list[Finding]]:
    findings: list[Finding] = []
    parsed: dict[str, tuple[Box, ...] | None] = {}
    for image in sorted({image for images in splits.values() for image in images}):
        parsed[image], faults = parse_labels(root, image, known)
        findings += faults
    findings += stray_labels(root, set(parsed))
    images = [
        Labelled(image, split, boxes)
        for split, listed in splits.items()
        for image in listed
        if (boxes := parsed[image]) is not None
    ]
    return images, once_each(findings)
