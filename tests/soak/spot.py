"""Runs of real stages on machines of the fake EC2, by the engine `ec2`: user-data, node, ranks and all, as on AWS."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nightowl.cloud.dvc_config import DvcConfig
from nightowl.files import sha256_bytes, sha256_file
from nightowl.machines.account import Account, account_of
from nightowl.machines.archive import code_archive
from nightowl.machines.board import CODE, LOCK, Board, board_bucket
from nightowl.machines.follow import Follower
from nightowl.machines.job import Environment, Job, run_id_of
from nightowl.machines.price import Prices
from nightowl.machines.reach import cache_config, settings_there
from nightowl.machines.records import NodeBeat
from nightowl.machines.spot_site import RentedMachines
from nightowl.night.checkout import snapshot
from tests.datasets import a_dataset, write_yolo_dataset
from tests.fake_ec2.world import World
from tests.soak.runs import PARAMS, ROOT, pinned_inputs

RUN_SECONDS = 900.0  # on two cores that others use too


class SpotRun:
    """A run of prepare and train on `nodes` machines of one rank each. Needs the environment of `world.cloud.speaking()`."""

    def __init__(self, world: World, folder: Path, nodes: int = 2, **machines: object) -> None:
        self.world, self.cloud, self._folder = world, world.cloud, folder
        self._settings = world.settings(nodes=nodes, **machines).model_copy(
            update={"device": "cpu", "num_workers": 0, "checkpoint_every_seconds": 1.0}
        )
        self.engine = RentedMachines(self._settings).engine()
        self.id = run_id_of("demo", str(folder), "c", "p")
        self.board = Board(board_bucket(world.board, world.cloud.endpoint), self.id)
        self.said: list[str] = []
        self._follower = Follower(self.engine, self.id, self.said.append)

    def submit(self) -> None:
        machines = self._settings.machines
        assert machines is not None
        source = self._put_data()
        now = datetime.now(UTC)
        code = code_archive(ROOT, snapshot(ROOT).commit, self._beside())
        self.board.put_file(CODE, code)
        self.board.put_file(LOCK, b"")
        job = Job(
            run_id=self.id,
            detector="demo",
            stages=("prepare", "train"),
            code_commit="c" * 40,
            code_sha256=sha256_bytes(code),
            lock_sha256=sha256_bytes(b""),
            environment=Environment(kind="baked", python=str(machines.python)),
            settings=settings_there(self._settings, "demo", source),
            source=source,
            nodes=machines.nodes,
            min_nodes=machines.fewest_nodes,
            nproc=machines.nproc,
            deadline=now + timedelta(hours=machines.max_hours),
            heartbeat_seconds=machines.heartbeat_seconds,
            heartbeat_old_seconds=machines.heartbeat_old_seconds,
            submitted_at=now,
        )
        self.engine.submit(job)

    def until(self, what: str, holds: object, driven: bool = True) -> None:
        """Wait until then, driving the run meanwhile as an orchestrator does."""
        assert callable(holds)

        def look() -> bool:
            time.sleep(1)  # the fake answers from this very process: it is not to be kept busy
            if driven:
                self._follower.look()
            return bool(holds())

        self.cloud.wait(look, RUN_SECONDS, f"for {what}\n" + "\n".join(self.said[-60:]))

    def trains_after(self, step: int) -> bool:
        """Is somebody in training, as rank 0, beyond that step?"""
        newest = self.board.newest_generation()
        if newest is None or self.board.generation_end(newest.number) is not None:
            return False
        beat = self.beat(newest.members[0].instance)
        return beat is not None and beat.state == "training" and (beat.taken or 0) > step

    def beat(self, instance: str) -> NodeBeat | None:
        return next((each for each in self.board.beats() if each.instance == instance), None)

    def instance_of(self, rank: int) -> str:
        """Which machine has `rank` in the newest generation."""
        newest = self.board.newest_generation()
        assert newest is not None
        return newest.members[rank].instance

    def done(self) -> str:
        """Drive the run to its end, and have nothing left of it; returns the digest of the weights."""
        self.until("the end", lambda: self.board.end() is not None)
        end = self.board.end()
        assert end is not None and end.how == "done", f"{end}\n" + "\n".join(self.said[-80:])
        assert self.engine.tear_down(self.id).nothing
        assert self.cloud.tagged("nightowl:run", self.id) == [] and self.cloud.alive() == []
        (weights,) = {sha256_file(path) for path in self.cloud.folder.glob("*/node/tree/out/demo/train/best.pt")}
        return weights

    def account(self) -> Account:
        found = account_of(self.board, lambda types, since: Prices((), dict.fromkeys(types)))
        assert found is not None
        return found

    def told(self) -> list[tuple[int, int]]:
        """Steps taken and done again, of each time that a rank 0 trained and could tell of it."""
        found = [event for event in self.board.events() if event.kind == "steps" and event.steps]
        return [(event.steps, event.redone) for event in sorted(found, key=lambda event: event.start)]

    def _put_data(self) -> str:
        source = self._folder / "source"
        write_yolo_dataset(source, a_dataset(train=32, val=8, test=4))
        store = self.cloud.client("s3")
        for path in source.rglob("*"):
            if path.is_file():
                store.upload_file(str(path), self.world.bucket, f"data/demo/{path.relative_to(source)}")
        return f"s3://{self.world.bucket}/data/demo"

    def _beside(self) -> dict[str, bytes]:
        remote = {"core": {"remote": "store"}, 'remote "store"': {"url": f"s3://{self.world.bucket}/dvc"}}
        return {
            **pinned_inputs(self._folder / "source", self._folder),
            ".dvc/config": cache_config(DvcConfig(self._folder, remote)),
            "detectors/demo/params.yaml": PARAMS.encode(),
        }
