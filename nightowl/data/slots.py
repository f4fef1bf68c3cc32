"""Batches in memory that worker processes write and the training process reads, without a copy between them.

The memory is anonymous (memfd): it has no name that could be left behind, and is not bound by the size of /dev/shm, which
containers keep at 64 MB.
"""

import mmap
import os
import tempfile
import weakref
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_ALIGN = 64


class Slot(NamedTuple):
    """Arrays for one batch of up to N images with up to M objects each.

    images uint8 (N, 3, S, S); counts int64 (N,): objects of each; boxes float32 (N, M, 4), boxes_cxcywh_norm; class_ids int64
    (N, M); hsv_gains float32 (N, 3).
    """

    images: NDArray[np.uint8]
    counts: NDArray[np.int64]
    boxes: NDArray[np.float32]
    class_ids: NDArray[np.int64]
    hsv_gains: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Layout:
    """How many slots there are, and how large each is."""

    num_slots: int
    num_images: int
    size: int
    max_objects: int

    def num_bytes(self) -> int:
        return self.num_slots * self._slot_bytes()

    def slot(self, memory: Any, number: int) -> Slot:
        """Slot `number` as arrays over `memory`; each call gives arrays of its own."""
        at, arrays = number * self._slot_bytes(), list[Any]()
        for shape, kind in self._fields():
            count = int(np.prod(shape))
            arrays.append(np.frombuffer(memory, kind, count, at).reshape(shape) if count else np.empty(0, kind).reshape(shape))
            at += _padded(count * np.dtype(kind).itemsize)
        return Slot(*arrays)

    def private(self) -> Slot:
        """A slot in memory of its own."""
        return Slot(*(np.empty(shape, kind) for shape, kind in self._fields()))

    def _fields(self) -> list[tuple[tuple[int, ...], type]]:
        number, objects = self.num_images, self.max_objects
        return [
            ((number, 3, self.size, self.size), np.uint8),
            ((number,), np.int64),
            ((number, objects, 4), np.float32),
            ((number, objects), np.int64),
            ((number, 3), np.float32),
        ]

    def _slot_bytes(self) -> int:
        return sum(_padded(int(np.prod(shape)) * np.dtype(kind).itemsize) for shape, kind in self._fields())


def _padded(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGN) * _ALIGN


class Ring:
    """The slots of a layout over one piece of memory, each used again when nobody refers to the pixels of its batch any more.

    Fresh memory for each batch would cost more than filling it: a first touch of a page is slow.
    """

    def __init__(self, layout: Layout, memory: Any) -> None:
        self._layout, self._memory = layout, memory
        self._free = deque(range(layout.num_slots))

    def __bool__(self) -> bool:
        """Whether a slot is free."""
        return bool(self._free)

    def take(self) -> int:
        """The number of a free slot, which is no longer free."""
        return self._free.popleft()

    def give_back(self, number: int) -> None:
        """Make a slot free that was taken and not lent."""
        self._free.append(number)

    def lend(self, number: int) -> Slot:
        """The arrays of a slot that was taken; it is free when its pixels, and all views of them, are gone."""
        slot = self._layout.slot(self._memory, number)
        owner: Any = slot.images.base  # numpy has every view refer to this one
        weakref.finalize(owner, self._free.append, number).atexit = False
        return slot


def anonymous_file(num_bytes: int) -> int:
    """A descriptor of `num_bytes` of memory that other processes can map; pages take memory when first written."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("nightowl-batches")
    else:  # pragma: no cover - other systems than Linux
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, num_bytes)
    return descriptor


def mapped(descriptor: int, num_bytes: int) -> mmap.mmap:
    """The memory behind `descriptor`, for reading and writing."""
    return mmap.mmap(descriptor, num_bytes)
