"""How fast the audit is: images looked at, hashes compared; and how often it takes what is alike for a copy.

    python -m benchmarks.audit ../shared/data/bccd/images

Rates are of process time, so that a busy machine does not count, and of wall time on two threads, where it does.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np

from nightowl.data.hamming import pairs_within
from nightowl.data.image_checks import check_storage
from nightowl.data.images import decode_bgr, size_of_bytes
from nightowl.data.look import SIDE, look_at, perceptual_hash
from nightowl.data.manifest import Image
from nightowl.data.near_duplicates import MAX_PAIRS, find_near
from nightowl.data.threads import in_threads
from nightowl.files import sha256_bytes
from nightowl.progress import untracked
from tests.data.looking import COPIES, boards_of_one_layout, copy_of

ROUNDS = 5
NUM_HASHES = 100_000


def audit_one(content: bytes) -> None:
    """What pinning and prepare do with one new image: digest twice, header, and a look."""
    sha256_bytes(content)
    size_of_bytes(content, "a")
    sha256_bytes(content)
    look = look_at(content, "a")
    check_storage([Image("a.jpg", "", 1, 1, 1, "train", ())], {"a.jpg": look})


def rates(contents: list[bytes]) -> None:
    """Images a second of a core, and of two threads, in turn with a full decode."""
    ways: dict[str, Callable[[bytes], object]] = {
        "audit": audit_one,
        "look alone": lambda content: look_at(content, "a"),
        "full decode (decode_bgr)": lambda content: decode_bgr(content, "a"),
    }
    core: dict[str, list[float]] = {name: [] for name in ways}
    wall: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.process_time()
            for content in contents:
                way(content)
            core[name].append(len(contents) / (time.process_time() - start))
            begun = time.perf_counter()
            in_threads(way, contents, "", untracked)
            wall[name].append(len(contents) / (time.perf_counter() - begun))
    for name in ways:
        print(
            f"{name}: {statistics.median(core[name]):.0f} images/s a core, {statistics.median(wall[name]):.0f} on this machine"
        )


def search() -> None:
    """All pairs within 8 bits among 100,000 hashes: random ones, and half of them in groups that are near each other."""
    random = np.random.default_rng(0)
    hashes = random.integers(0, 2**64, NUM_HASHES, dtype=np.uint64)
    seeds = random.integers(0, NUM_HASHES // 2, NUM_HASHES // 2)
    flips = (np.uint64(1) << random.integers(0, 64, NUM_HASHES // 2, dtype=np.uint64)).astype(np.uint64)
    grouped = np.concatenate([hashes[: NUM_HASHES // 2], hashes[seeds] ^ flips])
    for name, values in (("random", hashes), ("half of them copies", grouped)):
        start = time.process_time()
        found = len(pairs_within(values, 8, MAX_PAIRS)[0])
        print(f"{NUM_HASHES} hashes, {name}: {time.process_time() - start:.1f} s, {found} pairs")
    few = random.integers(0, 2**64, 20, dtype=np.uint64)[random.integers(0, 20, NUM_HASHES)]
    start = time.process_time()
    found_near = find_near(few, random.integers(0, 255, (NUM_HASHES, SIDE * SIDE), dtype=np.uint8), 8, 0.03)
    print(f"{NUM_HASHES} hashes of 20 values: {time.process_time() - start:.1f} s, searched to {found_near.radius} bits")


def mistakes() -> None:
    """Boards of one layout with their own faults: pairs of 200 taken for copies, and copies of 20 found."""
    for registration in (1.0, 0.3, 0.1, 0.0):
        boards = list(boards_of_one_layout(200, registration))
        pairs, alike = _near(boards)
        said = [f"registration {registration}: {len(pairs)} false of 19900 pairs ({alike} alike)"]
        for how in COPIES:
            found = {tuple(pair) for pair in _near([*boards, *(copy_of(board, how) for board in boards[:20])])[0]}
            true = {(i, 200 + i) for i in range(20)}
            said.append(f"{how} {len(found & true)}/20, {len(found - true)} false")
        print("; ".join(said))


def _near(images: list[np.ndarray]) -> tuple[list[list[int]], int]:
    small = [cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for image in images]
    hashes = np.array([perceptual_hash(image) for image in small], np.uint64)
    found = find_near(hashes, np.array(small, np.uint8).reshape(len(small), -1), 8, 0.03)
    return found.pairs.tolist(), len(found.alike)


if __name__ == "__main__":
    rates([path.read_bytes() for path in sorted(Path(sys.argv[1]).glob("*.jpg"))])
    search()
    mistakes()
