"""Faults: the six that inspection of bare boards looks for, each drawn by its own geometry into the map of nets.

A fault either finds a place where it is what its name says (an open cuts a trace right through, a short joins two nets and a
spur joins none) or is not drawn. Its box is tight around the map pixels that changed, with a margin; boxes keep apart.
"""

from collections.abc import Callable, Sequence

import cv2
import numpy as np
import numpy.typing as npt

from nightowl.boards.copper import FINE, Copper, Map, Point, Segment, fine
from nightowl.data.manifest import Box

CLASSES = ("open", "short", "mousebite", "spur", "spurious_copper", "pin_hole")
MARGIN_PX = 3
RIM_PX = 10  # no fault nearer to the rim of the image than this
_TRIES = 60

Draw = Callable[[np.random.Generator, Copper, Map], bool]


def add_fault(rng: np.random.Generator, copper: Copper, nets: Map, class_id: int, others: Sequence[Box]) -> Box | None:
    """Draw a fault of the class into `nets` (changed in place) and return its box; None, and no change, without a place."""
    draw = (_open, _short, _mousebite, _spur, _spurious_copper, _pin_hole)[class_id]
    for _ in range(_TRIES):
        changed = nets.copy()
        if not draw(rng, copper, changed):
            continue
        box = _box_around(nets, changed, class_id)
        if box is not None and not any(_too_close(box, other) for other in others):
            nets[:] = changed
            return box
    return None


