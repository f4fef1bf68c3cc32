"""The built-in data as a folder: an Ultralytics YOLO layout, published whole, and left alone when it is there already."""

from collections.abc import Iterable
from pathlib import Path

import cv2

from nightowl.boards.board import Board, draw_board
from nightowl.boards.faults import CLASSES
from nightowl.boards.lot import NUM_LOTS
from nightowl.data.manifest import SPLITS, Box, Split
from nightowl.errors import DataError
from nightowl.files import canonical_json, publishing_folder
from nightowl.progress import track

VERSION = 1  # of what is drawn: raise it when the same arguments give other pixels or boxes
MARKER = ".nightowl-boards"
NUM_IMAGES, SIZE = 480, 192
_SPLIT_OF_LOT: tuple[Split, ...] = ("train", "train", "val", "train", "train", "test")


def generate(root: Path, num_images: int = NUM_IMAGES, size: int = SIZE, seed: int = 0) -> None:
    """Publish `num_images` boards of `size` x `size` pixels at `root`: data.yaml, images/SPLIT, labels/SPLIT.

    A folder that holds exactly these boards is left alone; one with other boards is replaced. Two lots in three are train,
    one in six each val and test: no lot is in two splits, so the test shows how a model does on a lot it has not seen.

    Raises:
        DataError: when there would be a split without images, when an image is too small to route on, or when `root` holds
            something else than built-in boards.
    """
    _check(root, num_images, size)
    made_of = canonical_json({"version": VERSION, "num_images": num_images, "size": size, "seed": seed})
    marker = root / MARKER
    if marker.is_file() and marker.read_text() == made_of:
        return
    with publishing_folder(root) as folder:
        for split in SPLITS:
            (folder / "images" / split).mkdir(parents=True)
            (folder / "labels" / split).mkdir(parents=True)
        for index in track(range(num_images), "drawing circuit boards"):
            _write(folder, split_of(index), draw_board(seed, index, size))
        (folder / "data.yaml").write_text(_data_yaml())
        (folder / MARKER).write_text(made_of)


def split_of(index: int) -> Split:
    """The split of board number `index`, by its lot."""
    return _SPLIT_OF_LOT[index % NUM_LOTS % len(_SPLIT_OF_LOT)]


def _check(root: Path, num_images: int, size: int) -> None:
    if num_images < len(_SPLIT_OF_LOT):
        raise DataError(
            f"built-in boards: num_images must be at least {len(_SPLIT_OF_LOT)}, so that each split has one, got {num_images}"
        )
    if size < 128:
        raise DataError(f"built-in boards: size must be at least 128 pixels, got {size}")
    if root.exists() and not (root / MARKER).is_file() and (root.is_file() or any(root.iterdir())):
        raise DataError(f"{root}: holds something else than built-in boards and is left as it is; name another folder")


def _write(folder: Path, split: Split, board: Board) -> None:
    if not cv2.imwrite(str(folder / "images" / split / f"{board.name}.png"), board.image):
        raise OSError(f"{folder}: OpenCV could not write {board.name}.png")
    text = "".join(f"{line}\n" for line in _label_lines(board.boxes, len(board.image)))
    (folder / "labels" / split / f"{board.name}.txt").write_text(text)


def _label_lines(boxes: Iterable[Box], size: int) -> Iterable[str]:
    """YOLO lines: class, then the box as cxcywh in shares of the image side."""
    for box in boxes:
        cxcywh = (box.x1 + box.x2) / 2, (box.y1 + box.y2) / 2, box.x2 - box.x1, box.y2 - box.y1
        yield " ".join([str(box.class_id), *(f"{value / size:.6f}" for value in cxcywh)])


def _data_yaml() -> str:
    names = "".join(f"  {index}: {name}\n" for index, name in enumerate(CLASSES))
    return "".join(f"{split}: images/{split}\n" for split in SPLITS) + f"names:\n{names}"
