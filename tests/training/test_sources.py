"""What source a training's identity covers: all that it imports, and no more."""

from pathlib import Path

import nightowl.stages.training_inputs as start
from nightowl.training.sources import imported_sources
from tools.stage_libraries import imported_by

ROOT = Path(start.__file__).parents[2]
PACKAGES = ("nightowl.data", "nightowl.evaluation", "nightowl.training")
SAYS_HOW_IT_WENT = {"display", "launch", "record"}  # of nightowl.training: nothing in them decides a result
REFUSES = {"nightowl.data.golden", "nightowl.data.findings", "nightowl.evaluation.device"}


def modules() -> set[str]:
    found = imported_sources(Path(start.__file__), ROOT, PACKAGES)
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in found}


def test_everything_that_the_stage_imports_and_that_decides_its_result_is_covered() -> None:
    imported = {module for module in imported_by("train") if module.startswith(PACKAGES)}
    sources = {module for module in imported if not _is_empty(module)}
    assert sources - modules() == REFUSES | {f"nightowl.training.{name}" for name in SAYS_HOW_IT_WENT}


def test_what_the_stage_does_not_import_is_not_covered() -> None:
    where_data_lie, itself = "nightowl.data.source", "nightowl.stages.training_inputs"
    assert modules() - imported_by("train") <= {where_data_lie, itself, "nightowl.data.cache", "nightowl.data.augment"}
    assert not any(module.startswith("nightowl.data.formats") for module in modules())
    assert "nightowl.evaluation.gate" not in modules()


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
