"""The user-data of a run's machines: a few lines of shell around `boot.py`.

Its first line sets the hour at which the machine ends itself, whatever becomes of the rest: the same hour for one that boots
late, and never further off than for the first. Its last line ends it when its work is over or has failed. The launch template
says that a machine that shuts down is terminated.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path

from nightowl.errors import SettingsError
from nightowl.machines.job import Job

MAX_BYTES = 16 << 10  # EC2, before base64
_SPARE_MINUTES = 10  # after the deadline, for what ends machines in better order
# What builds an environment where the machine image has no uv: from the index, compared with these digests.
_UV = """\
uv==0.13.9 \\
    --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \\
    --hash=sha256:5435c5ce14a56431208ca0996416d310f1598e8c2c8ba707688985a16bb82dbe
"""
_SHELL = """\
#!/bin/bash
left=$(( ({end} - $(date +%s)) / 60 )); shutdown -h "+$(( left < 1 ? 1 : left > {minutes} ? {minutes} : left ))"
home="${{NIGHTOWL_NODE_HOME:-/var/lib/nightowl}}"
mkdir -p "$home"
cat >"$home/boot.json" <<'END_OF_FILE'
{job}
END_OF_FILE
cat >"$home/boot.py" <<'END_OF_FILE'
{boot}
END_OF_FILE
{python} "$home/boot.py" "$home/boot.json" 2>&1 | tee -a "$home/boot.log"
sleep {pause}
shutdown -h now
"""
_PAUSE_SECONDS = 5  # a group that sends machines that cannot start sends no more than a dozen a minute


def user_data(job: Job, board: str, region: str, s3_endpoint: str | None = None) -> str:
    """The script, not yet in base64. `board` is the s3:// address of all boards.

    Raises:
        SettingsError: `board` is no s3:// address, or the script is too long.
    """
    if not board.startswith("s3://"):
        raise SettingsError(f"machines.board: {board}: expected s3://BUCKET/PREFIX, which machines elsewhere can reach")
    told = {
        "run_id": job.run_id,
        "board": board,
        "region": region,
        "endpoint": s3_endpoint,
        "code_sha256": job.code_sha256,
        "lock_sha256": job.lock_sha256,
        "environment": job.environment.model_dump(mode="json"),
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "uv": _UV,
    }
    end = job.deadline + timedelta(minutes=_SPARE_MINUTES)
    script = _SHELL.format(
        end=round(end.timestamp()),
        minutes=round((end - job.submitted_at).total_seconds() / 60),
        job=json.dumps(told, indent=1),
        boot=Path(__file__).with_name("boot.py").read_text(encoding="utf-8"),
        python=job.environment.python if job.environment.kind == "baked" else "python3",
        pause=_PAUSE_SECONDS,
    )
    if len(script.encode()) > MAX_BYTES:
        raise SettingsError(f"{job.run_id}: the user-data has {len(script.encode())} bytes, more than EC2's {MAX_BYTES}")
    return script
