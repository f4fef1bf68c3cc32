import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Takes long to import, as torch does, and says when it has begun to.
SLOW = "import time\nprint('importing', flush=True)\ntime.sleep(60)\n"
# Takes SIGINT over, as a stage does.
BEGUN = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print(__name__, sys.argv[1:], flush=True)
    signal.pause()
except KeyboardInterrupt:
    sys.exit(7)
"""


def interrupted(folder: Path, module: str) -> tuple[str, str, int]:
    """The first line, what it wrote to standard error, and its exit code, of `module` interrupted after its first line."""
    (folder / "slow.py").write_text(module)
    command = [sys.executable, "-m", "nightowl.starting", "slow", "demo"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        return first, process.stderr.read(), process.wait(20)


def test_a_stop_while_libraries_are_imported_is_one_line_and_130(tmp_path: Path) -> None:
    first, said, code = interrupted(tmp_path, SLOW)
    assert (first, code) == ("importing\n", 130)
    assert said == "nightowl: interrupted before it began; run the same command again\n"


def test_what_has_begun_hears_of_a_stop_itself(tmp_path: Path) -> None:
    assert interrupted(tmp_path, BEGUN) == ("__main__ ['demo']\n", "", 7)


def test_a_stop_while_python_itself_starts_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    front = (
        "import sys; from pathlib import Path; from nightowl.commands.foreground import _before; import os, signal\n"
        "_before(held=True, left=signal.SIGTERM); os.kill(os.getpid(), signal.SIGINT)\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'nightowl.starting', 'slow'])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", front], env=environment, capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "nightowl: interrupted before it began; run the same command again\n"
