"""The registry on a real MLflow: SQLite and a folder."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nightowl.errors import RegistryError
from nightowl.files import sha256_file
from nightowl.registry.store import Registry, open_registry
from nightowl.registry.sums import write_sums
from nightowl.settings import Settings
from tests.bundles import Made, bundle, new_registry, registered

ONE = Made(night="night-1", weights=b"one", map50=0.70)
TWO = Made(night="night-2", weights=b"two", map50=0.75)
THREE = Made(night="night-3", weights=b"three", map50=0.80)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return new_registry(tmp_path / "home")


def test_a_registered_version_comes_back_with_its_record(registry: Registry, tmp_path: Path) -> None:
    assert registered(registry, tmp_path, ONE, TWO) == ["1", "2"]
    infos = registry.versions("demo")
    assert [(info.version, info.record.night_id, info.record.map50, info.state) for info in infos] == [
        ("1", "night-1", 0.70, "not promoted"),
        ("2", "night-2", 0.75, "not promoted"),
    ]
    assert registry.record("demo", "2") == infos[1].record
    assert registry.detectors() == ["demo"]


def test_an_empty_registry_has_no_versions_and_no_champion(registry: Registry) -> None:
    assert registry.versions("demo") == []
    assert registry.champion("demo") is None
    assert registry.history("demo") == []
    assert registry.detectors() == []


def test_the_same_night_is_registered_once(registry: Registry, tmp_path: Path) -> None:
    path, record = bundle(tmp_path, ONE)
    assert [registry.register("demo", path, record) for _ in range(2)] == ["1", "1"]


def test_detectors_do_not_see_each_other(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, Made(detector="bccd", night="night-1", weights=b"cells"))
    registry.promote("bccd", "1", "first", by="tester")
    assert registry.champion("demo") is None
    assert [info.record.detector for info in registry.versions("bccd")] == ["bccd"]


def test_a_bundle_of_another_detector_is_refused(registry: Registry, tmp_path: Path) -> None:
    path, record = bundle(tmp_path, ONE)
    with pytest.raises(RegistryError, match="bundle of demo cannot be registered as bccd"):
        registry.register("bccd", path, record)


def test_a_damaged_bundle_is_not_registered(registry: Registry, tmp_path: Path) -> None:
    path, record = bundle(tmp_path, ONE)
    (path / "model.onnx").write_bytes(b"flipped")
    with pytest.raises(RegistryError, match=r"model\.onnx is damaged"):
        registry.register("demo", path, record)
    assert registry.versions("demo") == []


def test_the_champion_stands_when_the_files_of_the_other_are_gone(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "1", "first", by="me")
    registry.promote("demo", "2", "second", by="me")
    shutil.rmtree(tmp_path / "home" / "registry" / "artifacts")
    with pytest.raises(RegistryError, match="demo version 1: its files are gone from the registry; nothing was changed"):
        registry.rollback("demo", "worse", by="me")
    champion = registry.champion("demo")
    assert champion is not None
    assert champion.version == "2"


def test_promotion_and_rollback_move_the_champion_and_keep_the_history(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO, THREE)
    for version in ("1", "2", "3"):
        registry.promote("demo", version, f"better {version}", by="night")
    assert registry.rollback("demo", "misses shorts on line 3", by="anna") == "2"

    assert [info.state for info in registry.versions("demo")] == ["former champion", "champion", "taken back"]
    champion = registry.champion("demo")
    assert champion is not None and champion.version == "2" and champion.champion
    last = registry.history("demo")[-1]
    assert (last.action, last.version, last.came_from, last.by, last.reason, last.state) == (
        "rollback",
        "2",
        "3",
        "anna",
        "misses shorts on line 3",
        "done",
    )


def test_promoting_the_champion_again_changes_nothing(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    for _ in range(2):
        assert registry.promote("demo", "1", "first", by="tester") == "1"
    assert len(registry.history("demo")) == 1


@pytest.mark.parametrize(
    ("reason", "made", "message", "may_be_forced"),
    [
        ("the gate refused it", Made(verdict="refuse"), "the gate's verdict on it is `refuse`: .+; .*--force", True),
        ("the gate could not decide", Made(verdict="undecided"), "verdict on it is `undecided`", True),
        ("its export differs", Made(parity=False), "parity failed", True),
        ("its tree was dirty", Made(dirty=True), "uncommitted changes, which nobody could make again$", False),
        ("its tree was dirty and it was refused", Made(dirty=True, verdict="refuse"), "uncommitted changes", False),
    ],
)
def test_a_version_is_not_promoted_when(
    reason: str, made: Made, message: str, may_be_forced: bool, registry: Registry, tmp_path: Path
) -> None:
    registered(registry, tmp_path, made)
    with pytest.raises(RegistryError, match=message):
        registry.promote("demo", "1", "I say so", by="tester")
    if not may_be_forced:
        with pytest.raises(RegistryError, match=message):
            registry.promote("demo", "1", "I say so", by="tester", force=True)
        assert registry.champion("demo") is None, reason
        return
    registry.promote("demo", "1", "I say so", by="tester", force=True)
    assert [(event.version, event.forced) for event in registry.history("demo")] == [("1", True)]
    assert registry.versions("demo")[0].forced


def test_force_is_not_recorded_where_it_was_not_needed(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    registry.promote("demo", "1", "first", by="tester", force=True)
    assert not registry.history("demo")[0].forced


def test_what_was_taken_back_does_not_return_unforced_not_even_as_another_version(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "1", "first", by="night")
    registry.promote("demo", "2", "better", by="night")
    registry.rollback("demo", "worse in the field", by="anna")
    with pytest.raises(RegistryError, match="version 2 is not promoted: it was taken back"):
        registry.promote("demo", "2", "better", by="night")
    registered(registry, tmp_path / "again", Made(night="night-4", weights=TWO.weights))
    with pytest.raises(RegistryError, match="its weights are those of version 2, which was taken back"):
        registry.promote("demo", "3", "better", by="night")
    registry.promote("demo", "2", "the camera was dirty, not the model", by="anna", force=True)
    assert registry.version("demo", "2").champion


def test_a_night_does_not_promote_over_a_champion_it_was_not_judged_against(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "1", "first", by="night", as_judged=True)
    registry.promote("demo", "1", "first, once more after a crash", by="night", as_judged=True)
    with pytest.raises(RegistryError, match="judged against no champion, and now there is version 1 as champion"):
        registry.promote("demo", "2", "better", by="night", as_judged=True)
    assert registry.promote("demo", "2", "I know better", by="anna") == "2"


def test_there_is_nothing_to_go_back_to_before_the_first_champion(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    with pytest.raises(RegistryError, match="demo: no champion; versions: 1"):
        registry.rollback("demo", "bad", by="tester")
    registry.promote("demo", "1", "first", by="tester")
    with pytest.raises(RegistryError, match="no champion before version 1"):
        registry.rollback("demo", "bad", by="tester")


def test_a_champion_can_be_withdrawn_and_the_next_one_is_the_first_again(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, Made(night="night-1", verdict="refuse"), Made(night="night-2", weights=b"two"))
    with pytest.raises(RegistryError, match="demo: no champion"):
        registry.withdraw("demo", "bad", by="tester")
    registry.promote("demo", "1", "we need it", by="tester", force=True)
    with pytest.raises(RegistryError, match="nightowl rollback demo --to-none"):
        registry.rollback("demo", "bad", by="tester")
    assert registry.withdraw("demo", "a mistake", by="tester") == "1"
    assert registry.champion("demo") is None and registry.reference("demo") is None
    assert registry.version("demo", "1").taken_back
    assert [(event.action, event.version, event.state) for event in registry.history("demo")][-1] == ("withdraw", "1", "done")
    registry.promote("demo", "2", "first again", by="night", as_judged=True)
    champion, reference = registry.champion("demo"), registry.reference("demo")
    assert champion and reference and champion.version == reference.version == "2"
    with pytest.raises(RegistryError, match="no champion before version 2"):
        registry.rollback("demo", "bad", by="tester")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001])
def test_a_change_of_champion_needs_a_reason(reason: str, registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    with pytest.raises(RegistryError, match="a reason of 1 to 1000 characters"):
        registry.promote("demo", "1", reason, by="tester")
    assert registry.champion("demo") is None


def test_an_unknown_version_names_those_that_exist(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    with pytest.raises(RegistryError, match="demo: no version '7'; versions: 1, 2"):
        registry.promote("demo", "7", "a typing error", by="tester")
    with pytest.raises(RegistryError, match="demo: no version '99999999999999999999'; versions: 1, 2"):
        registry.version("demo", "99999999999999999999")
    with pytest.raises(RegistryError, match=r"no detector .nothing. has a registered version; there are: demo"):
        registry.record("nothing", "1")


class Killed(BaseException):
    """What a SIGKILL would be, if it could be caught."""


@pytest.mark.parametrize(
    ("step", "champion", "states"),
    [
        ("set_registered_model_alias", "1", ["done", "abandoned"]),
        ("_write_done", "2", ["done", "done"]),
    ],
)
def test_a_promotion_killed_half_way_can_be_explained_and_repeated(
    step: str, champion: str, states: list[str], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "1", "first", by="night")
    client = registry._client
    write = client.set_registered_model_tag

    def die(*arguments: object) -> None:
        raise Killed

    def die_when_done(name: str, key: str, value: str) -> None:
        if '"done"' in value:
            raise Killed
        write(name, key, value)

    with monkeypatch.context() as patch:
        if step == "_write_done":
            patch.setattr(client, "set_registered_model_tag", die_when_done)
        else:
            patch.setattr(client, step, die)
        with pytest.raises(Killed):
            registry.promote("demo", "2", "better", by="night")

    assert registry.version("demo", "champion").version == champion
    assert [event.state for event in registry.history("demo")] == states
    assert registry.promote("demo", "2", "better", by="night") == "2"
    assert registry.rollback("demo", "bad", by="tester") == "1"
    assert [event.state for event in registry.history("demo")][:2] == states


@pytest.mark.parametrize("step", ["log_artifacts", "set_terminated", "create_model_version"])
def test_a_registration_killed_half_way_leaves_no_version(
    step: str, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, record = bundle(tmp_path, ONE)

    def die(*arguments: object, **named: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(registry._client, step, die)
        with pytest.raises(Killed):
            registry.register("demo", path, record)
    assert registry.versions("demo") == []
    assert registry.register("demo", path, record) == "1"


def test_a_bundle_is_fetched_whole_by_number_or_alias(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "2", "better", by="tester")
    folder = registry.fetch("demo", "champion", tmp_path / "fetched")
    assert (folder / "weights.pt").read_bytes() == b"two"
    assert (folder / "inputs" / "manifest.jsonl").is_file()
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        path.name for path in (tmp_path / "night-2-1" / "bundle").iterdir()
    )
    assert (registry.fetch("demo", "1", tmp_path / "other") / "weights.pt").read_bytes() == b"one"


def test_a_whole_copy_is_kept_and_a_damaged_one_replaced(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    folder = registry.fetch("demo", "1", tmp_path / "fetched")
    before = (folder / "weights.pt").stat().st_ino
    assert (registry.fetch("demo", "1", folder) / "weights.pt").stat().st_ino == before
    (folder / "weights.pt").write_bytes(b"flipped")
    assert (registry.fetch("demo", "1", folder) / "weights.pt").read_bytes() == b"one"


def test_a_bundle_damaged_in_the_registry_is_refused_and_the_file_named(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    (stored,) = (tmp_path / "home" / "registry" / "artifacts").rglob("model.onnx")
    stored.write_bytes(b"flipped")
    with pytest.raises(RegistryError, match=r"demo version 1 \(.*\): model\.onnx is damaged: expected SHA-256"):
        registry.fetch("demo", "1", tmp_path / "fetched")
    assert not (tmp_path / "fetched").exists()


def test_a_folder_of_something_else_is_not_overwritten(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(RegistryError, match="it holds something else"):
        registry.fetch("demo", "1", tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_files_that_have_gone_are_said_to_have_gone(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    shutil.rmtree(tmp_path / "home" / "registry" / "artifacts")
    with pytest.raises(RegistryError, match=r"demo version 1: its files are not at .*moved or removed"):
        registry.fetch("demo", "1", tmp_path / "fetched")


def test_mlflow_shows_params_and_metrics_of_the_run(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    client = registry._client
    experiment = client.get_experiment_by_name("demo")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.params["train.augment.mosaic"] == "1.0"
    assert run.data.metrics["test/mAP50"] == run.data.metrics["test/AP50 open"] == 0.70
    assert (run.info.run_name, run.info.status) == ("night-1", "FINISHED")
    losses = client.get_metric_history(run.info.run_id, "train/box_loss")
    assert [(metric.step, metric.value) for metric in losses] == [(1, 1.5), (2, 1.25)], "training's table, by epoch"
    (figure,) = client.get_metric_history(run.info.run_id, "val/mAP50")
    assert (figure.step, figure.value) == (2, 0.5), "a figure that is no number is absent"


def test_the_environment_is_named_by_the_digest_of_its_lock(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE)
    lock = tmp_path / "night-1-0" / "night" / "requirements.lock"
    assert registry.record("demo", "1").environment_sha256 == sha256_file(lock)


REGISTER = """
import sys
from pathlib import Path
from nightowl.registry.record import BundleRecord
from nightowl.registry.store import open_registry
from nightowl.settings import Settings
bundle = Path(sys.argv[2])
record = BundleRecord.model_validate_json((bundle / "record.json").read_bytes())
print(open_registry(Settings(home=Path(sys.argv[1]))).register("demo", bundle, record))
"""


def test_two_at_once_make_one_database_and_both_register(tmp_path: Path) -> None:
    paths = [bundle(tmp_path / made.night, made)[0] for made in (ONE, TWO)]
    command = [sys.executable, "-c", REGISTER, str(tmp_path / "home")]
    started = time.monotonic()
    running = [
        subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        for path in paths
    ]
    answers = [process.communicate(timeout=120) for process in running]
    print(f"two processes, first creation included: {time.monotonic() - started:.1f} s")
    assert sorted(out.strip() for out, _ in answers) == ["1", "2"], answers
    assert [err for _, err in answers] == ["", ""], "nothing is said that nobody asked"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "night-1", "night-2"]
    home = tmp_path / "home"
    assert sorted(path.name for path in (home / "registry").iterdir()) == ["artifacts", "mlflow.db"]
    assert [info.record.night_id for info in open_registry(Settings(home=home)).versions("demo")] in (
        ["night-1", "night-2"],
        ["night-2", "night-1"],
    )


def test_the_reference_follows_promotions_and_can_be_set_by_hand(registry: Registry, tmp_path: Path) -> None:
    better = Made(night="night-3", weights=b"three", better_than="1")
    registered(registry, tmp_path, ONE, TWO, better)
    assert registry.reference("demo") is None
    with pytest.raises(RegistryError, match="demo: no champion"):
        registry.set_reference("demo", "1", "too early", by="me")
    seen = []
    for version in ("1", "2", "3"):
        registry.promote("demo", version, "a test", by="night")
        seen.append(registry.version("demo", "reference").version)
    assert seen == ["1", "1", "3"]
    assert registry.set_reference("demo", "2", "agreed with the line", by="anna") == "2"
    assert registry.set_reference("demo", "2", "again", by="anna") == "2"
    assert [(e.action, e.version, e.came_from, e.by) for e in registry.history("demo")][3:] == [("reference", "2", "3", "anna")]
    assert registry._client.get_model_version_by_alias("demo", "reference").version in ("2", 2), "other tools see it"
    champion = registry.champion("demo")
    assert champion is not None and champion.version == "3"
    assert registry.rollback("demo", "bad", by="anna") == "2"
    with pytest.raises(RegistryError, match="demo: no version '9'; versions: 1, 2, 3"):
        registry.set_reference("demo", "9", "a typing error", by="me")


def test_a_reference_whose_files_are_gone_is_not_set(registry: Registry, tmp_path: Path) -> None:
    registered(registry, tmp_path, ONE, TWO)
    registry.promote("demo", "1", "first", by="me")
    shutil.rmtree(tmp_path / "home" / "registry" / "artifacts")
    with pytest.raises(RegistryError, match="demo version 2: its files are gone"):
        registry.set_reference("demo", "2", "agreed", by="me")
    reference = registry.reference("demo")
    assert reference is not None and reference.version == "1"


def test_what_a_nights_rented_machines_did_is_logged_with_its_version(registry: Registry, tmp_path: Path) -> None:
    path, record = bundle(tmp_path, ONE)
    account = {"run_id": "demo-1", "goodput": {"hours_paid": 6.4, "steps": 100, "usd": None}}
    (path / "machines.json").write_text(json.dumps(account))
    write_sums(path)
    version = registry.register("demo", path, record)
    client = registry._client
    logged = client.get_run(client.get_model_version("demo", version).run_id).data.metrics
    assert {name: value for name, value in logged.items() if name.startswith("machines/")} == {
        "machines/hours_paid": 6.4,
        "machines/steps": 100.0,
    }
