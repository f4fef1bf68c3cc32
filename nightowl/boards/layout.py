"""Layout: a routed copper layer on a square grid, as a board designer would draw it.

Pads of parts are placed first, then buses of parallel traces and single traces run over free nodes in eight directions. No
two nets touch: a node belongs to one net, diagonals do not cross, and wide things (pads, vias) keep the diagonals beside
them free. Coordinates are grid units, (column, row).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nightowl.boards.lot import Lot

Node = tuple[int, int]
DIRECTIONS: tuple[Node, ...] = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
_MIN_NODES = 3  # a shorter trace is not worth laying


@dataclass(frozen=True)
class Pad:
    """A land of copper; half sizes in grid units, `drill` the share of its size that is a hole in the middle (0: none)."""

    net: int
    column: float
    row: float
    half_width: float
    half_height: float
    is_round: bool = False
    drill: float = 0.0


@dataclass
class Layout:
    """What has been laid so far on a grid of `num_nodes` x `num_nodes`."""

    num_nodes: int
    traces: list[tuple[int, list[Node]]] = field(default_factory=list)
    pads: list[Pad] = field(default_factory=list)
    taken: set[Node] = field(default_factory=set)
    wide: set[Node] = field(default_factory=set)
    diagonals: set[frozenset[Node]] = field(default_factory=set)
    num_nets: int = 0

    def new_net(self) -> int:
        self.num_nets += 1
        return self.num_nets

    def is_free(self, node: Node) -> bool:
        return node not in self.taken and all(0 <= c < self.num_nodes for c in node)

    def at_rim(self, node: Node) -> bool:
        return any(c in (0, self.num_nodes - 1) for c in node)

    def can_step(self, start: Node, direction: int) -> bool:
        """Whether a trace may go on from `start`: the next node is free and a diagonal has room."""
        end = _next(start, direction)
        if not self.is_free(end):
            return False
        sides = ((end[0], start[1]), (start[0], end[1]))
        return direction % 2 == 0 or (frozenset(sides) not in self.diagonals and not self.wide.intersection(sides))

    def has_room_for_via(self, node: Node) -> bool:
        """Whether no diagonal passes close by `node`."""
        around = [_next(node, direction) for direction in (0, 2, 4, 6)]
        return all(frozenset((around[k], around[(k + 1) % 4])) not in self.diagonals for k in range(4))

    def place(self, pad: Pad, nodes: Sequence[Node]) -> None:
        self.pads.append(pad)
        self.taken.update(nodes)
        self.wide.update(nodes)

    def run(self, start: Node, directions: Sequence[int]) -> list[Node]:
        """The nodes from `start` along `directions`, as far as there is room; nothing is laid yet."""
        nodes = [start]
        for direction in directions:
            if _next(nodes[-1], direction) in nodes or not self.can_step(nodes[-1], direction):
                break
            nodes.append(_next(nodes[-1], direction))
        return nodes

    def lay(self, net: int, nodes: list[Node], *, via_at_start: bool = False) -> None:
        """Lay a trace that ends in a via, or leaves over the rim. Nothing is laid when it is too short."""
        while len(nodes) >= _MIN_NODES and not self._may_end_at(nodes[-1]):
            nodes = nodes[:-1]
        if len(nodes) < _MIN_NODES:
            return
        self.traces.append((net, nodes))
        self.taken.update(nodes)
        self.diagonals.update(frozenset(pair) for pair in pairwise(nodes) if _is_diagonal(*pair))
        for node in (nodes[0], nodes[-1]) if via_at_start else nodes[-1:]:
            if not self.at_rim(node):
                self.place(Pad(net, *node, 0.34, 0.34, is_round=True, drill=0.42), [node])

    def _may_end_at(self, node: Node) -> bool:
        return self.at_rim(node) or self.has_room_for_via(node)


def draw_layout(rng: np.random.Generator, lot: Lot, num_nodes: int) -> Layout:
    """A layout in the style of `lot`: parts, pours, buses, then single traces."""
    layout = Layout(num_nodes)
    for _ in range(lot.num_chips):
        _add_chip(rng, layout)
    for _ in range(lot.num_headers):
        _add_header(rng, layout)
    for _ in range(lot.num_pours):
        _add_pour(rng, layout)
    for _ in range(lot.num_buses):
        _add_bus(rng, layout)
    for _ in range(lot.num_singles):
        _add_single(rng, layout)
    return layout


def _add_chip(rng: np.random.Generator, layout: Layout) -> None:
    """Two facing rows of rectangular pads; each row fans out as a bus."""
    num_pins, span = int(rng.integers(3, 6)), int(rng.integers(3, 5))
    column, row = _corner(rng, layout, span, num_pins)
    body = [(column + c, row + r) for c in range(span + 1) for r in range(num_pins)]
    if not all(map(layout.is_free, body)):
        return
    rows: list[list[tuple[int, Node]]] = [[], []]
    for side, c in enumerate((column, column + span)):
        for r in range(row, row + num_pins):
            net = layout.new_net()
            layout.place(Pad(net, c, r, 0.62, 0.3), [(c, r)])
            rows[side].append((net, (c, r)))
    layout.taken.update(body)
    for pins, heading in zip(rows, (4, 0), strict=True):
        _fan_out(rng, layout, pins, heading)


def _add_header(rng: np.random.Generator, layout: Layout) -> None:
    """A row of round pads with drill holes; some pins have a trace."""
    num_pins = int(rng.integers(2, 6))
    column, row = _corner(rng, layout, 1, num_pins)
    nodes = [(column, row + r) for r in range(num_pins)]
    if not all(layout.is_free(node) and layout.has_room_for_via(node) for node in nodes):
        return
    pins = [(layout.new_net(), node) for node in nodes]
    for pin, (net, node) in enumerate(pins):
        layout.place(Pad(net, *node, 0.4, 0.4, is_round=pin > 0, drill=0.42), [node])
    _fan_out(rng, layout, pins, int(rng.choice((0, 4))))


def _add_pour(rng: np.random.Generator, layout: Layout) -> None:
    """A plane of copper with one net."""
    width, height = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    column, row = _corner(rng, layout, width, height)
    nodes = [(column + c, row + r) for c in range(width + 1) for r in range(height + 1)]
    if not all(layout.is_free(node) and layout.has_room_for_via(node) for node in nodes):
        return
    pad = Pad(layout.new_net(), column + width / 2, row + height / 2, width / 2 + 0.3, height / 2 + 0.3)
    layout.place(pad, nodes)


def _add_bus(rng: np.random.Generator, layout: Layout) -> None:
    """Parallel traces that enter over one side of the image."""
    heading, num_lines = 2 * int(rng.integers(0, 4)), int(rng.integers(2, 6))
    first = int(rng.integers(1, max(2, layout.num_nodes - num_lines)))
    rim = 0 if heading in (0, 2) else layout.num_nodes - 1
    starts = [(rim, first + k) if heading in (0, 4) else (first + k, rim) for k in range(num_lines)]
    free = [node for node in starts if layout.is_free(node)]
    _fan_out(rng, layout, [(layout.new_net(), node) for node in free], heading)


def _add_single(rng: np.random.Generator, layout: Layout) -> None:
    """One trace from via to via, or over the rim."""
    column, row = (int(c) for c in rng.integers(0, layout.num_nodes, 2))
    if not layout.is_free((column, row)) or not layout.has_room_for_via((column, row)):
        return
    heading = 2 * int(rng.integers(0, 4))
    layout.lay(layout.new_net(), layout.run((column, row), _route(rng, heading, 0, 1)), via_at_start=True)


def _fan_out(rng: np.random.Generator, layout: Layout, pins: Sequence[tuple[int, Node]], heading: int) -> None:
    """A trace from each pin, all bending together so that they stay parallel."""
    state = rng.integers(0, 2**32)
    for k, (net, node) in enumerate(pins):
        route = _route(np.random.default_rng(int(state)), heading, k, len(pins))
        layout.lay(net, layout.run(node, route))


def _route(rng: np.random.Generator, heading: int, k: int, num_lines: int) -> list[int]:
    """Directions of line `k` of a bus: straight, a 45 degree jog or a nested right-angle turn, then straight on."""
    turn = int(rng.choice((-1, 1)))
    before, jog, middle = (int(n) for n in rng.integers((2, 1, 2), (6, 5, 8)))
    if rng.random() < 0.35:
        toward_greater = (DIRECTIONS[(heading + 2 * turn) % 8][0] + DIRECTIONS[(heading + 2 * turn) % 8][1]) > 0
        before += (num_lines - 1 - k) if toward_greater else k
        return [heading] * before + [(heading + turn) % 8] + [(heading + 2 * turn) % 8] * 40
    again = turn if rng.random() < 0.3 else -turn
    jogs = [(heading + turn) % 8] * jog + [heading] * middle + [(heading + again) % 8] * int(rng.integers(1, 4))
    return [heading] * before + jogs + [heading] * 40


def _corner(rng: np.random.Generator, layout: Layout, width: int, height: int) -> Node:
    column = int(rng.integers(2, max(3, layout.num_nodes - 2 - width)))
    return column, int(rng.integers(2, max(3, layout.num_nodes - 2 - height)))


def _next(node: Node, direction: int) -> Node:
    return node[0] + DIRECTIONS[direction][0], node[1] + DIRECTIONS[direction][1]


def _is_diagonal(start: Node, end: Node) -> bool:
    return start[0] != end[0] and start[1] != end[1]