def _open(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A gap right across a trace, with ends that are not quite parallel."""
    place = _place_on_trace(rng, copper, clear_px=8)
    if place is None:
        return False
    segment, centre, along, normal = place
    half_gap, half_width = 2.5 + 2.0 * rng.random(), copper.track_px / 2 + 2
    slant = 1.6 * (rng.random(4) - 0.5)
    corners = [(-half_gap, -1.0), (half_gap, -1.0), (half_gap, 1.0), (-half_gap, 1.0)]
    points = [_move(centre, along, a + s, normal, side * half_width) for (a, side), s in zip(corners, slant, strict=True)]
    return _paint(nets, points, 0, only=segment.net)


def _short(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A bridge of copper to the next conductor."""
    place = _place_on_trace(rng, copper, clear_px=3)
    if place is None:
        return False
    segment, centre, along, normal = place
    reach = copper.track_px / 2
    gap = _free_distance(nets, _move(centre, along, 0, normal, reach + 0.8), normal, 1.9 * copper.track_px)
    far = _at(nets, _move(centre, along, 0, normal, reach + gap + 2.0))
    if gap < 4 or far in (0, segment.net):
        return False
    half = 2.0 + 1.5 * rng.random()
    waist = half * (0.7 + 0.4 * rng.random())
    lean = 3 * (rng.random() - 0.5)
    outline = [(-half - 1, reach - 2), (-waist, reach + gap / 2), (lean - half, reach + gap + 2.5)]
    outline += [(lean + half, reach + gap + 2.5), (waist, reach + gap / 2), (half + 1, reach - 2)]
    points = [_move(centre, along, a, normal, n) for a, n in outline]
    return _paint(nets, points, segment.net, only=0)


def _mousebite(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A rounded notch in the edge of a trace, which it does not cut through."""
    place = _place_on_trace(rng, copper, clear_px=5)
    if place is None:
        return False
    segment, centre, along, normal = place
    depth, half = copper.track_px * (0.5 + 0.2 * rng.random()), copper.track_px * (0.45 + 0.25 * rng.random())
    points = _bulge(rng, centre, along, normal, copper.track_px / 2, -depth, half)
    return _paint(nets, points, 0, only=segment.net)


def _spur(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A bump on the edge of a trace, which reaches no other conductor."""
    place = _place_on_trace(rng, copper, clear_px=5)
    if place is None:
        return False
    segment, centre, along, normal = place
    height, half = 4.5 + 3.5 * rng.random(), 2.5 + 1.5 * rng.random()
    edge = copper.track_px / 2
    for shift in (-half, 0.0, half):
        start = _move(centre, along, shift, normal, edge + 0.8)
        if _free_distance(nets, start, normal, height + 4) < height + 2.5:
            return False
    return _paint(nets, _bulge(rng, centre, along, normal, edge, height, half), segment.net, only=0)


def _spurious_copper(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A blob that touches nothing."""
    radius = 3.5 + 2.5 * rng.random()
    place = _place_inside(rng, nets == 0, radius + 3)
    return place is not None and _paint(nets, _blob(rng, place, radius), 255, only=0)


def _pin_hole(rng: np.random.Generator, copper: Copper, nets: Map) -> bool:
    """A small hole with copper all around."""
    radius = 1.8 + 1.2 * rng.random()
    place = _place_inside(rng, nets != 0, radius + 1.2)
    return place is not None and _paint(nets, _blob(rng, place, radius), 0, only=None)


def _place_on_trace(rng: np.random.Generator, copper: Copper, clear_px: float) -> tuple[Segment, Point, Point, Point] | None:
    """A segment, a point on its middle line away from bends, pads and the rim, and the unit vectors along and across."""
    lengths = np.array([max(0.0, s.length - 2 * copper.track_px) for s in copper.segments])
    if not lengths.sum():
        return None
    at = rng.random() * lengths.sum()
    index = int(np.searchsorted(np.cumsum(lengths), at, side="right"))
    segment = copper.segments[min(index, len(lengths) - 1)]
    (x0, y0), (x1, y1), length = segment.start, segment.end, segment.length
    along = ((x1 - x0) / length, (y1 - y0) / length)
    side = 1 if rng.random() < 0.5 else -1
    t = copper.track_px + rng.random() * max(0.0, length - 2 * copper.track_px)
    centre = (x0 + along[0] * t, y0 + along[1] * t)
    if not _is_inside(centre, copper.size) or any(_distance(centre, p) < r + clear_px for p, r in copper.pads):
        return None
    return segment, centre, along, (-side * along[1], side * along[0])


def _place_inside(rng: np.random.Generator, room: npt.NDArray[np.bool_], depth: float) -> Point | None:
    """A random point at least `depth` inside `room` (a mask of the map), or None."""
    coarse = np.ascontiguousarray(room[::2, ::2]).view(np.uint8)
    inside = cv2.distanceTransform(coarse, cv2.DIST_L2, 3) >= depth * FINE / 2
    rim = RIM_PX * FINE // 2
    rows, columns = np.nonzero(inside[rim:-rim, rim:-rim])
    if not len(rows):
        return None
    pick = int(rng.integers(len(rows)))
    return (int(columns[pick]) + rim) * 2 / FINE, (int(rows[pick]) + rim) * 2 / FINE


def _bulge(
    rng: np.random.Generator, centre: Point, along: Point, normal: Point, edge: float, height: float, half: float
) -> list[Point]:
    """Half an uneven ellipse over the edge of a trace: outwards where `height` is positive, else into the copper."""
    root = -1.5 if height > 0 else 1.5  # overlaps the edge, so that nothing is left between
    angles = np.linspace(0, np.pi, 9)
    uneven = 1 + 0.25 * (rng.random(9) - 0.5)
    rounded = [(half * float(np.cos(a)), height * float(np.sin(a) * u)) for a, u in zip(angles, uneven, strict=True)]
    outline = [(half, root), *rounded, (-half, root)]
    return [_move(centre, along, a, normal, edge + n) for a, n in outline]


def _blob(rng: np.random.Generator, centre: Point, radius: float) -> list[Point]:
    angles = np.linspace(0, 2 * np.pi, 10, endpoint=False)
    radii = radius * (0.75 + 0.45 * rng.random(10))
    return [(centre[0] + float(r * np.cos(a)), centre[1] + float(r * np.sin(a))) for a, r in zip(angles, radii, strict=True)]


def _paint(nets: Map, points: list[Point], value: int, only: int | None) -> bool:
    """Fill a polygon with `value`, touching only pixels of net `only` where one is given. Returns whether anything changed."""
    mask = np.zeros_like(nets)
    cv2.fillPoly(mask, [fine(points)], 1)
    where = mask.astype(bool) if only is None else (mask != 0) & (nets == only)
    nets[where] = value
    return bool(where.any())


def _free_distance(nets: Map, start: Point, direction: Point, limit: float) -> float:
    """Pixels of bare board from `start` along `direction`, at most `limit`."""
    for step in range(int(limit * FINE)):
        if _at(nets, _move(start, direction, step / FINE, direction, 0)) != 0:
            return step / FINE
    return limit


def _at(nets: Map, point: Point) -> int:
    """The net at a point; 0 outside the image."""
    column, row = (int(c) for c in fine([point])[0])
    return int(nets[row, column]) if 0 <= row < len(nets) and 0 <= column < len(nets) else 0


def _box_around(before: Map, after: Map, class_id: int) -> Box | None:
    changed = before != after
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    size = before.shape[0] // FINE
    x1, y1 = columns.min() // FINE - MARGIN_PX, rows.min() // FINE - MARGIN_PX
    x2, y2 = columns.max() // FINE + 1 + MARGIN_PX, rows.max() // FINE + 1 + MARGIN_PX
    if x1 < 0 or y1 < 0 or x2 > size or y2 > size:
        return None
    return Box(class_id, float(x1), float(y1), float(x2), float(y2))


def _too_close(a: Box, b: Box, apart_px: float = 4) -> bool:
    return a.x1 < b.x2 + apart_px and b.x1 < a.x2 + apart_px and a.y1 < b.y2 + apart_px and b.y1 < a.y2 + apart_px


def _is_inside(point: Point, size: int) -> bool:
    return all(RIM_PX <= c <= size - RIM_PX for c in point)


def _distance(a: Point, b: Point) -> float:
    return float(np.hypot(a[0] - b[0], a[1] - b[1]))


def _move(point: Point, along: Point, by: float, normal: Point, across: float) -> Point:
    return point[0] + along[0] * by + normal[0] * across, point[1] + along[1] * by + normal[1] * across
