"""A night whose data lies in S3: pulled when its inputs are pinned, read by every stage from the pinned snapshot."""

from pathlib import Path

import pytest

from nightowl.boards import generate
from tests.cloud.object_server import ObjectServer, serving
from tests.end_to_end.checkouts import clone


@pytest.mark.slow
def test_a_night_from_s3_and_the_night_after_it(tmp_path: Path, prefect_home: Path) -> None:
    checkout = clone(tmp_path / "nightowl", prefect_home)
    generate(tmp_path / "boards", num_images=24)
    with serving(ObjectServer()) as server:
        for path in sorted((tmp_path / "boards").rglob("*")):
            if path.is_file():
                server.put(f"boards/{path.relative_to(tmp_path / 'boards').as_posix()}", path.read_bytes())
        there = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "NIGHTOWL_S3_ENDPOINT": server.endpoint,
        }
        printed = checkout.check("nightowl", "night", "demo", "--source", "s3://bucket/boards", **there)
        assert "pulled s3://bucket/boards/: " in printed
        assert "demo@champion is version 1" in printed
        again = checkout.check("nightowl", "night", "demo", **there)
        assert "fetched 0 files" in again
        assert "nothing new since version 1 was made" in again
        server.remove(next(key for key in server.objects if "/train/" in key and key.endswith(".png")))
        assert "removed 1; fetched 0 files" in checkout.check("nightowl", "data", "pull", "demo", **there)
