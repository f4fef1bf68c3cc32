"""The built-in boards: each fault is what its name says, and the folder is the same every time."""

import hashlib
from collections import Counter
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from nightowl.boards import CLASSES, Board, draw_board, generate
from nightowl.boards.board import MAX_FAULTS
from nightowl.boards.copper import FINE
from nightowl.boards.faults import MARGIN_PX
from nightowl.boards.folder import MARKER, split_of
from nightowl.boards.layout import draw_layout
from nightowl.boards.lot import NUM_LOTS, draw_lot, random_source
from nightowl.data.manifest import Box
from nightowl.errors import DataError

SIZE = 192
NUM_BOARDS = 48


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    return [draw_board(0, index, SIZE) for index in range(NUM_BOARDS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("boards") / "demo"
    generate(root, num_images=12, size=128, seed=3)
    return root


def faults(boards: list[Board], name: str) -> list[tuple[Board, Box]]:
    found = [(board, box) for board in boards for box in board.boxes if CLASSES[box.class_id] == name]
    assert len(found) >= 10, f"too few {name} to say anything"
    return found


def cut_out(nets: npt.NDArray[np.uint8], box: Box, around_px: int = 0) -> npt.NDArray[np.uint8]:
    """The map of nets inside a box, with some pixels around it."""
    x1, y1, x2, y2 = (max(0, int(v)) for v in (box.x1 - around_px, box.y1 - around_px, box.x2 + around_px, box.y2 + around_px))
    return nets[y1 * FINE : y2 * FINE, x1 * FINE : x2 * FINE]


def num_pieces(mask: npt.NDArray[np.bool_]) -> int:
    """How many separate pieces a mask has."""
    return int(cv2.connectedComponents(np.ascontiguousarray(mask).view(np.uint8), connectivity=4)[0]) - 1


def copper_pieces(board: Board, box: Box) -> tuple[int, int]:
    """Separate pieces of copper in and around the box, as designed and as etched."""
    return num_pieces(cut_out(board.designed, box) != 0), num_pieces(cut_out(board.etched, box) != 0)


def test_an_open_cuts_a_trace_into_two_pieces(boards: list[Board]) -> None:
    for board, box in faults(boards, "open"):
        before, after = copper_pieces(board, box)
        assert after > before, (board.name, box)


def test_a_short_joins_two_nets_that_were_apart(boards: list[Board]) -> None:
    for board, box in faults(boards, "short"):
        before, after = copper_pieces(board, box)
        assert after < before, (board.name, box)


@pytest.mark.parametrize(
    ("name", "copper_grows"), [("mousebite", False), ("spur", True)], ids=["bitten, not cut through", "grown, reaching nothing"]
)
def test_a_fault_of_an_edge_leaves_the_nets_connected_as_they_were(boards: list[Board], name: str, copper_grows: bool) -> None:
    for board, box in faults(boards, name):
        before, after = copper_pieces(board, box)
        area = [int(np.count_nonzero(cut_out(nets, box))) for nets in (board.designed, board.etched)]
        assert after == before, (board.name, box)
        assert (area[1] > area[0]) == copper_grows


def test_spurious_copper_is_a_piece_of_its_own(boards: list[Board]) -> None:
    for board, box in faults(boards, "spurious_copper"):
        before, after = copper_pieces(board, box)
        assert after == before + 1, (board.name, box)


def test_a_pin_hole_has_copper_all_around(boards: list[Board]) -> None:
    for board, box in faults(boards, "pin_hole"):
        bare = [num_pieces(cut_out(nets, box) == 0) for nets in (board.designed, board.etched)]
        assert bare[1] == bare[0] + 1, (board.name, box)
        assert copper_pieces(board, box)[0] == copper_pieces(board, box)[1]


def test_a_box_is_tight_around_what_changed_and_inside_the_image(boards: list[Board]) -> None:
    for board in boards:
        for box in board.boxes:
            changed = cut_out(board.designed, box) != cut_out(board.etched, box)
            rows, columns = np.nonzero(changed)
            gaps = (columns.min(), rows.min(), changed.shape[1] - 1 - columns.max(), changed.shape[0] - 1 - rows.max())
            assert all(MARGIN_PX * FINE <= gap < (MARGIN_PX + 1) * FINE for gap in gaps)
            assert min(box[1:5]) >= 0 and max(box[1:5]) <= SIZE


def test_nothing_changes_outside_the_boxes(boards: list[Board]) -> None:
    for board in boards:
        outside = board.designed != board.etched
        for box in board.boxes:
            cut_out(outside.view(np.uint8), box)[:] = 0
        assert not outside.any(), board.name


def test_faults_are_up_to_six_some_boards_have_none_and_classes_are_balanced(boards: list[Board]) -> None:
    counts = [len(board.boxes) for board in boards]
    per_class = Counter(box.class_id for board in boards for box in board.boxes)
    assert 0 < counts.count(0) < NUM_BOARDS / 3 and max(counts) == MAX_FAULTS
    assert set(per_class) == set(range(len(CLASSES))) and max(per_class.values()) < 3 * min(per_class.values())


def test_the_image_is_nearly_binary_and_shows_copper_and_bare_board(boards: list[Board]) -> None:
    for board in boards:
        lot = draw_lot(0, boards.index(board) % NUM_LOTS)
        copper = cv2.resize((board.etched != 0).view(np.uint8) * 255, (SIZE, SIZE), interpolation=cv2.INTER_AREA)
        assert abs(float(board.image[copper == 255].mean()) - lot.copper_grey) < 25
        assert abs(float(board.image[copper == 0].mean()) - lot.bare_grey) < 25
        between = np.abs(board.image.astype(int) - (lot.copper_grey + lot.bare_grey) // 2) < 30
        assert between.mean() < 0.12


def test_traces_of_different_nets_never_share_a_node() -> None:
    for index in range(20):
        layout = draw_layout(random_source(5, 1, index), draw_lot(5, index), 14)
        owners: dict[tuple[int, int], int] = {}
        for net, nodes in layout.traces:
            assert all(owners.setdefault(node, net) == net for node in nodes)


def test_a_board_depends_on_seed_and_index_alone() -> None:
    alone = draw_board(7, 30, 128)
    for index in range(3):
        draw_board(7, index, 128)
    again, other_seed = draw_board(7, 30, 128), draw_board(8, 30, 128)
    assert np.array_equal(alone.image, again.image) and alone.boxes == again.boxes
    assert not np.array_equal(alone.image, other_seed.image)


def test_the_pixels_of_a_board_are_the_same_on_every_machine() -> None:
    """Whole-number drawing, so the digest may be pinned. A deliberate change of what is drawn raises folder.VERSION too."""
    board = draw_board(0, 1, 256)
    assert hashlib.sha256(board.image.tobytes()).hexdigest()[:16] == "a9f5d9bcf9dc673a"


def test_the_folder_is_a_yolo_layout_with_a_label_file_for_each_image(folder: Path) -> None:
    images = sorted(p.relative_to(folder / "images").with_suffix("") for p in folder.glob("images/*/*.png"))
    labels = sorted(p.relative_to(folder / "labels").with_suffix("") for p in folder.glob("labels/*/*.txt"))
    assert images == labels and len(images) == 12
    assert {p.parts[0] for p in images} == {"train", "val", "test"}
    assert (folder / "data.yaml").read_text().splitlines() == [
        "train: images/train",
        "val: images/val",
        "test: images/test",
        "names:",
        *(f"  {index}: {name}" for index, name in enumerate(CLASSES)),
    ]


def test_a_label_gives_back_the_box_that_was_drawn(folder: Path) -> None:
    for index in range(12):
        board = draw_board(3, index, 128)
        text = (folder / "labels" / split_of(index) / f"{board.name}.txt").read_text()
        rows = [[float(value) for value in line.split()] for line in text.splitlines()]
        boxes = [(int(c), (x - w / 2) * 128, (y - h / 2) * 128, (x + w / 2) * 128, (y + h / 2) * 128) for c, x, y, w, h in rows]
        assert len(boxes) == len(board.boxes)
        for read, box in zip(boxes, board.boxes, strict=True):
            assert read == pytest.approx(box[:5], abs=1e-3)


def test_no_lot_is_in_two_splits() -> None:
    splits = {lot: {split_of(index) for index in range(lot, 20 * NUM_LOTS, NUM_LOTS)} for lot in range(NUM_LOTS)}
    assert all(len(found) == 1 for found in splits.values())
    assert Counter(next(iter(found)) for found in splits.values()) == {"train": 16, "val": 4, "test": 4}


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(folder: Path, tmp_path: Path) -> None:
    generate(tmp_path / "same", num_images=12, size=128, seed=3)
    generate(tmp_path / "other", num_images=12, size=128, seed=4)
    contents = [
        {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (folder, tmp_path / "same", tmp_path / "other")
    ]
    assert contents[0] == contents[1] != contents[2]


def test_a_folder_with_the_same_boards_is_left_alone_and_one_with_others_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    generate(root, num_images=6, size=128)
    before = (root / "data.yaml").stat().st_ino
    generate(root, num_images=6, size=128)
    assert (root / "data.yaml").stat().st_ino == before
    generate(root, num_images=7, size=128)
    assert len(list(root.glob("images/*/*.png"))) == 7


def test_a_folder_without_its_marker_is_someone_elses_and_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(DataError, match="something else than built-in boards"):
        generate(tmp_path, num_images=6, size=128)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_interrupted_generation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> Board:
        raise KeyboardInterrupt

    monkeypatch.setattr("nightowl.boards.folder.draw_board", stop)
    with pytest.raises(KeyboardInterrupt):
        generate(tmp_path / "demo", num_images=6, size=128)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("num_images", "size", "says"),
    [
        (5, 128, "num_images must be at least 6"),  # the sixth is the first of test
        (12, 96, "size must be at least 128"),  # too few nodes to place a part on
    ],
)
def test_arguments_that_cannot_work_are_refused_before_anything_is_written(
    tmp_path: Path, num_images: int, size: int, says: str
) -> None:
    with pytest.raises(DataError, match=says):
        generate(tmp_path / "demo", num_images=num_images, size=size)
    assert not (tmp_path / "demo" / MARKER).exists()
