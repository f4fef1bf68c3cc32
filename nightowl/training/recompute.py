"""Activation checkpointing: a layer's inner activations are not kept for the way back but computed again there.

The second pass must not count as one: BatchNorm's running statistics are left alone in it, and so equal those of a training
without checkpointing, bit for bit.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint


def recompute_layers(model: torch.nn.Module) -> None:
    """Have every layer of a detector but its head recompute itself. To be called when nothing will copy the model any more."""
    layers: list[torch.nn.Module] = list(model.model)  # type: ignore[arg-type]
    for layer in layers[:-1]:
        if any(True for _ in layer.parameters()):
            layer.forward = partial(_checkpointed, layer, layer.forward)


def _checkpointed(layer: torch.nn.Module, forward: Callable[..., object], *inputs: object) -> object:
    if not (layer.training and torch.is_grad_enabled()):
        return forward(*inputs)
    return checkpoint(forward, *inputs, use_reentrant=False, context_fn=partial(_contexts, layer))


def _contexts(layer: torch.nn.Module) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """For the first pass, and for the one on the way back."""
    return nullcontext(), _statistics_left_alone(layer)


@contextmanager
def _statistics_left_alone(layer: torch.nn.Module) -> Iterator[None]:
    """BatchNorm normalises by the batch as in training, and with momentum 0 keeps its statistics as they are."""
    norms = [part for part in layer.modules() if isinstance(part, _BatchNorm) and part.training]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
            if norm.num_batches_tracked is not None:
                norm.num_batches_tracked -= 1
