"""Some tests hold us against ultralytics, which is told to be quiet before anything imports it."""

from nightowl.training.quiet import silence

silence()
