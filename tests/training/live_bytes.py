"""Counts what tensors hold: bytes of all storages that operations make and nobody has let go of yet, and their peak."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """A context; `peak` is the most that was held at once, beyond what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self, operation: Callable[..., Any], types: object, args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = {id_of(value) for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)}
        made = operation(*args, **(kwargs or {}))
        for value in tree_leaves(made):
            if isinstance(value, torch.Tensor) and id_of(value) not in given | self._known:
                self._hold(value.untyped_storage())
        return made

    def _hold(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._let_go, key, size)

    def _let_go(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


def id_of(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
