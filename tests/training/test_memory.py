from pathlib import Path

import pytest

from nightowl.data.manifest import Image
from nightowl.training.memory import available_bytes, decoded_bytes, fits_in_memory

GIB = 1 << 30


def sized(width: int, height: int) -> Image:
    return Image("x.jpg", "0" * 64, 1, width, height, "train", ())


@pytest.mark.parametrize(
    ("images", "expected", "reason"),
    [
        ([], 0, "none"),
        ([sized(640, 480)], 3 * 320 * 240, "scaled by its long side"),
        ([sized(100, 200)], 3 * 320 * 160, "scaled up too"),
        ([sized(320, 320)] * 3, 3 * 3 * 320 * 320, "added up"),
        ([sized(3, 2)], 3 * 320 * 214, "rounded up"),
    ],
)
def test_decoded_size(images: list[Image], expected: int, reason: str) -> None:
    assert decoded_bytes(images, 320) == expected, reason


@pytest.mark.parametrize(
    ("need", "available", "fits", "reason"),
    [
        (1 * GIB, 4 * GIB, True, "a quarter"),
        (3 * GIB, 4 * GIB, False, "most of it: others need some"),
        (1, None, False, "unknown is not plenty"),
    ],
)
def test_only_a_moderate_part_is_used(need: int, available: int | None, fits: bool, reason: str) -> None:
    assert fits_in_memory(need, available) is fits, reason


@pytest.mark.parametrize(
    ("limit", "current", "expected", "reason"),
    [
        (None, None, 8 * GIB, "no container"),
        ("max\n", "1", 8 * GIB, "a container without limit"),
        (f"{2 * GIB}\n", f"{GIB}\n", GIB, "a container's limit, less what it uses"),
        (f"{GIB}", f"{2 * GIB}", 0, "over its limit"),
    ],
)
def test_a_container_has_what_its_limit_leaves(
    tmp_path: Path, limit: str | None, current: str | None, expected: int, reason: str
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:    {8 * GIB // 1024} kB\n")
    if limit is not None and current is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(current)
    assert available_bytes(tmp_path / "meminfo", tmp_path) == expected, reason


def test_where_nothing_can_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert available_bytes(tmp_path / "absent", tmp_path) is None
