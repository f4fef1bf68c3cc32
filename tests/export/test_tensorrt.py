"""TensorRT without a GPU: every name that we call is declared by the bindings; our side of each call works on a stand-in."""

import ast
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest

from nightowl.cloud.bucket import FolderBucket
from nightowl.errors import StageFailed, StorageError, UserError, WeightsError
from nightowl.export import tensorrt
from nightowl.export.artefact import open_artefact
from nightowl.export.engine import TensorRtRunner, TorchMemory
from nightowl.export.engine_build import build_engine
from nightowl.export.engine_record import EngineRecord, Fingerprint, differences
from nightowl.export.engine_store import EngineStore
from nightowl.export_params import ExportParams, TensorRtParams
from nightowl.files import sha256_file
from tests.export import fake_tensorrt
from tests.export.graphs import pooled_graph, run
from tests.tiny import SIZE, tiny_card
from tools.tensorrt_names import LIST, names_in

HERE = Fingerprint(compute_capability="8.9", driver="580.65.06", tensorrt="11.4.0.106", platform="linux_x86_64")
MACHINE = (HERE, "a GPU")
# Attributes in the module that are not TensorRT's: of params, of our own classes, of Python.
OURS = set(TensorRtParams.model_fields) | {"max_batch", "min_batch", "append", "join"}
# The linker keeps these as the ends of longer texts (ILogger, deserialize), so that they do not stand alone.
ENDS = {"Logger", "Builder", "Runtime", "INPUT", "serialize"}


