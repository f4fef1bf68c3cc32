"""Some tests hold us against ultralytics, which is told to be quiet before any of them imports it."""

from tests.tiny import quiet_ultralytics

quiet_ultralytics()
