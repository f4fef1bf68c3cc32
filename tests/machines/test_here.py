"""This machine as the place of a run's nodes: what they are told, and what ends them."""

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nightowl.cloud.dvc_config import read_config
from nightowl.errors import SettingsError
from nightowl.machine_settings import DetachedSettings
from nightowl.machines.here import ThisMachine
from nightowl.settings import Settings, load_settings
from tests.cloud.tracked import config
from tests.machines.jobs import NOW


def here(folder: Path, **more: object) -> ThisMachine:
    return ThisMachine(Settings(home=folder, engine="detached", **more))  # type: ignore[arg-type]


def test_a_node_has_the_settings_of_the_night_but_for_what_its_job_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "settings.toml").write_text(
        'engine = "detached"\ncheckpoints = "s3://lines/ck"\nregistry_uri = "http://registry"\nnproc = 4\n'
        'stop_at = 2026-07-01T06:00:00Z\nmlflow_live = true\nstop_notice = "stop"\n[sources]\nother = "/data"\n'
    )
    settings = load_settings(tmp_path)
    told = ThisMachine(settings).told("demo", "/data/demo")
    unheard_of = {"ENGINE", "MACHINES", "DETACHED", "STOP_AT", "NPROC", "NNODES", "NODE_RANK", "RENDEZVOUS"}
    assert not {f"NIGHTOWL_{name}" for name in unheard_of} & set(told)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tree").mkdir()
    there, same = (
        load_settings(tmp_path / "tree"),
        ("home", "checkpoints", "registry_uri", "mlflow_live", "stop_notice", "weights"),
    )
    assert {name: getattr(there, name) for name in same} == {name: getattr(settings, name) for name in same}
    assert there.sources == {"demo": "/data/demo"} and there.home == tmp_path / ".nightowl"


@pytest.mark.parametrize(
    ("stop_at", "hours", "reason"),
    [
        (None, 48, "the hard end alone"),
        (NOW + timedelta(hours=4), 4, "all work is to stop then"),
        (NOW + timedelta(days=9), 48, "the hard end comes first"),
    ],
)
def test_a_run_ends_by_its_hours_or_when_all_is_to_stop(
    tmp_path: Path, stop_at: datetime | None, hours: int, reason: str
) -> None:
    assert here(tmp_path, stop_at=stop_at).terms.deadline(NOW) == NOW + timedelta(hours=hours), reason


def test_its_hard_end_and_its_stall_watch_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTOWL_DETACHED__MAX_HOURS", "3")
    (tmp_path / "settings.toml").write_text("[detached]\nstall_minutes = 5\n")
    settings = load_settings(tmp_path)
    assert settings.detached == DetachedSettings(max_hours=3, stall_minutes=5)
    terms = ThisMachine(settings).terms
    assert (terms.max_hours, terms.stall_minutes, terms.nodes, terms.nproc) == (3, 5, 1, 1)


def test_several_hosts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="trains on this machine alone, and nnodes is 2"):
        here(tmp_path, nnodes=2, rendezvous="h:1").check(tmp_path, "demo", "/data")


def test_a_node_has_the_cache_and_the_remotes_of_the_night_with_their_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DVC_GLOBAL_CONFIG_DIR", str(tmp_path / "none"))
    config(tmp_path / "tree", "[core]\n    analytics = false\n    remote = store\n[cache]\n    type = symlink\n")
    secret = '[\'remote "store"\']\n    url = s3://lines/dvc\n    secret_access_key = "a, b#c"\n'
    config(tmp_path / "tree", "[cache]\n    dir = /srv/cache\n" + secret, "config.local")
    config(tmp_path / "node", here(tmp_path).dvc_config(tmp_path, tmp_path / "tree").decode())
    there, ours = read_config(tmp_path / "node"), read_config(tmp_path / "tree")
    assert there.sections == {**ours.sections, "core": {**ours.sections["core"], "no_scm": "true"}}
    assert there.has_remote and there.cache == Path("/srv/cache") and there.remote(None)["secret_access_key"] == "a, b#c"


def test_nobody_else_may_look_at_runs_and_what_they_cost_is_unknown(tmp_path: Path) -> None:
    site = here(tmp_path)
    site.boards()
    assert stat.S_IMODE((tmp_path / "detached").stat().st_mode) == 0o700
    assert site.prices(["local"], NOW).cost("local", "local", "local", NOW, datetime.now(UTC)) is None
