"""Make a registered version the champion, by hand."""

from prefect import flow

from tasks.registry import promote_version


@flow(name="promote", flow_run_name="{detector} version {version}")
def promote(detector: str, version: str, reason: str, force: bool = False) -> str:
    """Promote `version` of `detector`; a version that the gate refused needs `force`. Returns the version."""
    return promote_version(detector, version, reason, force)
