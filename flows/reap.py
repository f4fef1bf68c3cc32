"""End whatever rented machine is past its deadline, every hour: the last of the guards over the bill."""

from prefect import flow

from tasks.reaping import reap_overdue


@flow(name="reap")
def reap() -> list[str]:
    """End everything with nightowl's tag whose time is over. Returns a line for each run that was past it."""
    return reap_overdue()
