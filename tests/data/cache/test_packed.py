import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nightowl.data.cache.forms import Form
from nightowl.data.cache.recipe import Recipe
from tests.data.cache.caches import RAW, SIZE, a_source
from tests.data.cache.test_faults import in_a_process, pixels_of, status_of


def test_raw_images_are_views_that_nobody_can_change(tmp_path: Path) -> None:
    packed = a_source(tmp_path / "source").build(tmp_path / "home")
    assert np.shares_memory(packed.image(3), packed.image(3))
    assert not packed.image(3).flags.writeable and packed.image(3).flags.c_contiguous
    assert packed.image(3).ctypes.data % 64 == 0
    with pytest.raises(ValueError, match="read-only"):
        packed.image(3)[0, 0, 0] = 1


@pytest.mark.parametrize("recipe", [RAW, Recipe(SIZE, "load_image", Form("jpeg", 95))])
def test_forks_threads_and_other_processes_read_the_same(tmp_path: Path, recipe: Recipe) -> None:
    packed = a_source(tmp_path / "source").build(tmp_path / "home", recipe)
    expected = pixels_of(packed)

    def same() -> None:
        assert pixels_of(packed) == expected
        assert pixels_of(pickle.loads(pickle.dumps(packed))) == expected

    assert [status_of(process) for process in [in_a_process(same) for _ in range(3)]] == [0, 0, 0]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: packed.image(number).tobytes(), range(10))) == expected


def test_an_unknown_digest_is_not_found(tmp_path: Path) -> None:
    assert a_source(tmp_path / "source", 2).build(tmp_path / "home").find("0" * 64) is None


def test_a_reader_keeps_its_images_when_the_files_are_removed(tmp_path: Path) -> None:
    packed = a_source(tmp_path / "source", 5).build(tmp_path / "home")
    expected = pixels_of(packed)
    for path in (tmp_path / "home").rglob("*.bin"):
        os.unlink(path)
    assert pixels_of(packed) == expected


def test_a_worker_that_gets_it_loads_neither_arrow_nor_pydantic(tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(pickle.dumps(a_source(tmp_path / "source", 2).build(tmp_path / "home")))
    code = "import pickle, sys; p = pickle.load(open(sys.argv[1], 'rb')); p.image(0); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code, str(sent)], capture_output=True, text=True, check=True).stdout.split()
    assert {"pyarrow", "pydantic", "pandas", "torch"} & set(loaded) == set()
