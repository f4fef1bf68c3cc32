import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nightowl.cloud.ec2_prices import SpotPrice
from nightowl.cloud.ec2_session import Aws
from nightowl.errors import RemoteError
from nightowl.machines.bill import bill
from nightowl.machines.price import Prices, in_usd, read_prices
from nightowl.machines.records import Event, NodeBeat

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
HOURS = timedelta(hours=1)
PRICES = Prices(
    [
        SpotPrice("g5.xlarge", "a", 0.4, NOON - 5 * HOURS),
        SpotPrice("g5.xlarge", "b", 9.0, NOON - 5 * HOURS),
        SpotPrice("g5.xlarge", "a", 0.6, NOON + 1 * HOURS),
        SpotPrice("g5.xlarge", "a", 0.1, NOON + 9 * HOURS),
    ],
    {"g5.xlarge": 1.2, "p9.huge": None},
)


@pytest.mark.parametrize(
    ("lifecycle", "start", "end", "expected", "reason"),
    [
        ("spot", 0, 1, 0.4, "at the price that held when it began"),
        ("spot", 0, 3, 0.4 + 2 * 0.6, "the price rose in between"),
        ("spot", 2, 3, 0.6, "what came before does not count"),
        ("spot", 0, 0, 0.4 / 60, "a minute at least"),
        ("spot", -6, 0, None, "nobody knows the first hour"),
        ("on-demand", 0, 3, 3.6, "the price list"),
    ],
)
def test_a_machine_costs_what_was_asked_while_it_ran(
    lifecycle: str, start: float, end: float, expected: float | None, reason: str
) -> None:
    found = PRICES.cost("g5.xlarge", "a", lifecycle, NOON + start * HOURS, NOON + end * HOURS)
    assert found == (None if expected is None else pytest.approx(expected)), reason


def test_prices_that_nobody_told_are_unknown_and_not_zero() -> None:
    assert PRICES.cost("p9.huge", "a", "spot", NOON, NOON + HOURS) is None
    assert PRICES.cost("p9.huge", "a", "on-demand", NOON, NOON + HOURS) is None
    assert PRICES.now("g5.xlarge", "c", "spot") is None
    assert in_usd(None) == "unknown" and in_usd(0.123) == "0.12"


def test_the_dearest_machine_that_may_come_is_over_types_and_zones() -> None:
    assert PRICES.dearest_now(["g5.xlarge"], ["a"]) == 0.1
    assert PRICES.dearest_now(["g5.xlarge"], ["a", "b", "c"]) == 9.0
    assert PRICES.dearest_now(["g5.xlarge", "p9.huge"], ["a"]) is None


class Deaf(Aws):
    """AWS whose price list answers for `told` only."""

    def __init__(self, *told: str) -> None:
        super().__init__("eu-central-1")
        self.told, self.asked = told, []  # type: tuple[str, ...], list[str]

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        if service != "pricing":
            return {}
        kind = next(each["Value"] for each in arguments["Filters"] if each["Field"] == "instanceType")
        self.asked.append(kind)
        if kind not in self.told:
            raise RemoteError("pricing:GetProducts: gave up after 8 attempts in 25 s")
        hour = {"unit": "Hrs", "pricePerUnit": {"USD": "1.2"}}
        return {"PriceList": [json.dumps({"terms": {"OnDemand": {"x": {"priceDimensions": {"y": hour}}}}})]}


def test_a_price_list_that_does_not_answer_is_not_asked_again_for_the_next_type() -> None:
    aws = Deaf("a.large")
    prices = read_prices(aws, ["c.large", "b.large", "a.large"], NOON)
    assert prices.full == {"a.large": 1.2, "b.large": None, "c.large": None}
    assert aws.asked == ["a.large", "b.large"], "each would be waited for as long as the first"


def beat(instance: str, lifecycle: str, at: float, zone: str = "a") -> NodeBeat:
    values = {"instance": instance, "address": "10.0.0.1", "num_gpus": 1, "instance_type": "g5.xlarge", "zone": zone}
    return NodeBeat.model_validate({**values, "lifecycle": lifecycle, "state": "gone", "at": NOON + at * HOURS})


def event(instance: str, start: float, end: float) -> Event:
    return Event(instance=instance, kind="steps", start=NOON + start * HOURS, end=NOON + end * HOURS)


def test_a_bill_counts_each_machine_from_its_first_word_to_its_last() -> None:
    beats = [beat("i-2", "on-demand", 4), beat("i-1", "spot", 1)]
    made = bill(beats, [event("i-1", 0, 1), event("i-2", 2, 3)], PRICES)
    assert [each.instance for each in made.machines] == ["i-1", "i-2"]
    assert [each.hours for each in made.machines] == [1.0, 2.0]
    assert made.usd == pytest.approx(0.4 + 2.4) and made.full_usd == pytest.approx(3.6) and made.hours == 3.0
    assert made.deadline_usd(PRICES) == pytest.approx(2.4 - 2 * 0.6)


def test_half_a_bill_is_no_bill() -> None:
    made = bill([beat("i-1", "spot", 1), beat("i-2", "spot", 1, zone="c")], [event("i-1", 0, 1)], PRICES)
    assert made.usd is None and made.machines[0].usd == pytest.approx(0.4)
    assert bill([], [], PRICES).usd == 0.0
