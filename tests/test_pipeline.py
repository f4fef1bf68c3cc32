"""Facts written twice: dvc.yaml against the code that its stages import, the params they read, and the libraries they use."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from nightowl.params import SECTIONS, Params
from nightowl.stages.workspace import STAGES
from tools.stage_libraries import imported_by, libraries_of

ROOT = Path(__file__).resolve().parents[1]
PIPELINE = YAML(typ="safe", pure=True).load((ROOT / "dvc.yaml").read_text())["stages"]


def dependencies(stage: str) -> list[str]:
    return [str(path) for path in PIPELINE[stage]["do"]["deps"]]


def source_of(module: str) -> str:
    path = ROOT / module.replace(".", "/")
    return str((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(ROOT))


def test_dvc_yaml_has_the_stages_of_the_code_in_order() -> None:
    assert tuple(PIPELINE) == STAGES


@pytest.mark.parametrize("stage", STAGES)
def test_no_shell_stays_between_dvc_and_a_stage(stage: str) -> None:
    assert PIPELINE[stage]["do"]["cmd"] == f"exec python -m nightowl.stages.{stage} ${{item}}"


@pytest.mark.parametrize("stage", STAGES)
def test_every_module_that_a_stage_imports_is_among_its_dependencies(stage: str) -> None:
    ours = {module for module in imported_by(stage) if module.partition(".")[0] == "nightowl"}
    sources = {source_of(module) for module in ours} | {f"nightowl/stages/{stage}.py"}
    given = dependencies(stage)
    missing = {path for path in sources if not any(path == dep or path.startswith(f"{dep}/") for dep in given)}
    missing = {path for path in missing if (ROOT / path).stat().st_size}  # an empty __init__.py can change nothing
    assert missing == set(), f"dvc.yaml: {stage}: add to deps: {sorted(missing)}"


@pytest.mark.parametrize("stage", STAGES)
def test_every_code_dependency_of_a_stage_is_imported_by_it(stage: str) -> None:
    sources = {
        source_of(module) for module in imported_by(stage) | {f"nightowl.stages.{stage}"} if module.startswith("nightowl")
    }
    code = [path for path in dependencies(stage) if path.startswith("nightowl/")]
    assert [path for path in code if not any(s == path or s.startswith(f"{path}/") for s in sources)] == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_library_files_hold_the_pinned_versions(stage: str) -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert f"libraries/{stage}.txt" in dependencies(stage)
    assert (ROOT / "libraries" / f"{stage}.txt").read_text().splitlines() == libraries_of(stage, lock), "run `make lock`"


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_params_that_exist_in_both_files(stage: str) -> None:
    params = PIPELINE[stage]["do"]["params"]
    shared = [entry for entry in params if isinstance(entry, str)]
    own = next(entry for entry in params if isinstance(entry, dict))["detectors/${item}/params.yaml"]
    assert {key.partition(".")[0] for key in shared} == set(own) <= set(SECTIONS)
    defaults = Params().model_dump()
    assert all(key.partition(".")[0] in defaults for key in shared)


def test_what_one_stage_makes_another_may_read_but_nobody_else_writes() -> None:
    outputs = [out for stage in STAGES for out in PIPELINE[stage]["do"]["outs"]]
    assert outputs == [f"out/${{item}}/{stage}" for stage in STAGES]
    for stage in STAGES:
        for path in dependencies(stage):
            assert not path.startswith("out/") or any(path == o or path.startswith(f"{o}/") for o in outputs)
