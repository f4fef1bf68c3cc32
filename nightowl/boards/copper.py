"""Copper: a layout as pixels. A map of nets, drawn four times finer than the image so that geometry stays exact.

The map is uint8: 0 is bare board, any other value the net whose copper lies there. Points are (x, y) in image pixels.
"""

from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from nightowl.boards.layout import Layout, Node, Pad
from nightowl.boards.lot import Lot

FINE = 4  # map pixels per image pixel
Map = npt.NDArray[np.uint8]
Point = tuple[float, float]


@dataclass(frozen=True)
class Segment:
    """A straight piece of trace between two points."""

    net: int
    start: Point
    end: Point

    @property
    def length(self) -> float:
        return float(np.hypot(self.end[0] - self.start[0], self.end[1] - self.start[1]))


@dataclass(frozen=True)
class Copper:
    """The map of nets (FINE*S, FINE*S) of an image of S x S, and where its straight traces and its pads are."""

    nets: Map
    segments: tuple[Segment, ...]
    pads: tuple[tuple[Point, float], ...]  # centre, radius of the circle around it
    track_px: float

    @property
    def size(self) -> int:
        return len(self.nets) // FINE


@dataclass(frozen=True)
class Mounting:
    """Where grid units come to lie in the image: pitch, quarter turns, a small skew and an offset, about the centre."""

    pitch_px: float
    quarter_turns: int
    skew: float  # tangent of a small angle
    offset: Point  # pixels
    size: int
    num_nodes: int

    def __call__(self, column: float, row: float) -> Point:
        x, y = (column - (self.num_nodes - 1) / 2) * self.pitch_px, (row - (self.num_nodes - 1) / 2) * self.pitch_px
        for _ in range(self.quarter_turns):
            x, y = -y, x
        shrink = 1 - self.skew * self.skew / 2  # the cosine, near enough, in plain arithmetic
        x, y = x * shrink - y * self.skew, x * self.skew + y * shrink
        return x + self.size / 2 + self.offset[0], y + self.size / 2 + self.offset[1]


def num_nodes_for(size: int, lot: Lot) -> int:
    """Nodes a side so that the grid reaches past the image on every side."""
    return int(size / lot.pitch_px) + 4


def etch(layout: Layout, lot: Lot, mounting: Mounting) -> Copper:
    """The copper of a layout."""
    nets = np.zeros((FINE * mounting.size, FINE * mounting.size), np.uint8)
    segments: list[Segment] = []
    for net, nodes in layout.traces:
        points = [mounting(*node) for node in _corners(nodes)]
        cv2.polylines(nets, [fine(points)], False, _label(net), round(lot.track_px * FINE))
        segments += [Segment(_label(net), a, b) for a, b in pairwise(points)]
    for pad in layout.pads:
        _draw_pad(nets, pad, mounting)
    for pad in layout.pads:
        if pad.drill:
            radius = round(pad.half_width * pad.drill * lot.pitch_px * FINE)
            cv2.circle(nets, tuple(fine([mounting(pad.column, pad.row)])[0].tolist()), radius, 0, -1)
    pads = tuple((mounting(p.column, p.row), lot.pitch_px * float(np.hypot(p.half_width, p.half_height))) for p in layout.pads)
    return Copper(nets, tuple(segments), pads, lot.track_px)


def fine(points: list[Point]) -> npt.NDArray[np.int32]:
    """Image pixels as whole pixels of the map, (N, 2)."""
    return np.rint(np.asarray(points, np.float64) * FINE).astype(np.int32)


def _label(net: int) -> int:
    return (net - 1) % 255 + 1


def _draw_pad(nets: Map, pad: Pad, mounting: Mounting) -> None:
    if pad.is_round:
        centre = fine([mounting(pad.column, pad.row)])[0].tolist()
        cv2.circle(nets, tuple(centre), round(pad.half_width * mounting.pitch_px * FINE), _label(pad.net), -1)
        return
    corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    points = [mounting(pad.column + sx * pad.half_width, pad.row + sy * pad.half_height) for sx, sy in corners]
    cv2.fillPoly(nets, [fine(points)], _label(pad.net))
    cv2.polylines(nets, [fine(points)], True, _label(pad.net), 2 * FINE)  # rounds the corners


def _corners(nodes: list[Node]) -> list[Node]:
    """The nodes without those in the middle of a straight run."""
    kept = [
        node
        for before, node, after in zip(nodes, nodes[1:], nodes[2:], strict=False)
        if (node[0] - before[0], node[1] - before[1]) != (after[0] - node[0], after[1] - node[1])
    ]
    return [nodes[0], *kept, nodes[-1]]
