"""For all tests: whoever starts them in the background of a shell without job control has had SIGINT ignored for them, and what
they start inherits that; then no Ctrl-C could be tried."""

import signal


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
