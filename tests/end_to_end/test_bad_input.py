"""What a user may get wrong: one clear line, exit code 2, nothing half-written."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.boards import generate
from tests.datasets import a_dataset, write_yolo_dataset
from tests.end_to_end.checkouts import TINY, Checkout, clone

PARAMS = "detectors/demo/params.yaml"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, prefect_home: Path) -> Checkout:
    return clone(tmp_path_factory.mktemp("bad") / "nightowl", prefect_home)


def written(checkout: Checkout) -> set[str]:
    """Whatever of a night could be half-written."""
    places = [checkout.root / "inputs" / "demo", checkout.root / "out", *checkout.root.glob(".nightowl/nights/*/*/tree")]
    return {str(path) for path in places if path.exists()}


def empty(folder: Path) -> None:
    (folder / "images" / "train").mkdir(parents=True)
    (folder / "data.yaml").write_text("names: [a]\ntrain: images/train\nval: images/train\n")


@pytest.mark.parametrize(
    ("make", "expected", "reason"),
    [
        (lambda folder: None, "no such folder", "no such path"),
        (lambda folder: folder.mkdir(), "", "nothing that is a data set"),
        (empty, "", "a layout without a single image"),
    ],
)
def test_an_unusable_source_is_one_line_and_exit_2(
    fresh: Checkout, tmp_path: Path, make: Callable[[Path], None], expected: str, reason: str
) -> None:
    make(tmp_path / "source")
    done = fresh.run("nightowl", "inputs", "pin", "demo", "--source", str(tmp_path / "source"))
    assert done.returncode == 2, reason
    assert done.stderr.startswith("nightowl: ")
    assert expected in done.stderr
    assert str(tmp_path / "source") in done.stderr
    assert "Traceback" not in done.stderr
    assert written(fresh) == set()


def test_unknown_params_end_a_night_before_it_begins_with_every_fault(fresh: Checkout) -> None:
    path = fresh.root / PARAMS
    path.write_text(TINY.replace("epochs: 1", "epoch: 1\n  lr0: -1"))
    try:
        done = fresh.run("nightowl", "night", "demo")
    finally:
        path.write_text(TINY)
    assert done.returncode == 2
    assert "train.epoch is not a known key" in done.stderr
    assert "train.lr0: input should be greater than 0, got -1" in done.stderr
    assert written(fresh) == set()


def test_an_unreadable_registry_is_one_line(fresh: Checkout, tmp_path: Path) -> None:
    broken = tmp_path / "registry.db"
    broken.write_bytes(b"this is no database at all, whatever its name says" * 40)
    done = fresh.run("nightowl", "models", "demo", NIGHTOWL_REGISTRY_URI=f"sqlite:///{broken}")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(broken) in done.stderr


def test_base_weights_that_cannot_be_had_say_what_to_do(fresh: Checkout, tmp_path: Path) -> None:
    write_yolo_dataset(tmp_path / "source", a_dataset())
    path = fresh.root / PARAMS
    path.write_text(TINY.replace("yolo11n.yaml", "yolo11n.pt"))
    try:
        done = fresh.run(
            "nightowl", "inputs", "pin", "demo", "--source", str(tmp_path / "source"), NIGHTOWL_ALLOW_DOWNLOADS="false"
        )
    finally:
        path.write_text(TINY)
    assert done.returncode == 2
    assert "yolo11n.pt" in done.stderr
    assert "yolo11n.yaml" in done.stderr, "it must name the way out: random weights"
    assert written(fresh) == set()


def test_init_writes_a_detector_that_pins_and_refuses_a_name_that_is_taken(fresh: Checkout, tmp_path: Path) -> None:
    demo = fresh.root.parent / "boards"
    generate(demo, num_images=24)
    try:
        printed = fresh.check("nightowl", "init", "line-3", "--source", str(demo))
        assert "nightowl night line-3" in printed
        assert "images" in fresh.check("nightowl", "data", "inspect", str(demo))
        again = fresh.run("nightowl", "init", "line-3", "--source", str(demo))
        assert again.returncode == 2
        assert "already" in again.stderr
    finally:
        fresh.check("git", "checkout", "-q", "--", ".")
        shutil.rmtree(fresh.root / "detectors" / "line-3", ignore_errors=True)
