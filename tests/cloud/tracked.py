"""A checkout with a folder that DVC tracks, written by hand as DVC writes it, and the objects of its remote."""

import json
from hashlib import md5
from pathlib import Path

from nightowl.cloud.dvc_tracked import Tracked, tracked_folder

FILES = {"images/1.png": b"first", "images/2.png": b"second", "labels/1.txt": b"0 1 1 1 1", "labels/2.txt": b""}


def key_of(content: bytes, kind: str = "") -> str:
    digest = md5(content).hexdigest()
    return f"files/md5/{digest[:2]}/{digest[2:]}{kind}"


def list_of(files: dict[str, bytes]) -> bytes:
    rows = [{"md5": md5(body).hexdigest(), "relpath": path} for path, body in sorted(files.items())]
    return json.dumps(rows, sort_keys=True).encode()


def remote_objects(files: dict[str, bytes]) -> dict[str, bytes]:
    """What `dvc push` leaves in a remote, by key."""
    return {key_of(list_of(files), ".dir"): list_of(files)} | {key_of(body): body for body in files.values()}


def config(repo: Path, text: str, name: str = "config") -> None:
    (repo / ".dvc").mkdir(parents=True, exist_ok=True)
    (repo / ".dvc" / name).write_text(text)


def record(repo: Path, files: dict[str, bytes]) -> Tracked:
    """Write data.dvc for the folder."""
    digest, num_bytes = md5(list_of(files)).hexdigest(), sum(map(len, files.values()))
    (repo / "data.dvc").write_text(f"outs:\n- md5: {digest}.dir\n  size: {num_bytes}\n  hash: md5\n  path: data\n")
    return tracked_folder(repo / "data")
