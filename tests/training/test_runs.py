import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nightowl.errors import StageFailed
from nightowl.params import Params, PrepareParams, TrainParams
from nightowl.training.base import BaseWeights
from nightowl.training.commits import commit
from nightowl.training.runs import run_key, training_run

RANDOM = BaseWeights(kind="yaml", name="yolo11n.yaml", sha256=None)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "loop.py").write_text("x = 1\n")
    return tmp_path / "code"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda code: run_key("1" * 64, Params(), RANDOM, [code]), "other data"),
        (lambda code: run_key("0" * 64, Params(train=TrainParams(epochs=3)), RANDOM, [code]), "other training"),
        (lambda code: run_key("0" * 64, Params(prepare=PrepareParams(image_size=320)), RANDOM, [code]), "another size"),
        (
            lambda code: run_key("0" * 64, Params(), RANDOM.model_copy(update={"name": "yolo11s.yaml"}), [code]),
            "another base",
        ),
        (lambda code: (code / "loop.py").write_text("x = 2\n") and run_key("0" * 64, Params(), RANDOM, [code]), "other code"),
    ],
)
def test_what_decides_the_result_changes_the_key(code: Path, changed: Callable[[Path], str], reason: str) -> None:
    plain = run_key("0" * 64, Params(), RANDOM, [code])
    assert changed(code) != plain, reason


def test_what_only_judges_leaves_the_key(code: Path) -> None:
    judged = Params.model_validate({"gate": {"min_map50": 0.9}, "evaluate": {"nms_iou": 0.5}})
    assert run_key("0" * 64, judged, RANDOM, [code]) == run_key("0" * 64, Params(), RANDOM, [code])


def test_a_run_keeps_its_folder_from_one_time_to_the_next(tmp_path: Path) -> None:
    with training_run(tmp_path, "a") as run:
        (run / "state").write_text("half way")
    with training_run(tmp_path, "a") as run:
        assert (run / "state").read_text() == "half way"


def test_a_second_process_is_refused_while_the_first_trains(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from nightowl.training.runs import training_run\n"
    code += "with training_run(Path(sys.argv[1]), 'a'): pass"
    with training_run(tmp_path, "a"):
        second = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert second.returncode != 0
    assert "StageFailed" in second.stderr and "is running in another process" in second.stderr
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_another_training_removes_what_is_over_and_nothing_else(tmp_path: Path) -> None:
    for name in ("finished", "interrupted", "abandoned", "held"):
        with training_run(tmp_path, name) as run:
            (run / "last.pt").write_text(name)
    commit(tmp_path / "finished", 3, 2, True, (tmp_path / "finished" / "last.pt",))
    commit(tmp_path / "held", 3, 2, True, (tmp_path / "held" / "last.pt",))
    os.utime(tmp_path / "abandoned", (0, 0))
    with training_run(tmp_path, "held"), training_run(tmp_path, "new"):
        left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["held", "interrupted", "new"]


def test_an_unfinished_run_of_other_inputs_is_not_a_reason_to_wait(tmp_path: Path) -> None:
    with training_run(tmp_path, "a"), training_run(tmp_path, "b") as run:
        assert run.name == "b"
    with pytest.raises(StageFailed), training_run(tmp_path, "a"), training_run(tmp_path, "a"):
        pass