def used_names() -> set[str]:
    """Every attribute that the thin module reads or calls, and the levels that it takes by name."""
    tree = ast.parse(Path(tensorrt.__file__).read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    own = {name for name in attributes if name.startswith("_") and not name.startswith("__")}
    return (attributes - own - OURS) | set(tensorrt._LEVELS.values())


def test_every_name_that_we_use_is_declared_by_the_bindings_of_10_and_of_11() -> None:
    heading, *declared = LIST.read_text().splitlines()
    assert "declared by 10." in heading and ", 11." in heading
    used = used_names()
    assert len(used) > 30
    assert used - set(declared) - ENDS == set()
    assert all(any(name != end and name.endswith(end) for name in declared) for end in ENDS)
    assert "EXPLICIT_BATCH" not in declared and "FP16" not in declared  # gone in 11


def test_the_list_is_what_installed_bindings_declare() -> None:
    spec = find_spec("tensorrt_bindings")
    if spec is None or spec.origin is None:
        pytest.skip("TensorRT's bindings are not installed: names are held to the committed list alone")
    assert used_names() - names_in(Path(spec.origin).parent) - ENDS == set()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    onnx.save(pooled_graph(), path)
    return path


@pytest.fixture
def store(tmp_path: Path) -> EngineStore:
    return EngineStore(FolderBucket(tmp_path / "engines"))


def built(model: Path, store: EngineStore, scratch: Path, **options: object) -> EngineRecord:
    params = ExportParams(tensorrt=TensorRtParams(**options))  # type: ignore[arg-type]
    return build_engine(model, params, store, scratch, "no source here", MACHINE, TorchMemory("cpu"))


@pytest.mark.usefixtures("fake")
def test_an_engine_says_what_its_onnx_says_in_parts_that_it_takes(model: Path, store: EngineStore, tmp_path: Path) -> None:
    record = built(model, store, tmp_path, max_batch=4, best_batch=2, min_batch=2)
    assert (record.card, record.onnx_sha256, record.gpu) == (tiny_card(), sha256_file(model), "a GPU")
    assert (record.num_images, record.not_on_test) == (0, "no source here") and all(each.passed for each in record.checks)
    runner = TensorRtRunner(store.fetch(record, tmp_path / "here"), HERE, TorchMemory("cpu"))
    for num in (1, 4, 6, 9):
        batch = np.random.default_rng(num).random((num, 3, SIZE, SIZE), np.float32)
        assert np.abs(runner(batch) - run(pooled_graph(), batch)).max() < 1e-3
    with pytest.raises(WeightsError, match="takes 2 to 4 images of its own size"):
        runner(np.zeros((2, 3, SIZE, 2 * SIZE), np.float32))


@pytest.mark.usefixtures("fake")
def test_what_params_ask_for_reaches_the_builder(model: Path, store: EngineStore, tmp_path: Path) -> None:
    def plan(**options: object) -> dict[str, object]:
        found: dict[str, object] = json.loads(
            store.fetch(built(model, store, tmp_path, **options), tmp_path / "x").read_bytes()
        )
        return found

    plain = plan()
    assert (plain["flags"], plain["level"], plain["optimization"]) == ([], "NONE", 3)
    assert plain["shapes"] == [[num, 3, SIZE, SIZE] for num in (1, 1, 8)]
    other = plan(tf32=True, version_compatible=True, hardware_compatibility="ampere_plus", optimization_level=5)
    assert (other["flags"], other["level"], other["optimization"]) == (["TF32", "VERSION_COMPATIBLE"], "AMPERE_PLUS", 5)
    assert len(store.all()) == 1, "the one with other options gave way"
    with pytest.raises(StageFailed, match="could not build an engine"):
        plan(workspace_mib=1)


@pytest.mark.usefixtures("fake")
def test_a_second_build_is_not_made_and_a_third_begins_from_the_timing_cache(
    model: Path, store: EngineStore, tmp_path: Path
) -> None:
    first = built(model, store, tmp_path)
    assert built(model, store, tmp_path) == first
    assert store.timing_cache(HERE) == b"one+"
    built(model, store, tmp_path, optimization_level=1)
    assert store.timing_cache(HERE) == b"one++"
    store.keep_timing_cache(HERE, b"of another GPU")
    built(model, store, tmp_path, optimization_level=2)
    assert store.timing_cache(HERE) == b"one+"


@pytest.mark.usefixtures("fake")
def test_an_engine_that_says_something_else_is_not_published(
    model: Path, store: EngineStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = fake_tensorrt._Context.execute_async_v3

    def wrong(self: fake_tensorrt._Context, stream: int) -> bool:
        done = shift(self, stream)
        (output,) = set(self._addresses) - {self._engine.plan["input"]}
        fake_tensorrt._at(self._addresses[output], self.get_tensor_shape(output))[:] += 0.01
        return done

    monkeypatch.setattr(fake_tensorrt._Context, "execute_async_v3", wrong)
    with pytest.raises(StageFailed, match=r"not say what the model says: largest score gap to the ONNX, on patches: 0\.01"):
        built(model, store, tmp_path)
    assert store.all() == []
    with pytest.raises(StageFailed, match="cannot read the ONNX: error 0: no such operator"):
        tensorrt.build(b"nothing", TensorRtParams(), b"")


@pytest.mark.usefixtures("fake")
def test_an_engine_for_another_machine_is_refused_and_the_difference_named(
    model: Path, store: EngineStore, tmp_path: Path
) -> None:
    path = store.fetch(built(model, store, tmp_path), tmp_path / "here")
    other = HERE.model_copy(update={"compute_capability": "8.6", "driver": "590.1"})
    with pytest.raises(WeightsError, match=r"compute capability: built for 8\.9, here 8\.6; driver: built for 580\.65\.06"):
        TensorRtRunner(path, other, TorchMemory("cpu"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(WeightsError, match="damaged or exchanged"):
        TensorRtRunner(path, HERE, TorchMemory("cpu"))
    path.with_suffix(".json").unlink()
    with pytest.raises(WeightsError, match=r"model\.json: no such file; an engine needs its record"):
        open_artefact(path)


@pytest.mark.usefixtures("fake")
def test_the_store_hands_out_whole_engines_only(model: Path, store: EngineStore, tmp_path: Path) -> None:
    record = built(model, store, tmp_path)
    assert store.find(record.onnx_sha256, HERE) == record
    assert store.find(record.onnx_sha256, HERE.model_copy(update={"driver": "1"})) is None
    (engine,) = (tmp_path / "engines").rglob("*.engine")
    engine.write_bytes(b"half")
    with pytest.raises(StorageError, match="damaged; build it again"):
        store.fetch(record, tmp_path / "here")
    engine.unlink()
    with pytest.raises(StorageError, match="the engine is gone"):
        store.fetch(record, tmp_path / "here")


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("options", "here", "why"),
    [
        ({}, {}, []),
        ({}, {"tensorrt": "11.5.0"}, ["TensorRT"]),
        ({"version_compatible": True}, {"tensorrt": "11.5.0"}, []),
        ({"version_compatible": True}, {"tensorrt": "11.3.9"}, ["TensorRT"]),
        ({"version_compatible": True}, {"tensorrt": "12.0"}, ["TensorRT"]),
        ({"hardware_compatibility": "ampere_plus"}, {"compute_capability": "12.0"}, []),
        ({"hardware_compatibility": "ampere_plus"}, {"compute_capability": "7.5"}, ["compute capability"]),
        ({"hardware_compatibility": "same_compute_capability"}, {"compute_capability": "9.0"}, ["compute capability"]),
        ({}, {"platform": "linux_aarch64"}, ["platform"]),
    ],
)
def test_compatibility_counts_as_it_was_built(
    options: dict[str, object], here: dict[str, str], why: list[str], model: Path, store: EngineStore, tmp_path: Path
) -> None:
    record = EngineRecord(
        onnx_sha256="0",
        engine_sha256="1",
        num_bytes=1,
        fingerprint=HERE,
        gpu="a GPU",
        options=TensorRtParams(**options),  # type: ignore[arg-type]
        card=tiny_card(),
        checks=(),
        num_images=0,
        not_on_test=None,
        built_at="2026-11-30T02:00:00Z",  # type: ignore[arg-type]
    )
    assert [line.partition(":")[0] for line in differences(record, HERE.model_copy(update=here))] == why


def test_without_tensorrt_the_words_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(UserError, match="TensorRT is not installed here"):
        tensorrt.version()
