"""The ranks of one training, behind six verbs, so that the loop reads the same for one process and for many.

Every verb is called by all ranks in the same order. `Alone` is a group of one and costs nothing.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist

from nightowl.training.pulse import Heart


class Group(Protocol):
    rank: int
    world_size: int

    def at(self, where: str) -> None:
        """Say where this rank is, for whoever looks at one that hangs."""

    def agree(self, flags: Sequence[int]) -> list[int]:
        """The largest of each flag over all ranks: what one rank has seen, all know."""

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        """`tensor` summed over all ranks, in place."""

    def gather(self, value: object) -> list[object] | None:
        """What every rank gave, in order of rank, on rank 0; None elsewhere."""

    def share(self, value: object) -> object:
        """What rank 0 gave, on all ranks."""

    def share_tensors(self, tensors: Sequence[torch.Tensor]) -> None:
        """Overwrite `tensors` with those of rank 0."""


class Alone:
    """One process."""

    rank = 0
    world_size = 1

    def at(self, where: str) -> None:
        return

    def agree(self, flags: Sequence[int]) -> list[int]:
        return list(flags)

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def gather(self, value: object) -> list[object] | None:
        return [value]

    def share(self, value: object) -> object:
        return value

    def share_tensors(self, tensors: Sequence[torch.Tensor]) -> None:
        return


class Ranks:
    """The process group that torchrun's variables describe: NCCL between GPUs, gloo between CPUs.

    A rank that has not come to a collective within `timeout_minutes` ends the training of all.
    """

    def __init__(self, device: str, timeout_minutes: float) -> None:
        self._device = torch.device(device)
        if self._device.type == "cuda":
            torch.cuda.set_device(self._device)
        backend = "nccl" if self._device.type == "cuda" else "gloo"
        dist.init_process_group(backend, timeout=timedelta(minutes=timeout_minutes))
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()
        self.heart = Heart(self.rank)

    def at(self, where: str) -> None:
        self.heart.beat(where)

    def agree(self, flags: Sequence[int]) -> list[int]:
        self.heart.beat()
        values = torch.tensor(list(flags), dtype=torch.int64, device=self._device)
        dist.all_reduce(values, dist.ReduceOp.MAX)
        agreed: list[int] = values.tolist()
        return agreed

    def add(self, tensor: torch.Tensor) -> torch.Tensor:
        self.heart.beat()
        dist.all_reduce(tensor, dist.ReduceOp.SUM)
        return tensor

    def gather(self, value: object) -> list[object] | None:
        self.heart.beat()
        gathered: list[object] | None = [None] * self.world_size if self.rank == 0 else None
        dist.gather_object(value, gathered, dst=0)
        return gathered

    def share(self, value: object) -> object:
        self.heart.beat()
        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def share_tensors(self, tensors: Sequence[torch.Tensor]) -> None:
        self.heart.beat()
        for tensor in tensors:
            dist.broadcast(tensor, src=0)

    def close(self) -> None:
        dist.destroy_process_group()
