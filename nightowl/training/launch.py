"""A training as several ranks: torchrun starts one process a rank on this host, and this waits for how they end.

Ranks stop together and commit before torchrun ends them; whoever is killed first, no rank is left behind: a rank ends with
torchrun's agent, and the agent with the process that called this.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pydantic import ValidationError

from nightowl.errors import Preempted, SettingsError, StageFailed
from nightowl.files import write_record
from nightowl.processes import ALREADY, say_at_once, wait
from nightowl.records import Record
from nightowl.settings import Settings
from nightowl.training.interface import interface_to

RANK_MODULE = "nightowl.stages.train_rank"
REPORTS = "NIGHTOWL_RANK_REPORTS"  # the folder that ranks write to how they ended
_SHUTDOWN_SECONDS = 100  # for a state to be written and uploaded; a spot machine has 120


@dataclass(frozen=True)
class Hosts:
    """`nproc` ranks on each of `nnodes` hosts, of which this is `node_rank`; they meet at `rendezvous`, HOST:PORT of node 0."""

    nproc: int
    nnodes: int = 1
    node_rank: int = 0
    rendezvous: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Hosts":
        """Raises SettingsError when several hosts have nowhere to meet."""
        if settings.nnodes > 1 and settings.rendezvous is None:
            raise SettingsError(f"rendezvous: {settings.nnodes} hosts need one, HOST:PORT on host 0, to meet; got none")
        return cls(settings.nproc, settings.nnodes, settings.node_rank, settings.rendezvous)


class RankReport(Record):
    """How a rank ended, when not well."""

    rank: int
    preempted: bool
    message: str


def train_in_ranks(root: Path, detector: str, hosts: Hosts) -> None:
    """Run the ranks of this host to their end.

    Raises:
        Preempted: they were asked to stop, and have committed. StageFailed: a rank failed; with what it said.
    """
    with tempfile.TemporaryDirectory(prefix="nightowl-ranks-") as reports:
        environment = {**_meeting_on(hosts), **os.environ, REPORTS: reports}
        environment.setdefault("OMP_NUM_THREADS", "1")
        agent = subprocess.Popen(command(detector, hosts), cwd=root, env=environment, start_new_session=True)
        with agent, _stops_passed_on(agent) as asked:
            code = wait(agent)
        _conclude(code, read_reports(Path(reports)), asked.is_set())


def command(detector: str, hosts: Hosts) -> list[str]:
    """torchrun for this host: one attempt, as a stage that failed is for whoever runs it to try again."""
    where = ["--standalone"]
    if hosts.nnodes > 1:
        assert hosts.rendezvous is not None, "settings demand it"
        address, _, port = hosts.rendezvous.rpartition(":")
        where = [f"--master-addr={address}", f"--master-port={port}", f"--node-rank={hosts.node_rank}"]
    return [
        *(sys.executable, "-m", "nightowl.training.agent", *where),
        f"--nnodes={hosts.nnodes}",
        f"--nproc-per-node={hosts.nproc}",
        "--max-restarts=0",
        f"--shutdown-timeout={_SHUTDOWN_SECONDS}",
        *("-m", RANK_MODULE, detector),
    ]


def _meeting_on(hosts: Hosts) -> dict[str, str]:
    """The interface that the ranks of several hosts speak over; what the user has set goes before it."""
    found = interface_to(hosts.rendezvous.rpartition(":")[0]) if hosts.nnodes > 1 and hosts.rendezvous else None
    return {"GLOO_SOCKET_IFNAME": found, "NCCL_SOCKET_IFNAME": f"={found}"} if found else {}


def report(rank: int, preempted: bool, message: str, environment: Mapping[str, str] = os.environ) -> None:
    """For a rank: leave word of how it ended."""
    write_record(Path(environment[REPORTS]) / f"{rank}.json", RankReport(rank=rank, preempted=preempted, message=message))


def read_reports(folder: Path) -> list[RankReport]:
    """What ranks left, in order of rank; one that a kill cut short is none."""
    reports = []
    for path in folder.glob("*.json"):
        try:
            reports.append(RankReport.model_validate_json(path.read_bytes()))
        except ValidationError:
            continue
    return sorted(reports, key=lambda each: each.rank)


def _conclude(code: int, reports: list[RankReport], asked: bool = False) -> None:
    """`asked`: to stop; ranks that had not begun then end without a word."""
    failed = [each for each in reports if not each.preempted]
    if failed:
        raise StageFailed("; ".join(dict.fromkeys(each.message for each in failed)))
    if reports:
        raise Preempted(reports[0].message)
    if code != 0 and asked:
        raise Preempted("asked to stop before the ranks had begun; run it again and it goes on")
    if code != 0:
        raise StageFailed(f"a rank ended with exit code {code}, without a word; what it wrote is above; run it again")


@contextmanager
def _stops_passed_on(agent: "subprocess.Popen[bytes]") -> Iterator[threading.Event]:
    """SIGTERM and SIGINT go to the ranks, and only there: this process ends when they have. Once: asked again, torchrun would
    end ranks that still save."""
    asked = threading.Event()

    def pass_on(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            say_at_once(ALREADY)
            return
        asked.set()
        agent.send_signal(signal.SIGTERM)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
