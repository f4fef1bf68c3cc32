"""What becomes of a candidate: registered whole, then champion or not. The alias moves here and nowhere else."""

from pathlib import Path

from prefect import task
from prefect.cache_policies import NO_CACHE

from nightowl.evaluation.verdict import Verdict
from nightowl.night.bundling import bundle_night
from nightowl.night.checkout import checkout_root
from nightowl.night.record import Ending, Night, Pinned, report_of, settings_of, workspace_in_tree
from nightowl.night.sentence import ending_sentence
from nightowl.registry.history import user_name
from nightowl.registry.rules import refusal_to_promote
from nightowl.registry.store import Registry, open_registry
from nightowl.settings import load_settings
from tasks.say import say


@task(name="register", cache_policy=NO_CACHE)
def register(night: Night, pinned: Pinned) -> str:
    """Register what the night made as one bundle; returns the version. Called again for the same night, it returns the same."""
    version = bundle_night(night, pinned, open_registry(settings_of(night)))
    say(f"registered {night.detector} version {version}")
    return version


@task(name="promote or refuse", cache_policy=NO_CACHE)
def promote_or_refuse(night: Night, pinned: Pinned, version: str) -> Ending:
    """Give the alias to `version` if the gate, the parity and the state of the code allow it."""
    registry = open_registry(settings_of(night))
    refusal = refusal_to_promote(registry.version(night.detector, version), registry.versions(night.detector), as_judged=True)
    if refusal is None:
        registry.promote(night.detector, version, f"night {night.id}: the gate's verdict", by="nightowl", as_judged=True)
    champion = registry.champion(night.detector)
    return Ending(
        outcome="promoted" if refusal is None else "refused",
        sentence=ending_sentence(night.detector, version, _verdict(night), refusal),
        detector=night.detector,
        version=version,
        champion_version=champion.version if champion else None,
        previous_champion=pinned.champion_version,
        report=report_of(night),
    )


def _verdict(night: Night) -> Verdict:
    return Verdict.model_validate_json(workspace_in_tree(night).verdict.read_bytes())


def champion_stands(night: Night, pinned: Pinned) -> Ending:
    """The ending of a night with nothing new."""
    assert pinned.nothing_new is not None
    return Ending(
        outcome="nothing_new",
        sentence=f"{night.detector}: {pinned.nothing_new}",
        still_refused=pinned.still_refused,
        detector=night.detector,
        version=None,
        champion_version=pinned.champion_version,
        previous_champion=pinned.champion_version,
        report=report_of(night),
    )


@task(name="promote", cache_policy=NO_CACHE)
def promote_version(detector: str, version: str, reason: str, force: bool) -> str:
    """Make `version` the champion, as the named user. Raises RegistryError when it may not be."""
    return _registry().promote(detector, version, reason, by=user_name(), force=force)


@task(name="rollback", cache_policy=NO_CACHE)
def rollback_champion(detector: str, reason: str) -> str:
    """Give the alias back to the champion before; returns its version. Raises RegistryError when there is none."""
    return _registry().rollback(detector, reason, by=user_name())


def _registry() -> Registry:
    return open_registry(load_settings(checkout_root(Path.cwd())))
