"""The metadata service of one instance, version 2 only: a token first, by PUT; then paths, by GET.

What an instance may ask is listed in `_facts`. Spot notices and rebalance recommendations are 404 until a test gives them.
"""

import json
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

Answer = tuple[int, str]
ISO = "%Y-%m-%dT%H:%M:%SZ"


@dataclass
class Facts:
    """What the service says about its instance. `tags` is None where the template does not show them."""

    instance: str
    address: str
    instance_type: str
    zone: str
    lifecycle: str
    image: str
    account: str
    user_data: str
    role: str
    tags: dict[str, str] | None
    notice_at: datetime | None = None
    rebalance_at: datetime | None = None
    target_state: str = "InService"

    @property
    def region(self) -> str:
        return self.zone[:-1]


@dataclass
class Metadata:
    """The service as a WSGI application. `fault`, when given, answers a path before the service does (None: not this one)."""

    facts: Facts
    fault: Callable[[str], Answer | None] = lambda path: None
    asked: list[str] = field(default_factory=list)
    _tokens: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        status, body = self.answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], environ)
        content = body.encode()
        start_response(
            f"{status} {'OK' if status == 200 else 'no'}",
            [("Content-Type", "text/plain"), ("Content-Length", str(len(content)))],
        )
        return [content]

    def answer(self, method: str, path: str, headers: dict[str, Any]) -> Answer:
        """Status and body."""
        with self._lock:
            self.asked.append(path)
        faulty = self.fault(path)
        if faulty is not None:
            return faulty
        if path == "/latest/api/token":
            return self._token(method, headers)
        if headers.get("HTTP_X_AWS_EC2_METADATA_TOKEN") not in self._tokens:
            return 401, "Unauthorized"
        found = self._facts().get(path.rstrip("/"))
        return (200, found) if found is not None else (404, "Not Found")

    def _token(self, method: str, headers: dict[str, Any]) -> Answer:
        if method != "PUT" or not headers.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS", "").isdigit():
            return 400, "Bad Request"
        token = secrets.token_urlsafe(16)
        with self._lock:
            self._tokens.add(token)
        return 200, token

    def _facts(self) -> dict[str, str]:
        facts, meta = self.facts, "/latest/meta-data"
        found = {
            f"{meta}/instance-id": facts.instance,
            f"{meta}/local-ipv4": facts.address,
            f"{meta}/instance-type": facts.instance_type,
            f"{meta}/instance-life-cycle": facts.lifecycle,
            f"{meta}/ami-id": facts.image,
            f"{meta}/placement/availability-zone": facts.zone,
            f"{meta}/placement/region": facts.region,
            f"{meta}/autoscaling/target-lifecycle-state": facts.target_state,
            f"{meta}/iam/security-credentials": facts.role,
            f"{meta}/iam/security-credentials/{facts.role}": _credentials(),
            "/latest/dynamic/instance-identity/document": _document(facts),
            "/latest/user-data": facts.user_data,
        }
        if facts.tags is not None:
            found[f"{meta}/tags/instance"] = "\n".join(sorted(facts.tags))
            found |= {f"{meta}/tags/instance/{key}": value for key, value in facts.tags.items()}
        if facts.notice_at is not None:
            moment = facts.notice_at.strftime(ISO)
            found[f"{meta}/spot/instance-action"] = json.dumps({"action": "terminate", "time": moment})
            found[f"{meta}/spot/termination-time"] = moment
        if facts.rebalance_at is not None:
            found[f"{meta}/events/recommendations/rebalance"] = json.dumps({"noticeTime": facts.rebalance_at.strftime(ISO)})
        return found


def _document(facts: Facts) -> str:
    return json.dumps(
        {
            "accountId": facts.account,
            "availabilityZone": facts.zone,
            "imageId": facts.image,
            "instanceId": facts.instance,
            "instanceType": facts.instance_type,
            "privateIp": facts.address,
            "region": facts.region,
            "version": "2017-09-30",
        }
    )


def _credentials() -> str:
    now = datetime.now(UTC)
    return json.dumps(
        {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": "ASIAFAKEROLE",
            "SecretAccessKey": "of-the-role",
            "Token": "of-the-role",
            "LastUpdated": now.strftime(ISO),
            "Expiration": (now + timedelta(hours=6)).strftime(ISO),
        }
    )
