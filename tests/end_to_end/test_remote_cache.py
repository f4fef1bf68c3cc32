"""A DVC remote lets any machine fill the cache for any other: what a night made here is restored there."""

from dataclasses import replace
from pathlib import Path

from tests.end_to_end.checkouts import Checkout, clone

REMOTE = "\n['remote \"shared\"']\n    url = ../../remote\n"  # relative to .dvc/, so beside the clone: what a tree must resolve


def with_remote(folder: Path, prefect_home: Path) -> Checkout:
    """A clone whose committed DVC configuration has the remote `shared` beside it as its default."""
    checkout = clone(folder, prefect_home)
    config = (checkout.root / ".dvc" / "config").read_text().replace("[core]\n", "[core]\n    remote = shared\n")
    checkout.commit(".dvc/config", config + REMOTE)
    return checkout


def test_what_a_night_pushed_another_machine_restores(tmp_path: Path, prefect_home: Path, api: str) -> None:
    here = replace(with_remote(tmp_path / "here", prefect_home), api=api)
    printed = here.check("nightowl", "demo", "--images", "48")
    assert "no DVC remote" not in printed
    assert "could not be pushed" not in printed
    assert (tmp_path / "remote" / "files" / "md5").is_dir()

    there = with_remote(tmp_path / "there", prefect_home)
    registry = {"NIGHTOWL_HOME": str(here.root / ".nightowl")}
    there.check("nightowl", "inputs", "restore", "demo", "--version", "1", **registry)
    there.check("dvc", "repro", "--pull", "gate@demo", "export@demo", **registry)
    assert there.executed() == set()
    ours, theirs = (checkout.root / "out/demo/export/model.onnx" for checkout in (here, there))
    assert theirs.is_file()
    here.check("dvc", "repro", "gate@demo", "export@demo")
    assert ours.read_bytes() == theirs.read_bytes()
