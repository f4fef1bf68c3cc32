"""What source a training's identity covers: all that it imports, and no more."""

from collections.abc import Iterable
from pathlib import Path

import pytest

import nightowl.stages.training_inputs as start
from nightowl.params import Params
from nightowl.settings import Settings
from nightowl.stages.workspace import Workspace
from nightowl.training.base import BaseWeights
from nightowl.training.sources import imported_sources
from tools.stage_libraries import imported_by

ROOT = Path(start.__file__).parents[2]
SAYS_HOW_IT_WENT = {
    "display",
    "interface",
    "launch",
    "memory_use",
    "record",
    "recorded",
}  # of nightowl.training: nothing in them decides a result
REFUSES = {"nightowl.data.golden", "nightowl.data.findings", "nightowl.evaluation.device"}


def modules() -> set[str]:
    found = imported_sources(Path(start.__file__), ROOT, start._PACKAGES, start._NO_PART_IN_IT)
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found}


def test_everything_that_the_stage_imports_and_that_decides_its_result_is_covered() -> None:
    imported = {module for module in imported_by("train") if module.startswith(start._PACKAGES)}
    sources = {module for module in imported if not _is_empty(module)}
    assert sources - modules() == REFUSES | {f"nightowl.training.{name}" for name in SAYS_HOW_IT_WENT}


def test_what_the_stage_does_not_import_is_not_covered() -> None:
    itself = "nightowl.stages.training_inputs"
    assert modules() - imported_by("train") <= {itself, "nightowl.data.cache", "nightowl.data.augment"}
    assert not any(module.startswith("nightowl.data.formats") for module in modules())
    assert "nightowl.evaluation.gate" not in modules()


def test_where_data_lie_may_change_in_the_middle_of_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another rule for where data is looked for gives another file, and must give the same identity."""
    assert "nightowl.data.source" not in modules()
    assert not any(path.name == "source.py" for path in given_to_identity(monkeypatch))


def given_to_identity(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that the stage and its ranks have in a training's identity."""
    given: list[Path] = []

    def keep(dataset_sha256: str, params: Params, base: BaseWeights, code: Iterable[Path]) -> None:
        given.extend(code)

    monkeypatch.setattr(start, "training_identity", keep)
    monkeypatch.setattr(start, "sha256_file", lambda path: "0" * 64)
    base = BaseWeights.model_construct()
    start.identity_of(Params(), Workspace(ROOT, "demo", Settings()), base)
    assert ROOT / "nightowl" / "training" / "loop.py" in given
    return given


def test_imports_are_followed_where_they_lead_and_no_further(tmp_path: Path) -> None:
    files = {
        "a/start.py": "import a.one\nfrom b import elsewhere\n",
        "a/one.py": "def f():\n    from a.inner import two\n",  # inside a function, and a module by `from`
        "a/inner/__init__.py": "import a.around\n",  # runs before what is in it
        "a/inner/two.py": "from a.one import f\n",  # a circle
        "a/around.py": "import numpy\n",
        "a/alone.py": "from a import one\n",
        "b/elsewhere.py": "import a.alone\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = imported_sources(tmp_path / "a/start.py", tmp_path, ["a"])
    assert [str(path.relative_to(tmp_path)) for path in found] == [
        "a/around.py",
        "a/inner/__init__.py",
        "a/inner/two.py",
        "a/one.py",
        "a/start.py",
    ]


def _is_empty(module: str) -> bool:
    package = ROOT.joinpath(*module.split("."), "__init__.py")
    return package.is_file() and not package.stat().st_size
