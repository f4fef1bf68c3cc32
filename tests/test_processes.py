import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from nightowl.processes import ALREADY, descendants, impatience_answered, kill_descendants, lines, wait


def python(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_lines_come_as_they_are_written_also_the_one_that_has_no_end() -> None:
    with python(r"import sys; sys.stdout.buffer.write(b'one\n\ntwo\r\n\xff three')") as process:
        assert list(lines(process)) == ["one", "", "two", "\N{REPLACEMENT CHARACTER} three"]
        assert wait(process) == 0


def test_the_exit_code_is_that_of_the_process() -> None:
    with python("raise SystemExit(7)") as process:
        assert wait(process) == 7


@pytest.mark.parametrize("blocked_in", ["wait", "lines"])
def test_a_signal_that_another_thread_takes_interrupts_within_a_moment(blocked_in: str) -> None:
    process = python("import time; time.sleep(30)")

    def take() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # handled here, so the main thread's call is not cut short

    started = time.monotonic()
    threading.Timer(0.2, take).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait(process) if blocked_in == "wait" else list(lines(process))
        assert time.monotonic() - started < 15
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def test_an_interruption_of_what_stops_is_answered_and_interrupts_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with impatience_answered():
        os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err == ALREADY + "\n"
    assert signal.getsignal(signal.SIGINT) is before


def test_a_thread_leaves_interruptions_to_the_main_one() -> None:
    def stops() -> None:
        with impatience_answered():
            done.append(signal.getsignal(signal.SIGINT))

    done: list[object] = []
    thread = threading.Thread(target=stops)
    thread.start()
    thread.join()
    assert done == [signal.getsignal(signal.SIGINT)]


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's doing, on Linux only")
def test_a_process_hears_that_the_one_that_started_it_was_killed() -> None:
    child = (
        "import os, signal, time; from nightowl.processes import ask_for_signal_when_parent_ends as ask; "
        "signal.signal(15, lambda *_: (print('heard', flush=True), os._exit(0))); "
        "ask(15); print('ready', flush=True); time.sleep(20)"
    )
    with python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])") as parent:
        heard = lines(parent)
        assert next(heard) == "ready"
        parent.kill()
        assert next(heard) == "heard"


def test_what_a_process_began_is_found_and_killed_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], "
    process = python(f"{chain}start_new_session=True); print(p.pid, flush=True); p.wait()")
    below = int(next(lines(process)))
    assert descendants(process.pid) == [below] and process.pid in descendants(os.getpid())
    monkeypatch.setattr("nightowl.processes.descendants", lambda pid: [process.pid, below])
    assert kill_descendants() == 2
    until = time.monotonic() + 10
    while descendants(process.pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert descendants(process.pid) == []
    process.poll()
    assert process.stdout is not None
    process.stdout.close()
