"""The loader: equal batches whatever makes them, positions, and faults of its workers."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nightowl.data.batch import Batch
from nightowl.data.loader import TrainingLoader
from nightowl.errors import DataError, NightowlError, StageFailed
from tests.data.training_sets import Faulty, InMemory, a_case


def equal(one: Batch, other: Batch) -> bool:
    fields = ("images", "boxes_cxcywh_norm", "class_ids", "owners", "samples")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in fields)


def epoch_of(loader: TrainingLoader, epoch: int = 0, first: int = 0) -> list[Batch]:
    return list(loader.steps(epoch, first))


@pytest.mark.parametrize("num_workers", [1, 2, 4])
def test_workers_change_no_bit(num_workers: int) -> None:
    case = a_case(mixup=0.5)
    alone = epoch_of(case.loader(), 3)
    with case.loader(num_workers=num_workers) as loader:
        seen = 0
        for expected, found in zip(alone, loader.steps(3), strict=True):
            assert equal(expected, found)
            seen += len(found)
    assert seen == 10


@pytest.mark.parametrize("world_size", [2, 3, 8])
def test_ranks_together_see_what_one_would(world_size: int) -> None:
    case = a_case()
    whole = epoch_of(case.loader())
    ranks = [epoch_of(case.loader(rank=rank, world_size=world_size)) for rank in range(world_size)]
    for step, expected in enumerate(whole):
        shares = [rank[step] for rank in ranks]
        for name in ("images", "boxes_cxcywh_norm", "class_ids", "samples"):
            assert np.array_equal(np.concatenate([getattr(share, name) for share in shares]), getattr(expected, name))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_a_rank_with_workers_may_have_an_empty_share() -> None:
    with a_case(global_batch=1, number=2).loader(num_workers=1, rank=0, world_size=2) as loader:
        assert [len(batch) for batch in loader.steps(0)] == [0, 0]


def test_an_epoch_can_be_begun_at_any_step() -> None:
    with a_case().loader(num_workers=2) as loader:
        whole = epoch_of(loader, 5)
        for first in range(loader.num_steps() + 1):
            rest = epoch_of(loader, 5, first)
            assert len(rest) == loader.num_steps() - first
            assert all(map(equal, whole[first:], rest))


def test_an_epoch_has_every_image_once_in_an_order_of_its_own() -> None:
    loader = a_case().loader()
    orders = [np.concatenate([batch.samples for batch in loader.steps(epoch)]).tolist() for epoch in range(3)]
    assert all(sorted(order) == list(range(10)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert [len(batch) for batch in loader.steps(0)] == [4, 4, 2]


def test_the_same_image_differs_between_epochs_and_seeds() -> None:
    seen = set()
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        batches = a_case(seed=seed).loader().steps(epoch)
        seen |= {batch.images[place].tobytes() for batch in batches for place in np.flatnonzero(batch.samples == 0)}
    assert len(seen) == 3


def test_kept_batches_are_not_overwritten() -> None:
    """All of them are kept, more than there are slots."""
    case = a_case(number=40)
    with case.loader(num_workers=2, prefetch_steps=1) as loader:
        kept = [batch.part(1, 3) for batch in loader.steps(0)]
    assert all(np.array_equal(e.images[1:3], f.images) for e, f in zip(case.loader().steps(0), kept, strict=True))


def test_batches_let_go_free_their_memory_for_later_ones() -> None:
    with a_case(number=40).loader(num_workers=1, prefetch_steps=1) as loader:
        places = {batch.images.__array_interface__["data"][0] for batch in loader.steps(0)}
    assert len(places) <= 3


def test_an_epoch_that_was_given_up_does_not_show_in_the_next() -> None:
    with a_case().loader(num_workers=2) as loader:
        for _ in range(4):
            next(iter(loader.steps(0)))
        assert all(map(equal, epoch_of(a_case().loader(), 1), epoch_of(loader, 1)))


def test_the_end_of_mosaic_changes_later_epochs_only() -> None:
    often, never = a_case(), a_case(mosaic=0.0)
    pairs = [[case.loader().steps(epoch) for case in (often, never)] for epoch in (17, 18)]
    assert [all(equal(*two) for two in zip(*pair, strict=True)) for pair in pairs] == [False, True]


FAULTS = [
    ("killed", StageFailed, r"loader worker \d \(process \d+\) ended with SIGKILL; was the machine out of memory"),
    ("exits", StageFailed, r"loader worker \d \(process \d+\) ended with exit code 3"),
    ("data", DataError, "build it again"),
    ("bug", StageFailed, r"epoch 0, one of the samples \[.*\]: RuntimeError: no such thing"),
]


@pytest.mark.parametrize(("fault", "kind", "message"), FAULTS, ids=[row[0] for row in FAULTS])
def test_a_fault_in_a_worker_is_an_error_that_names_it(fault: str, kind: type[NightowlError], message: str) -> None:
    case = a_case()
    assert isinstance(case.images, InMemory)
    broken = replace(case, images=Faulty(case.images, 7, fault))
    with broken.loader(num_workers=2) as loader:
        with pytest.raises(kind, match=message):
            epoch_of(loader)
        with pytest.raises(StageFailed, match="closed"):
            epoch_of(loader)
        loader.close()


def test_a_worker_killed_while_it_waits_is_noticed() -> None:
    with a_case().loader(num_workers=1) as loader:
        batches = loader.steps(0)
        next(batches)
        os.kill(children(os.getpid())[0], signal.SIGKILL)
        with pytest.raises(StageFailed, match="SIGKILL"):
            epoch_of(loader)


def test_closing_ends_the_workers_also_in_mid_epoch() -> None:
    loader = a_case(number=100).loader(num_workers=2)
    next(iter(loader.steps(0)))
    assert len(children(os.getpid())) == 2
    loader.close()
    loader.close()
    assert children(os.getpid()) == []


PARENT = """
import sys, time
from nightowl.data.loader import TrainingLoader
from tests.data.training_sets import a_case
loader = a_case(number=100).loader(num_workers=2)
batches = loader.steps(0)
next(batches)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_the_training(number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as parent:
        assert parent.stdout and parent.stderr
        parent.stdout.readline()
        workers = children(parent.pid)
        parent.send_signal(number)
        assert parent.stderr.read() == b""
    assert len(workers) == 2
    assert parent.returncode == (130 if number == signal.SIGINT else -number)
    deadline = time.monotonic() + 10
    while any(map(is_running, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, workers))


def test_labels_that_do_not_fit_the_images_are_refused() -> None:
    with pytest.raises(DataError, match="10 training images, but labels of 9"):
        replace(a_case(10), labels=a_case(9).labels).loader()


def test_a_set_without_images_is_refused() -> None:
    with pytest.raises(DataError, match="no images"):
        a_case(0).loader()


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
