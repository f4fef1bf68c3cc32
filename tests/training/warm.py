"""Imported by the server that test processes are forked from: a learner is built once there, as first builds import a lot."""

from nightowl.training.yolo import build
from tests.training.standins import a_plan
from tests.training.trials import make as make

build(a_plan())
