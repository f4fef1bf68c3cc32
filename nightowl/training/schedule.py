"""Learning rate and momentum of every step, a function of its place alone: nothing here remembers. Formulas: ultralytics'.

E epochs of N optimizer steps; step i of epoch e has the number i + N e.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Schedule:
    """What rates follow from. `momentum` is where warm-up leads; `warmup_bias_lr` is where biases come down from."""

    num_epochs: int
    num_steps: int
    lrf: float
    momentum: float
    warmup_epochs: float
    warmup_bias_lr: float
    warmup_momentum: float

    def factor(self, epoch: int) -> float:
        """The learning rate of `epoch` as a fraction of the first: linear from 1 to `lrf`."""
        return max(1 - epoch / self.num_epochs, 0) * (1.0 - self.lrf) + self.lrf

    def num_warmup_steps(self) -> int:
        """Steps of warm-up; it leaves at least the last epoch for training as meant."""
        return max(round(min(self.warmup_epochs, max(self.num_epochs - 1, 0)) * self.num_steps), 0)

    def apply(self, groups: list[dict[str, Any]], epoch: int, step: int) -> None:
        """Set `lr`, and in warm-up `momentum`, of an optimizer's parameter groups for one step."""
        number, warmup, factor = step + self.num_steps * epoch, self.num_warmup_steps(), self.factor(epoch)
        for group in groups:
            group["lr"] = group["initial_lr"] * factor
            if warmup and number <= warmup:
                self._warm_up(group, number, warmup, factor)

    def _warm_up(self, group: MutableMapping[str, Any], number: int, warmup: int, factor: float) -> None:
        """Biases come down from their own rate, all others rise from zero; momentum rises."""
        first = self.warmup_bias_lr if group.get("param_group") == "bias" else 0.0
        group["lr"] = float(np.interp(number, [0, warmup], [first, group["initial_lr"] * factor]))
        if "momentum" in group:
            group["momentum"] = float(np.interp(number, [0, warmup], [self.warmup_momentum, self.momentum]))
