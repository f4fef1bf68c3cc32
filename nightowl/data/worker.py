"""One worker of a loader: a process that writes samples into slots until the other side closes the connection.

It is a fresh interpreter that never imports torch: no fork of a process with threads or a CUDA context, and an end of its own
when the training process ends in any way, because its connection then does. It stands in a process group of its own, so that
Ctrl-C reaches the training process alone, which closes it.
"""

import os
import sys
from multiprocessing.connection import Connection
from typing import NamedTuple

import cv2

from nightowl.data.maker import Maker, Share, TrainingSet
from nightowl.data.slots import Layout, mapped
from nightowl.errors import NightowlError, StageFailed


class Setup(NamedTuple):
    """The first message to a worker."""

    training_set: TrainingSet
    layout: Layout


class Task(NamedTuple):
    """Samples to make, and where they go. `ticket` comes back when they are there."""

    ticket: int
    share: Share
    slot: int
    first: int


class Failure(NamedTuple):
    """What went wrong with a task."""

    error: NightowlError


def main() -> None:
    """Serve the connection and memory whose descriptors are the two arguments."""
    cv2.setNumThreads(1)
    connection, descriptor = Connection(int(sys.argv[1])), int(sys.argv[2])
    try:
        _serve(connection, descriptor)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)  # the other side has gone: nobody is left to tell


def _serve(connection: Connection, descriptor: int) -> None:
    setup: Setup = connection.recv()
    memory = mapped(descriptor, setup.layout.num_bytes())
    maker, slots = Maker(setup.training_set), [setup.layout.slot(memory, number) for number in range(setup.layout.num_slots)]
    while True:
        task: Task = connection.recv()
        try:
            maker.make(task.share, slots[task.slot], task.first)
        except NightowlError as error:
            connection.send(Failure(error))
        except Exception as error:  # noqa: BLE001 - a process border: the other side tells it
            told = f"epoch {task.share.epoch}, one of the samples {task.share.samples}: {type(error).__name__}: {error}"
            connection.send(Failure(StageFailed(told)))
        else:
            connection.send(task.ticket)


if __name__ == "__main__":
    from nightowl.data.worker import main as served  # under its own name, as the messages' types are

    served()
