"""What the EMA weights are worth on val, by the one evaluator, each rank looking at its part of the images.

Images come in fixed batches, dealt out to the ranks, so that the figures do not depend on how many ranks there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nightowl.data.tiling import Window
from nightowl.evaluation.detect import Model, finish
from nightowl.evaluation.detections import gather
from nightowl.evaluation.postprocess import Found, Head
from nightowl.evaluation.preprocess import Letterbox
from nightowl.evaluation.runners import TorchRunner
from nightowl.evaluation.truth import Truth
from nightowl.evaluation.validation import validate
from nightowl.params import EvaluateParams
from nightowl.training.group import Group
from nightowl.training.memory import is_out_of_memory
from nightowl.training.progress import Figures

LIMITS = EvaluateParams()  # fixed: the choice of epoch must not change with how a model is measured later
NO_FIGURES = Figures(precision=None, recall=0, map50=0, map50_95=0)  # of a trial, which nobody reads
Fault = Callable[[int], None]


class ValImages(Protocol):
    """The letterboxed images of val: (3, S, S) uint8 RGB, and how each was laid into its square."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], Letterbox]: ...


class Cut(Enum):
    """Why a validation came to no figures."""

    STOP = "a rank was asked to stop"
    MEMORY = "a rank ran out of memory"


@dataclass(frozen=True)
class Validator:
    """Measures a module on val. `truth` has its images in the order of `images`."""

    images: ValImages
    truth: Truth
    image_size: int
    head: Head
    device: str
    group: Group

    def measure(
        self, ema: torch.nn.Module, batch: int, stop: Callable[[], bool], fault: Fault, num_batches: int | None = None
    ) -> Figures | Cut:
        """Figures, or why there are none, the same on every rank. `num_batches`: only so many, for a trial.

        Raises:
            StageFailed: the model says NaN.
        """
        self.group.share_tensors(list(ema.buffers()))  # BatchNorm differs a rank; rank 0's counts
        model = Model(TorchRunner(ema, self.device), self.truth.classes, self.image_size, self.head)
        firsts = list(range(0, len(self.images), batch))[:num_batches]
        found: list[tuple[int, list[Found]]] = []
        for start in range(0, len(firsts), self.group.world_size):
            mine = firsts[start + self.group.rank : start + self.group.rank + 1]
            self.group.at(f"batch {start + 1} of {len(firsts)} of validation")
            failed = False
            try:
                found += [(first, self._look(model, first, batch, fault)) for first in mine]
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                failed = True
            any_failed, any_stop = self.group.agree([failed, stop()])
            if any_failed or any_stop:
                return Cut.MEMORY if any_failed else Cut.STOP
        return self._figures(found, whole=num_batches is None)

    def _look(self, model: Model, first: int, batch: int, fault: Fault) -> list[Found]:
        fault(first)
        chosen = range(first, min(first + batch, len(self.images)))
        pixels, plans = zip(*(self.images[index] for index in chosen), strict=True)
        outputs = model.runner(np.stack(pixels).astype(np.float32) / np.float32(255))
        names = [self.truth.images[index] for index in chosen]
        return [
            finish(name, output, plan, Window(0, 0, plan.width, plan.height), model, LIMITS)
            for name, output, plan in zip(names, outputs, plans, strict=True)
        ]

    def _figures(self, found: list[tuple[int, list[Found]]], whole: bool) -> Figures:
        gathered = self.group.gather(found)
        figures = self._evaluate(gathered) if gathered is not None and whole else None
        shared = self.group.share(figures)
        if not whole:
            return NO_FIGURES
        assert isinstance(shared, Figures)
        return shared

    def _evaluate(self, gathered: Sequence[object]) -> Figures:
        parts: list[tuple[int, list[Found]]] = [part for rank in gathered for part in rank]  # type: ignore[attr-defined]
        found = [each for _, those in sorted(parts, key=lambda part: part[0]) for each in those]
        measured = validate(self.truth, gather(self.truth.classes, self.truth.images, found), LIMITS.max_detections)
        return Figures(precision=measured.precision, recall=measured.recall, map50=measured.map50, map50_95=measured.map50_95)
