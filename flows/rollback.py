"""Give the alias back to the champion before this one."""

from prefect import flow

from tasks.registry import rollback_champion


@flow(name="rollback", flow_run_name="{detector}")
def rollback(detector: str, reason: str) -> str:
    """Take the champion of `detector` back. Returns the version that is champion now."""
    return rollback_champion(detector, reason)
