import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nightowl.errors import UserError
from nightowl.night.lock import only_night

HOLD = """
import sys, time
from pathlib import Path
from nightowl.night.lock import only_night
with only_night(Path(sys.argv[1]), "line"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_night_is_told_who_runs_and_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=f"a night of line is running already \\(process {holder.pid}\\)"),
            only_night(tmp_path, "line"),
        ):
            pass
        with only_night(tmp_path, "other"):
            pass
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    with only_night(tmp_path, "line"):
        assert (tmp_path / "locks" / "line.lock").read_text() == str(os.getpid())
