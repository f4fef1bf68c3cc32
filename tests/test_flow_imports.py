"""A night's own process conducts: what computes is loaded by the stages, in processes of their own."""

import subprocess
import sys


def test_a_night_loads_no_torch() -> None:
    code = "import sys, flows.nightly; print([name for name in ('torch', 'ultralytics', 'onnxruntime') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
