import inspect
import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.launcher import api

from nightowl.errors import Preempted, SettingsError, StageFailed
from nightowl.processes import ALREADY
from nightowl.settings import Settings
from nightowl.training import agent
from nightowl.training.launch import Hosts, RankReport, _conclude, _stops_passed_on, command

FAILED = RankReport(rank=1, preempted=False, message="out of memory in training with one image")
STOPPED = RankReport(rank=0, preempted=True, message="asked to stop; run it again and it goes on")


def test_one_host_meets_by_itself() -> None:
    words = command("demo", Hosts(nproc=4))
    assert (
        "--standalone" in words and "--nproc-per-node=4" in words and words[-3:] == ["-m", "nightowl.stages.train_rank", "demo"]
    )


def test_several_hosts_meet_at_host_0() -> None:
    words = command("demo", Hosts(nproc=2, nnodes=3, node_rank=1, rendezvous="10.0.0.7:29500"))
    assert {"--nnodes=3", "--node-rank=1", "--master-addr=10.0.0.7", "--master-port=29500"} <= set(words)


def test_several_hosts_without_a_place_to_meet_are_refused() -> None:
    with pytest.raises(SettingsError, match="2 hosts need one, HOST:PORT"):
        Hosts.of(Settings(nnodes=2))


@pytest.mark.parametrize(
    ("code", "reports", "error", "message"),
    [
        (0, [STOPPED, STOPPED], Preempted, "asked to stop"),
        (1, [STOPPED, FAILED], StageFailed, "^out of memory in training"),
        (1, [FAILED, FAILED], StageFailed, "^out of memory in training with one image$"),
        (-9, [], StageFailed, "exit code -9, without a word"),
    ],
)
def test_how_ranks_ended_is_told(code: int, reports: list[RankReport], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        _conclude(code, reports)


def test_ranks_that_were_stopped_before_they_began_have_not_failed() -> None:
    with pytest.raises(Preempted, match="before the ranks had begun"):
        _conclude(-15, [], asked=True)
    _conclude(0, [], asked=True)  # asked too late: all was trained


def test_ranks_that_save_are_not_asked_twice(capfd: pytest.CaptureFixture[str]) -> None:
    """Torchrun, asked again, would end them at once."""
    saves = (
        "import signal, time; heard = []; signal.signal(15, lambda *_: heard.append(1)); print('ready', flush=True)\n"
        "while not heard: time.sleep(0.05)\n"
        "time.sleep(1); raise SystemExit(len(heard))"
    )
    with subprocess.Popen([sys.executable, "-c", saves], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None and agent.stdout.readline() == b"ready\n"
        with _stops_passed_on(agent):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.4)
            os.kill(os.getpid(), signal.SIGINT)
            assert agent.wait(20) == 1
    assert capfd.readouterr().err == ALREADY + "\n"


def test_a_good_end_is_silent() -> None:
    _conclude(0, [])


def test_the_agent_waits_for_those_of_other_hosts_only_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torchrun has no option for it; this is the name that it makes its agent by, and what it would take."""
    made: list[object] = []
    monkeypatch.setattr("nightowl.training.agent.ask_for_signal_when_parent_ends", made.append)
    monkeypatch.setattr("torch.distributed.run.main", lambda: made.append(vars(api)["LocalElasticAgent"]))
    monkeypatch.setattr(api, "LocalElasticAgent", LocalElasticAgent)
    agent.main()
    _, briefly = made
    assert isinstance(briefly, partial) and briefly.func is LocalElasticAgent
    assert briefly.keywords == {"exit_barrier_timeout": 20.0}
    assert "exit_barrier_timeout" in inspect.signature(LocalElasticAgent.__init__).parameters
    assert "LocalElasticAgent(" in inspect.getsource(api.launch_agent)
