"""The metadata service of an EC2 instance, version 2: what this machine is, and whether it is about to be taken back.

It answers within two seconds or counts as silent. Source: the EC2 user guide, "Instance metadata", "Spot Instance interruption
notices" and "EC2 instance rebalance recommendations".
"""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException

ENDPOINT = "AWS_EC2_METADATA_SERVICE_ENDPOINT"
_TOKEN_SECONDS = 21600
_ANSWER_SECONDS = 2.0
_MAX_BYTES = 1 << 16
_ACTION = "spot/instance-action"
_REBALANCE = "events/recommendations/rebalance"
_ENDINGS = {"terminate", "stop", "hibernate"}


class MetadataSilent(Exception):
    """The service did not answer, or not as it should; in words."""


@dataclass(frozen=True)
class Machine:
    """What the service says this machine is."""

    instance: str
    address: str
    instance_type: str
    zone: str
    region: str
    spot: bool


class Metadata:
    """A client with its session token. No proxy is asked: the service is on the machine itself."""

    def __init__(self, endpoint: str | None = None, answer_seconds: float = _ANSWER_SECONDS) -> None:
        self._endpoint = (endpoint or os.environ.get(ENDPOINT) or "http://169.254.169.254").rstrip("/")
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self._answer_seconds = answer_seconds
        self._token: str | None = None

    def get(self, path: str) -> str | None:
        """The value at latest/meta-data/`path`; None where there is none (404). A token that is refused is renewed once.

        Raises:
            MetadataSilent: no answer in time, or none to be used.
        """
        fresh = self._token is None
        self._token = self._token or self._new_token()
        try:
            return self._value(path)
        except _Refused:
            if fresh:
                raise MetadataSilent(f"{self._endpoint}: a new token is refused (401)") from None
        self._token = self._new_token()
        try:
            return self._value(path)
        except _Refused:
            self._token = None
            raise MetadataSilent(f"{self._endpoint}: a new token is refused (401)") from None

    def machine(self) -> Machine:
        """Raises MetadataSilent."""
        zone = self._must("placement/availability-zone")
        return Machine(
            instance=self._must("instance-id"),
            address=self._must("local-ipv4"),
            instance_type=self._must("instance-type"),
            zone=zone,
            region=self.get("placement/region") or zone.rstrip("abcdefghijklmnopqrstuvwxyz"),
            spot=self.get("instance-life-cycle") == "spot",
        )

    def _must(self, path: str) -> str:
        value = self.get(path)
        if not value:
            raise MetadataSilent(f"{self._endpoint}: nothing at {path}")
        return value

    def _new_token(self) -> str:
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
        token = self._ask("api/token", "PUT", headers)
        if not token or not token.isprintable():
            raise MetadataSilent(f"{self._endpoint}: no token")
        return token

    def _value(self, path: str) -> str | None:
        return self._ask(f"meta-data/{path}", "GET", {"X-aws-ec2-metadata-token": self._token or ""})

    def _ask(self, path: str, method: str, headers: dict[str, str]) -> str | None:
        request = urllib.request.Request(f"{self._endpoint}/latest/{path}", method=method, headers=headers)
        try:
            with self._opener.open(request, timeout=self._answer_seconds) as answer:
                return str(answer.read(_MAX_BYTES).decode(errors="replace")).strip()
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404:
                    return None
                if error.code == 401 and method == "GET":
                    raise _Refused from None
                raise MetadataSilent(f"{self._endpoint}: {method} {path}: status {error.code}") from None
        except (OSError, HTTPException) as error:
            raise MetadataSilent(f"{self._endpoint}: {method} {path}: {error}") from error


class _Refused(Exception):
    """The token is not, or no longer, good."""


@dataclass
class SpotWatcher:
    """Whether the machine is marked to be taken back: a NoticeWatcher. What cannot be asked or read is no notice, as the next
    look may tell; it is said once."""

    metadata: Metadata
    say: Callable[[str], object] = print
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _silent: bool = False

    def look(self) -> str | None:
        return self._heard(lambda: action_notice(self.metadata.get(_ACTION), self.now()))

    def rebalance(self) -> str | None:
        """When the service recommended to leave this machine, as it says it: a mere risk, and reason for a checkpoint."""
        return self._heard(lambda: rebalance_time(self.metadata.get(_REBALANCE)))

    def _heard(self, ask: Callable[[], str | None]) -> str | None:
        try:
            answer = ask()
        except MetadataSilent as error:
            if not self._silent:
                self.say(f"metadata service: {error}; a notice would not be heard until it answers")
            self._silent = True
            return None
        self._silent = False
        return answer


def action_notice(body: str | None, now: datetime) -> str | None:
    """The notice in words, from the JSON of spot/instance-action. A time that is past is one all the same: it may go at any
    moment. Raises MetadataSilent for what is no such JSON."""
    if body is None:
        return None
    action, at = _fields(body, "action", "time")
    if action not in _ENDINGS:
        raise MetadataSilent(f"{_ACTION}: unknown action {action[:40]!r}")
    seconds = (_time(at, _ACTION) - now).total_seconds()
    when = f"in {seconds:.0f} s" if seconds >= 0 else f"{-seconds:.0f} s ago"
    return f"spot: this machine is taken back ({action} at {at}, {when})"


def rebalance_time(body: str | None) -> str | None:
    """The time in the JSON of events/recommendations/rebalance. Raises MetadataSilent for what is no such JSON."""
    if body is None:
        return None
    (at,) = _fields(body, "noticeTime")
    _time(at, _REBALANCE)
    return at


def _fields(body: str, *names: str) -> tuple[str, ...]:
    try:
        found = json.loads(body)
        values = tuple(found[name] for name in names)
    except (ValueError, KeyError, TypeError):
        raise MetadataSilent(f"expected JSON with {', '.join(names)}, found {body[:80]!r}") from None
    if not all(isinstance(value, str) for value in values):
        raise MetadataSilent(f"expected text for {', '.join(names)}, found {body[:80]!r}")
    return values


def _time(text: str, where: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise MetadataSilent(f"{where}: expected a time, found {text[:40]!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
