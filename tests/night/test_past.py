from datetime import UTC, datetime

import pytest

from nightowl.night.past import past_nights
from nightowl.registry.record import BundleRecord
from nightowl.registry.version import State, VersionInfo
from tests.bundles import RANDOM_WEIGHTS


def info(version: str, state: State, against: str | None, verdict: str = "promote", dirty: bool = False) -> VersionInfo:
    record = BundleRecord(
        detector="demo", night_id=f"night {version}", night_key=f"key {version}", created_at=datetime(2026, 1, 1, tzinfo=UTC),
        code_commit="c", dirty=dirty, dataset_version="d", params_sha256="p", environment_sha256="e", base=RANDOM_WEIGHTS,
        classes=("open",), image_size=64, weights_sha256=f"weights {version}", onnx_sha256="o", champion_version=against,
        map50=0.5, map50_95=0.3, verdict=verdict, parity_passed=True,
    )  # fmt: skip
    return VersionInfo(version=version, record=record, state=state)


@pytest.mark.parametrize(
    ("last", "expected", "reason"),
    [
        (info("2", "not promoted", "1", verdict="refuse"), ["2", "1"], "refused: that is known"),
        (info("2", "not promoted", "1"), ["1"], "cut short between registering and promoting: it must run again"),
        (info("2", "taken back", "1"), ["2", "1"], "taken back by hand: it must not return by itself"),
        (info("2", "not promoted", None), ["2", "1"], "judged against another champion: the night said so and ended"),
        (info("2", "not promoted", "1", dirty=True), ["1"], "made from a dirty tree: once committed it may run again"),
    ],
)
def test_only_nights_that_came_to_their_end_settle_anything(last: VersionInfo, expected: list[str], reason: str) -> None:
    assert [night.version for night in past_nights([info("1", "champion", None), last])] == expected, reason


def test_what_is_known_of_a_night_is_its_key_its_champion_and_whether_it_was_taken_back() -> None:
    (night, _) = past_nights([info("1", "champion", None), info("2", "taken back", "1")])
    assert (night.night_key, night.judged_against, night.taken_back) == ("key 2", "1", True)
