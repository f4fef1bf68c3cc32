"""torchrun, ending with whoever started it: `python -m nightowl.training.agent` takes torchrun's own arguments."""

import signal

from nightowl.processes import ask_for_signal_when_parent_ends


def main() -> None:
    ask_for_signal_when_parent_ends(signal.SIGTERM)
    from torch.distributed.run import main as torchrun

    torchrun()


if __name__ == "__main__":
    main()
