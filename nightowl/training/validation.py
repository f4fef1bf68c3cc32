"""What the EMA weights are worth on val, by the one evaluator, each rank looking at its part of the images.

Images come in fixed batches, dealt out to the ranks, so that the figures do not depend on how many ranks there are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from nightowl.data.manifest import Image, Window
from nightowl.evaluation.detect import Model, finish, merged
from nightowl.evaluation.detections import gather
from nightowl.evaluation.postprocess import Found, Head
from nightowl.evaluation.preprocess import Letterbox
from nightowl.evaluation.runners import Runner, TorchRunner
from nightowl.evaluation.truth import Truth
from nightowl.evaluation.validation import validate
from nightowl.params import EvaluateParams, TilingParams
from nightowl.training.group import Group
from nightowl.training.memory import is_out_of_memory
from nightowl.training.progress import Figures

LIMITS = EvaluateParams()  # fixed: the choice of epoch must not change with how a model is measured later
NO_FIGURES = Figures(precision=None, recall=0, map50=0, map50_95=0)  # of a trial, which nobody reads
Fault = Callable[[int], None]


class View(NamedTuple):
    """Which image of the truth a view belongs to, and where in it."""

    image: int
    window: Window


def views_of(images: Sequence[Image], views: Sequence[Image]) -> list[View]:
    """Which image each of the `views`, itself an image or a part of one, belongs to; both in the same order."""
    places = {image.path: place for place, image in enumerate(images)}
    return [View(places[each.path], each.window or Window(0, 0, each.width, each.height)) for each in views]


class ValImages(Protocol):
    """The letterboxed views of val: (3, S, S) uint8 RGB, and how each was laid into its square."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> tuple[NDArray[np.uint8], Letterbox]: ...


class Cut(Enum):
    """Why a validation came to no figures."""

    STOP = "a rank was asked to stop"
    MEMORY = "a rank ran out of memory"


@dataclass(frozen=True)
class Validator:
    """Measures a module on val. `images` are the views of the truth's images, one image after the other."""

    images: ValImages
    views: Sequence[View]
    truth: Truth
    image_size: int
    head: Head
    device: str
    group: Group
    tiling: TilingParams | None = None

    def measure(
        self, ema: torch.nn.Module, batch: int, stop: Callable[[], bool], fault: Fault, num_batches: int | None = None
    ) -> Figures | Cut:
        """Figures, or why there are none, the same on every rank. `num_batches`: only so many, for a trial.

        Raises:
            StageFailed: the model says NaN.
        """
        self.group.share_tensors(list(ema.buffers()))  # BatchNorm differs a rank; rank 0's counts
        model = self._model(TorchRunner(ema, self.device))
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
        return self._figures(found, model, whole=num_batches is None)

    def _model(self, runner: Runner) -> Model:
        return Model(runner, self.truth.classes, self.image_size, self.head, self.tiling)

    def _look(self, model: Model, first: int, batch: int, fault: Fault) -> list[Found]:
        fault(first)
        chosen = range(first, min(first + batch, len(self.images)))
        pixels, plans = zip(*(self.images[index] for index in chosen), strict=True)
        outputs = model.runner(np.stack(pixels).astype(np.float32) / np.float32(255))
        return [
            finish(self.truth.images[view.image], output, plan, view.window, model, LIMITS)
            for view, output, plan in zip((self.views[index] for index in chosen), outputs, plans, strict=True)
        ]

    def _figures(self, found: list[tuple[int, list[Found]]], model: Model, whole: bool) -> Figures:
        gathered = self.group.gather(found)
        figures = self._evaluate(gathered, model) if gathered is not None and whole else None
        shared = self.group.share(figures)
        if not whole:
            return NO_FIGURES
        assert isinstance(shared, Figures)
        return shared

    def _evaluate(self, gathered: Sequence[object], model: Model) -> Figures:
        parts: list[tuple[int, list[Found]]] = [part for rank in gathered for part in rank]  # type: ignore[attr-defined]
        tiles = [each for _, those in sorted(parts, key=lambda part: part[0]) for each in those]
        of_images: list[list[Found]] = [[] for _ in self.truth.images]
        for view, each in zip(self.views, tiles, strict=True):
            of_images[view.image].append(each)
        found = [merged(those, model, LIMITS) for those in of_images]
        measured = validate(self.truth, gather(self.truth.classes, self.truth.images, found), LIMITS.max_detections)
        return Figures(precision=measured.precision, recall=measured.recall, map50=measured.map50, map50_95=measured.map50_95)
