"""Lots: boards made together look alike. A lot fixes the track geometry, the parts, the mounting and the light."""

from dataclasses import dataclass

import numpy as np

NUM_LOTS = 24


@dataclass(frozen=True)
class Lot:
    """The style shared by the boards of one lot. Lengths are in pixels, grey levels in 0..255."""

    track_px: float  # width of a trace
    pitch_px: float  # distance of neighbouring traces, centre to centre
    quarter_turns: int  # how the panel lies under the camera
    num_chips: int
    num_headers: int
    num_pours: int
    num_buses: int
    num_singles: int  # tries at a further single trace
    copper_grey: int
    bare_grey: int
    roughness: int  # how ragged etched edges are, in grey levels before the threshold
    gradient: int  # difference of light across the image, at most
    noise: int  # half width of the sensor noise


def random_source(seed: int, stream: int, index: int) -> np.random.Generator:
    """Random numbers that depend on nothing but these three; `stream` keeps lots (0) and boards (1) apart."""
    return np.random.default_rng([seed, stream, index])


def draw_lot(seed: int, lot: int) -> Lot:
    """The style of lot number `lot`."""
    rng = random_source(seed, 0, lot)
    track = 8.0 + 0.5 * int(rng.integers(0, 6))
    bright, dark = int(rng.integers(185, 236)), int(rng.integers(24, 66))
    light_on_dark = rng.random() < 0.7
    return Lot(
        track_px=track,
        pitch_px=2 * track + 0.5 * int(rng.integers(6, 15)),
        quarter_turns=int(rng.integers(0, 4)),
        num_chips=int(rng.integers(1, 3)),
        num_headers=int(rng.integers(0, 3)),
        num_pours=int(rng.integers(0, 3)),
        num_buses=int(rng.integers(3, 6)),
        num_singles=int(rng.integers(14, 40)),
        copper_grey=bright if light_on_dark else dark,
        bare_grey=dark if light_on_dark else bright,
        roughness=int(rng.integers(25, 60)),
        gradient=int(rng.integers(10, 36)),
        noise=int(rng.integers(2, 7)),
    )
