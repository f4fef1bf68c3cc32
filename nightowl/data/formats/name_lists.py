"""Splits given as lists of names: those of `data.splits`, or the ones that VOC sets bring.

A line names an image by its path inside the source, its file name, or its name without suffix. Lists replace what the layout
said; an image that none of them names is left out, with a finding.
"""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from nightowl.data.findings import Finding
from nightowl.data.formats.listing import Labelled, Listing, content_of, inside, names_of, read_lines, relative
from nightowl.data.manifest import SPLITS, Split
from nightowl.errors import DataError
from nightowl.params import DataParams

_USUAL_FOLDERS = ("ImageSets/Main", "splits")


def split_lists(root: Path, params: DataParams, listing: Listing) -> dict[Split, Path]:
    """The list file of each split: those of params, else, for VOC, `ImageSets/Main/*.txt` or `splits/*.txt`."""
    if params.splits and not all(name.endswith(".json") for name in params.splits.values()):
        return {split: _named(root, params.splits[split], split) for split in SPLITS if split in params.splits}
    folders = [root / folder for folder in _USUAL_FOLDERS] if listing.layout == "voc" else []
    for folder in folders:
        names = {split: f"{split}.txt" for split in SPLITS}
        if not (folder / "train.txt").is_file():
            names["train"] = "trainval.txt"
        found: dict[Split, Path] = {split: folder / name for split, name in names.items() if (folder / name).is_file()}
        if found:
            return found
    return {}


def split_by_lists(root: Path, listing: Listing, lists: dict[Split, Path]) -> Listing:
    """`listing` with its splits replaced by those of `lists`; unchanged when there are none. Raises DataError."""
    if not lists:
        return listing
    images = {image.path: image for image in listing.images}
    by_name = _by_name(images)
    placed, findings = list[Labelled](), list[Finding]()
    explained = {key for finding in listing.findings for key in names_of(finding.path)}
    for split, path in lists.items():
        for name in _names(root, path):
            found = by_name.get(name, set())
            if len(found) > 1:
                raise DataError(f"{path}: {name} may be {' or '.join(sorted(found))}; write the path inside the source")
            if found:
                placed.append(replace(images[next(iter(found))], split=split))
            elif name not in explained:
                detail = f"{relative(root, path)} names it, but there is no such annotated image"
                findings.append(Finding(kind="label_without_image", path=name, detail=detail, action="left out"))
    if not placed:
        raise DataError(f"{', '.join(map(str, lists.values()))}: none of the names is an image of {root}; correct the lists")
    unplaced = sorted(set(images) - {image.path for image in placed})
    named = ", ".join(relative(root, path) for path in lists.values())
    findings += [
        Finding(kind="image_without_split", path=path, detail=f"none of {named} names it", action="left out")
        for path in unplaced
    ]
    description = f"{listing.description}. Splits by {named}"
    return replace(listing, images=tuple(placed), findings=(*listing.findings, *findings), description=description)


def _named(root: Path, name: str, split: Split) -> Path:
    path = inside(root, root, name)
    if path is None or not path.is_file():
        raise DataError(f"params data.splits.{split}: {name}: no such file inside {root}; it holds {content_of(root)}")
    return path


def _names(root: Path, path: Path) -> list[str]:
    """Names in order, each once; VOC's second column (1 or -1) is cut off."""
    lines = read_lines(root, path)
    cut = [
        line.rsplit(None, 1)[0] if line.split()[-1] in ("1", "-1", "0") and len(line.split()) == 2 else line for line in lines
    ]
    return list(dict.fromkeys(name.replace("\\", "/").removeprefix("./") for name in cut))


def _by_name(images: dict[str, Labelled]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in images:
        for key in names_of(path):
            found[key].add(path)
    return found
