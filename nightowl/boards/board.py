"""One board: layout, faults, and the look of a thresholding inspection camera."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nightowl.boards.copper import FINE, Map, Mounting, etch, num_nodes_for
from nightowl.boards.faults import CLASSES, add_fault
from nightowl.boards.layout import draw_layout
from nightowl.boards.lot import NUM_LOTS, Lot, draw_lot, random_source
from nightowl.data.manifest import Box

MAX_FAULTS = 6
FAULTLESS_FRACTION = 0.1


@dataclass(frozen=True)
class Board:
    """An image (S, S) uint8 with its faults, and the map of nets (FINE*S, FINE*S) as designed and as etched."""

    name: str
    image: npt.NDArray[np.uint8]
    boxes: tuple[Box, ...]
    designed: Map
    etched: Map


def draw_board(seed: int, index: int, size: int) -> Board:
    """The board number `index`, a function of its arguments alone. Lots take turns: lot = index modulo NUM_LOTS."""
    lot_number = index % NUM_LOTS
    lot, rng = draw_lot(seed, lot_number), random_source(seed, 1, index)
    num_nodes = num_nodes_for(size, lot)
    copper = etch(draw_layout(rng, lot, num_nodes), lot, _mount(rng, lot, size, num_nodes))
    etched = copper.nets.copy()
    boxes: list[Box] = []
    for class_id in _choose_faults(rng):
        box = add_fault(rng, copper, etched, class_id, boxes)
        boxes += [box] if box else []
    name = f"lot-{lot_number + 1:02d}_board-{index // NUM_LOTS + 1:03d}"
    return Board(name, _photograph(rng, etched, lot), tuple(boxes), copper.nets, etched)


def _mount(rng: np.random.Generator, lot: Lot, size: int, num_nodes: int) -> Mounting:
    """The lot's mounting with this board's small error of registration."""
    dx, dy = ((rng.random(2) - 0.5) * lot.pitch_px).tolist()
    return Mounting(lot.pitch_px, lot.quarter_turns, 0.03 * (float(rng.random()) - 0.5), (dx, dy), size, num_nodes)


def _choose_faults(rng: np.random.Generator) -> list[int]:
    if rng.random() < FAULTLESS_FRACTION:
        return []
    return [int(c) for c in rng.integers(0, len(CLASSES), int(rng.integers(1, MAX_FAULTS + 1)))]


def _photograph(rng: np.random.Generator, nets: Map, lot: Lot) -> npt.NDArray[np.uint8]:
    """Grey levels (S, S): copper and bare board nearly binary, ragged edges, uneven light, noise.

    In whole numbers and without OpenCV's filters, whose last bit differs between processors.
    """
    size = len(nets) // FINE
    ragged = _smooth_noise(rng, size, cell_px=3) * lot.roughness // 128
    level = np.clip((_coverage(nets) + ragged - 128) * 5 // 2 + 128, 0, 255)
    grey = lot.bare_grey + (lot.copper_grey - lot.bare_grey) * level // 255
    along_x, along_y = rng.integers(-lot.gradient, lot.gradient + 1, 2)
    ramp = np.arange(size, dtype=np.int32) - size // 2
    light = (ramp[None, :] * along_x + ramp[:, None] * along_y) // (2 * size) + _smooth_noise(rng, size, cell_px=32) * 6 // 128
    noise = rng.integers(-lot.noise, lot.noise + 1, (2, size, size), dtype=np.int32).sum(axis=0)
    image: npt.NDArray[np.uint8] = np.clip(grey + light + noise, 0, 255).astype(np.uint8)
    return image


def _coverage(nets: Map) -> npt.NDArray[np.int32]:
    """How much of each image pixel is copper, 0..255, seen through a slightly soft lens: (S, S)."""
    size = len(nets) // FINE
    rows = (nets != 0).reshape(size, FINE, -1).sum(axis=1, dtype=np.int32)
    share: npt.NDArray[np.int32] = rows.reshape(size, size, FINE).sum(axis=2, dtype=np.int32) * 255 // FINE**2
    for axis in (0, 1):
        padded = np.pad(share, [(1, 1) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        before, after = np.delete(padded, (-1, -2), axis), np.delete(padded, (0, 1), axis)
        share = (before + 2 * share + after) // 4
    return share


def _smooth_noise(rng: np.random.Generator, size: int, cell_px: int) -> npt.NDArray[np.int32]:
    """Noise of -128..127 that varies over about `cell_px` pixels, (S, S): a coarse grid, interpolated linearly."""
    noise: npt.NDArray[np.int32] = rng.integers(-128, 128, (size // cell_px + 2,) * 2, dtype=np.int32)
    cell, rest = np.divmod(np.arange(size, dtype=np.int32), cell_px)
    noise = noise[cell] * (cell_px - rest)[:, None] + noise[cell + 1] * rest[:, None]
    noise = noise[:, cell] * (cell_px - rest) + noise[:, cell + 1] * rest
    return noise // cell_px**2
