from datetime import UTC, datetime
from pathlib import Path

import pytest

from nightowl.checkpoint.commits import Moment
from nightowl.errors import Preempted, StageFailed
from nightowl.evaluation.champion import ChampionRecord
from nightowl.files import write_atomic
from nightowl.night import cut_short
from nightowl.night.record import Night, StageRun, add_run, begin_run, report_of, workspace_in_tree
from tasks.report import report_failure

PARAMS = "detectors: [demo]\n"
OWN = "data: {}\nprepare: {}\ntrain: {epochs: 24}\nevaluate: {}\ngate: {}\nexport: {}\n"


def a_champion(version: str) -> str:
    digest = "0" * 64
    record = ChampionRecord(
        detector="demo",
        night_key=digest,
        version=version,
        classes=("a",),
        image_size=64,
        weights_sha256=digest,
        onnx_sha256=digest,
        dataset_version=digest,
    )
    return record.model_dump_json()


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A night whose first stage is done and whose training is running."""
    write_atomic(tmp_path / "params.yaml", PARAMS)
    write_atomic(tmp_path / "detectors" / "demo" / "params.yaml", OWN)
    night = Night(
        id="n",
        detector="demo",
        root=tmp_path,
        tree=tmp_path,
        folder=tmp_path / "night",
        code_commit="c",
        head="c",
        dirty=False,
        shares=False,
        source=None,
        started_at=datetime.now(UTC),
    )
    add_run(night, StageRun(stage="prepare", executed=True, seconds=2.0))
    begin_run(night, "train")
    write_atomic(workspace_in_tree(night).leader("train"), "1")
    return night


def saved(monkeypatch: pytest.MonkeyPatch, moment: Moment | None) -> None:
    monkeypatch.setattr(cut_short, "saved_since", lambda place, since: moment)


def test_a_training_cut_short_tells_its_time_and_from_where_it_goes_on(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(monkeypatch, Moment(step=812, epoch=4, reason="stop"))
    failure = cut_short.failure_of(night, KeyboardInterrupt())
    assert (failure.stage, failure.interrupted, failure.message) == ("train", True, "stopped in train")
    assert failure.seconds is not None and 0 <= failure.seconds < 60
    assert failure.saved == "at step 812, with 4 of 24 epochs done"


@pytest.mark.parametrize(
    ("error", "interrupted", "message"),
    [
        (Preempted("asked to stop; run it again and it goes on"), True, "asked to stop; run it again and it goes on"),
        (StageFailed("out of memory"), False, "out of memory"),
        (ValueError(), False, "ValueError"),
    ],
)
def test_what_is_not_known_is_left_out(
    night: Night, monkeypatch: pytest.MonkeyPatch, error: Exception, interrupted: bool, message: str
) -> None:
    saved(monkeypatch, None)
    failure = cut_short.failure_of(night, error)
    assert (failure.message, failure.interrupted, failure.saved) == (message, interrupted, None)


def test_a_night_cut_short_before_its_stages_has_no_stage_and_no_time(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace_in_tree(night).leader("train").unlink()
    failure = cut_short.failure_of(night, KeyboardInterrupt())
    assert (failure.stage, failure.seconds, failure.saved) == (None, None, None)
    assert failure.message == "stopped in its beginning"


@pytest.mark.parametrize(
    ("pinned", "said"),
    [
        (None, "The champion, if there is one, stands."),
        ("null", "There is still no champion."),
        (a_champion("3"), "The champion, version 3, stands."),
    ],
)
def test_the_report_of_a_night_cut_short_says_what_it_pinned_of_the_champion(
    night: Night, monkeypatch: pytest.MonkeyPatch, pinned: str | None, said: str
) -> None:
    saved(monkeypatch, None)
    if pinned is not None:
        write_atomic(workspace_in_tree(night).champion, pinned)
    report_failure(night, KeyboardInterrupt())
    assert said in report_of(night).read_text()
