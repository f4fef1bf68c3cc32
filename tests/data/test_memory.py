from pathlib import Path

import pytest

from nightowl.data.memory import available_bytes

GIB = 1 << 30


@pytest.mark.parametrize(
    ("limit", "current", "idle", "expected", "reason"),
    [
        (None, None, 0, 8 * GIB, "no container"),
        ("max\n", "1", 0, 8 * GIB, "a container without limit"),
        (f"{2 * GIB}\n", f"{GIB}\n", 0, GIB, "a container's limit, less what it uses"),
        (f"{2 * GIB}\n", f"{2 * GIB}\n", GIB, GIB, "pages of files that nobody used lately can go"),
        (f"{GIB}", f"{2 * GIB}", 0, 0, "over its limit"),
    ],
)
def test_a_container_has_what_its_limit_leaves(
    tmp_path: Path, limit: str | None, current: str | None, idle: int, expected: int, reason: str
) -> None:
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:    {8 * GIB // 1024} kB\n")
    (tmp_path / "memory.stat").write_text(f"anon 1\ninactive_file {idle}\nactive_file 2\n")
    if limit is not None and current is not None:
        (tmp_path / "memory.max").write_text(limit)
        (tmp_path / "memory.current").write_text(current)
    assert available_bytes(tmp_path / "meminfo", tmp_path) == expected, reason


def test_where_nothing_can_be_read_nothing_is_known(tmp_path: Path) -> None:
    assert available_bytes(tmp_path / "absent", tmp_path) is None
