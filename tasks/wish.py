"""Whether an operator wants a night to end, or something else ends it: what is rented goes with the first alone."""

import os

from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectException, TerminationSignal


def is_wish_to_end(error: BaseException) -> bool:
    """Ctrl-C, or a flow run that is being cancelled. A worker that is shut down gets the same signal as a cancel, and only the
    server knows which it is; where it cannot be asked, the run goes on."""
    if isinstance(error, KeyboardInterrupt):
        return True
    run = os.environ.get("PREFECT__FLOW_RUN_ID")
    if run is None or not isinstance(error, TerminationSignal):
        return False
    try:
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(run).state  # type: ignore[arg-type]
    except (PrefectException, OSError):
        return False
    return state is not None and state.is_cancelling()
