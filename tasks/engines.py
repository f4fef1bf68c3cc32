"""Engines, built on the machine that a flow was sent to."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.night.checkout import checkout_root
from nightowl.night.engine import build_version
from nightowl.settings import load_settings
from tasks.say import say


@task(name="build engine", cache_policy=NO_CACHE)
def build_engine(detector: str, version: str) -> str:
    """Build the engine of a version for this machine's GPU, unless it is there; returns the kind of machine. Again: nothing."""
    info, record = build_version(load_settings(checkout_root(Path.cwd())), detector, version)
    say(f"{detector} version {info.version}: engine for {record.gpu}, {record.held_in_words()}")
    return record.fingerprint.key()
