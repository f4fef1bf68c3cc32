from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from nightowl.cloud.metadata import ENDPOINT, Metadata, MetadataSilent, SpotWatcher, action_notice, rebalance_time
from tests.metadata_service import MACHINE, MetadataService

NOW = datetime(2026, 7, 1, 2, 0, tzinfo=UTC)
ACTION = "spot/instance-action"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataService]:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with MetadataService().serving() as service:
        monkeypatch.setenv(ENDPOINT, service.endpoint)
        yield service


def watcher(said: list[str], answer_seconds: float = 2.0) -> SpotWatcher:
    return SpotWatcher(Metadata(answer_seconds=answer_seconds), said.append, lambda: NOW)


def test_a_machine_is_known_by_its_metadata_and_no_proxy_is_asked(service: MetadataService) -> None:
    machine = Metadata().machine()
    assert (machine.instance, machine.address, machine.spot) == (MACHINE["instance-id"], "10.0.0.7", True)
    assert (machine.zone, machine.region) == ("eu-central-1a", "eu-central-1")
    assert service.tokens == 1, "one token for all"


def test_the_region_follows_from_the_zone_where_it_is_not_said(service: MetadataService) -> None:
    del service.values["placement/region"]
    assert Metadata().machine().region == "eu-central-1"


def test_a_machine_that_is_not_marked_has_no_notice(service: MetadataService) -> None:
    said: list[str] = []
    assert watcher(said).look() is None and watcher(said).rebalance() is None and said == []


def test_a_notice_says_what_happens_and_when(service: MetadataService) -> None:
    service.values[ACTION] = '{"action": "terminate", "time": "2026-07-01T02:02:00Z"}'
    assert watcher([]).look() == "spot: this machine is taken back (terminate at 2026-07-01T02:02:00Z, in 120 s)"


def test_a_token_that_is_refused_is_renewed_once(service: MetadataService) -> None:
    metadata = Metadata()
    assert metadata.get("instance-id")
    service.forget_tokens()
    assert metadata.get("instance-id") == MACHINE["instance-id"] and service.tokens == 3
    service.status["instance-id"] = 401
    with pytest.raises(MetadataSilent, match="a new token is refused"):
        metadata.get("instance-id")
    assert service.asked.count("instance-id") == 5, "it does not go on for ever"


def test_a_service_that_is_late_is_no_notice_and_said_once_until_it_answers(service: MetadataService) -> None:
    said: list[str] = []
    watch = watcher(said, answer_seconds=0.1)
    service.delay_seconds = 0.3
    assert watch.look() is None and watch.look() is None
    assert len(said) == 1 and "timed out" in said[0] and "would not be heard" in said[0]
    service.delay_seconds = 0.0
    service.values[ACTION] = '{"action": "stop", "time": "2026-07-01T02:02:00Z"}'
    assert watch.look() is not None


def test_no_service_at_all_is_no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    assert watcher(said).look() is None and len(said) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<html>", "expected JSON with action, time"),
        ("[]", "expected JSON with action, time"),
        ('{"action": "terminate"}', "expected JSON with action, time"),
        ('{"action": "terminate", "time": 7}', "expected text for action, time"),
        ('{"action": "terminate", "time": "soon"}', "expected a time, found 'soon'"),
        ('{"action": "polish", "time": "2026-07-01T02:02:00Z"}', "unknown action 'polish'"),
    ],
)
def test_what_is_no_notice_is_said_and_does_not_stop_a_training(service: MetadataService, body: str, said: str) -> None:
    heard: list[str] = []
    service.values[ACTION] = body
    assert watcher(heard).look() is None
    assert len(heard) == 1 and said in heard[0]


@pytest.mark.parametrize("status", [500, 503, 403])
def test_a_service_in_trouble_is_no_notice(service: MetadataService, status: int) -> None:
    service.status[ACTION] = status
    assert watcher([]).look() is None


def test_a_time_in_the_past_is_a_notice() -> None:
    said = action_notice('{"action": "terminate", "time": "2026-07-01T01:59:30Z"}', NOW)
    assert said is not None and said.endswith("30 s ago)")


def test_a_recommendation_is_no_notice_but_has_its_time(service: MetadataService) -> None:
    service.values["events/recommendations/rebalance"] = '{"noticeTime": "2026-07-01T01:00:00Z"}'
    watch = watcher([])
    assert watch.look() is None and watch.rebalance() == "2026-07-01T01:00:00Z"
    with pytest.raises(MetadataSilent):
        rebalance_time('{"noticeTime": "x"}')
