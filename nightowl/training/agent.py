"""torchrun, ending with whoever started it: `python -m nightowl.training.agent` takes torchrun's own arguments.

Ranks end together, so an agent whose ranks have ended waits for those of other hosts only briefly. Torchrun's 300 seconds, for
which it has no option, would hold up a host whose partner was asked to stop, and with it the word that the state is saved.
"""

import signal
from functools import partial

from nightowl.processes import ask_for_signal_when_parent_ends

_OTHERS_SECONDS = 20.0


def main() -> None:
    ask_for_signal_when_parent_ends(signal.SIGTERM)
    from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
    from torch.distributed.launcher import api
    from torch.distributed.run import main as torchrun

    briefly = partial(LocalElasticAgent, exit_barrier_timeout=_OTHERS_SECONDS)
    vars(api)["LocalElasticAgent"] = briefly  # the name that torchrun makes its agent by
    torchrun()


if __name__ == "__main__":
    main()
