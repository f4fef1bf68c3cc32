"""Prefect flows: when, where and what-if. They read like prose; what they do is in tasks/."""

from nightowl.telemetry import turn_telemetry_off

turn_telemetry_off()
