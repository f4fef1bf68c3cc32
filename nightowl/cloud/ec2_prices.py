"""What a machine costs: spot as it was and is, by EC2; full price by the price list. What AWS does not say is unknown."""

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from nightowl.cloud.ec2_session import Aws

_LINUX = "Linux/UNIX"


class SpotPrice(NamedTuple):
    """From `at` on, until the next of that type and zone. `at` is aware."""

    type: str
    zone: str
    usd_per_hour: float
    at: datetime


def spot_prices(aws: Aws, types: Sequence[str], since: datetime) -> list[SpotPrice]:
    """Every price of `types` in the region since then, and the ones that held then, oldest first."""
    rows = aws.pages(
        "ec2",
        "DescribeSpotPriceHistory",
        "SpotPriceHistory",
        InstanceTypes=list(types),
        ProductDescriptions=[_LINUX],
        StartTime=since,
    )
    found = []
    for row in rows:
        with suppress(KeyError, ValueError):  # a row without a price says nothing
            found.append(SpotPrice(row["InstanceType"], row["AvailabilityZone"], float(row["SpotPrice"]), row["Timestamp"]))
    return sorted(found, key=lambda price: price.at)


def on_demand_price(aws: Aws, instance_type: str) -> float | None:
    """USD an hour of a Linux machine of that type in the region; None when the price list has not exactly one."""
    wanted = {
        "instanceType": instance_type,
        "regionCode": aws.region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    rows = aws.pages(
        "pricing",
        "GetProducts",
        "PriceList",
        ServiceCode="AmazonEC2",
        Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()],
    )
    prices = {price for row in rows for price in _hourly(json.loads(row))}
    return prices.pop() if len(prices) == 1 else None


def _hourly(product: dict[str, Any]) -> set[float]:
    """The hourly USD of a row of the price list; Source: AWS Price List documentation, terms, OnDemand, priceDimensions."""
    return {
        float(dimension["pricePerUnit"]["USD"])
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term.get("priceDimensions", {}).values()
        if dimension.get("unit") == "Hrs" and float(dimension.get("pricePerUnit", {}).get("USD", 0)) > 0
    }
