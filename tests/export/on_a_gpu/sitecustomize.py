"""A Python that has this folder on its path is on a machine that pretends to have a GPU: a worker, and what it starts."""

from tests.export.stand_in_gpu import pretend

pretend(setattr)
