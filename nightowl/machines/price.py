"""Money: what a machine of a type in a zone costs an hour now, and what it cost between two moments. Unknown stays unknown."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from nightowl.cloud.ec2_prices import SpotPrice, on_demand_price, spot_prices
from nightowl.cloud.ec2_session import Aws
from nightowl.errors import RemoteError

_HOUR = timedelta(hours=1)
_LEAST = timedelta(seconds=60)  # AWS bills by the second, and a minute at least


@dataclass(frozen=True)
class Prices:
    """Spot prices as they came and went, oldest first, and full prices, in USD an hour."""

    spot: Sequence[SpotPrice]
    full: Mapping[str, float | None]

    def spot_now(self, instance_type: str, zone: str) -> float | None:
        return next((each.usd_per_hour for each in reversed(self._history(instance_type, zone))), None)

    def now(self, instance_type: str, zone: str, lifecycle: str) -> float | None:
        """USD an hour."""
        return self.spot_now(instance_type, zone) if lifecycle == "spot" else self.full.get(instance_type)

    def cost(self, instance_type: str, zone: str, lifecycle: str, start: datetime, end: datetime) -> float | None:
        """USD from `start` to `end` (aware). None when a price of that time is not known."""
        end = max(end, start + _LEAST)
        if lifecycle != "spot":
            return self.full_cost(instance_type, start, end)
        history = self._history(instance_type, zone)
        if not history or history[0].at > start:
            return None
        until = [*(each.at for each in history[1:]), end]
        spans = ((each, max(each.at, start), min(stop, end)) for each, stop in zip(history, until, strict=True))
        return sum(each.usd_per_hour * ((stop - begin) / _HOUR) for each, begin, stop in spans if stop > begin)

    def full_cost(self, instance_type: str, start: datetime, end: datetime) -> float | None:
        """The same at full price."""
        price = self.full.get(instance_type)
        return None if price is None else price * (max(end - start, _LEAST) / _HOUR)

    def dearest_now(self, types: Iterable[str], zones: Iterable[str]) -> float | None:
        """The highest spot price that a machine of `types` in `zones` may have now; None when one of them is not known. A type
        that a zone has no price for is not to be had there."""
        zones, dearest = list(zones), 0.0
        for kind in types:
            known = [price for zone in zones if (price := self.spot_now(kind, zone)) is not None]
            if not known:
                return None
            dearest = max(dearest, *known)
        return dearest

    def _history(self, instance_type: str, zone: str) -> list[SpotPrice]:
        return [each for each in self.spot if (each.type, each.zone) == (instance_type, zone)]


def read_prices(aws: Aws, types: Iterable[str], since: datetime) -> Prices:
    """The prices of `types` since then (aware). What AWS does not tell, or does not let us ask, is unknown."""
    kinds = sorted(set(types))
    try:
        spot = spot_prices(aws, kinds, since) if kinds else []
    except RemoteError:
        spot = []
    return Prices(spot, _full_prices(aws, kinds))


def _full_prices(aws: Aws, kinds: Iterable[str]) -> dict[str, float | None]:
    """Unknown from the first on that AWS does not answer for: it was asked for long, and would not answer for the others."""
    full: dict[str, float | None] = dict.fromkeys(kinds)
    with suppress(RemoteError):
        for kind in full:
            full[kind] = on_demand_price(aws, kind)
    return full


def in_usd(amount: float | None) -> str:
    """For people."""
    return "unknown" if amount is None else f"{amount:.2f}"
