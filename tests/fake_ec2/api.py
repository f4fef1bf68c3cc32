"""What stands before moto's server: a log of the calls, hooks around each, and the refusals that AWS makes and moto does not.

ClientToken     the same token and request again: the same answer; another request: IdempotentParameterMismatch
throttling      so many calls of an action are refused, as AWS words it for that service
groups          a name that is taken, a group with members deleted without force, a capacity above the maximum
schedules       an action in the past
capacity        RunInstances beyond what there is: InsufficientInstanceCapacity
prices          the price list, which moto has not (price_list.py)
"""

import io
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from uuid import uuid4

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app

from tests.fake_ec2.gaps import Market, start_time
from tests.fake_ec2.price_list import get_products
from tests.fake_ec2.serving import Quiet

_KEPT = ("ec2", "autoscaling")  # their books are one: two calls at once would tear them


class Handler(Quiet, MotoRequestHandler):
    """moto's, without its words."""


@dataclass(frozen=True)
class Call:
    """One call of an API, S3 left out: its number from 0, and what was asked, in AWS's own names."""

    number: int
    service: str
    action: str
    params: dict[str, str]


@dataclass(frozen=True)
class Refusal:
    """An error as AWS gives it."""

    status: int
    code: str
    message: str


Answered = tuple[str, list[tuple[str, str]], bytes]


@dataclass
class Api:
    """moto as a WSGI application of one account, stricter than it is. `now` is AWS's clock."""

    market: Market
    books: threading.RLock
    now: Callable[[], datetime]
    calls: list[Call] = field(default_factory=list)
    before: Callable[[Call], object] = lambda call: None
    after: Callable[[Call], object] = lambda call: None
    throttled: Counter[str] = field(default_factory=Counter)
    _tokens: dict[tuple[str, str], tuple[dict[str, str], Answered]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = self.market.account
        service = _service(environ)
        if service == "s3":
            answer: Iterable[bytes] = self._moto(environ, start_response)
            return answer
        call = self._call(environ, service)
        self.before(call)
        status, headers, body = self._answer(call, environ)
        self.after(call)
        start_response(status, headers)
        return [body]

    def _call(self, environ: dict[str, Any], service: str) -> Call:
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        environ["wsgi.input"] = io.BytesIO(body)
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        params = {} if target else dict(parse_qsl(body.decode(), keep_blank_values=True))
        if target:
            params = {key: json.dumps(value) for key, value in json.loads(body or b"{}").items()}
        action = target.rpartition(".")[2] or params.get("Action", environ["PATH_INFO"])
        with self.books:
            self.calls.append(Call(len(self.calls), service, action, params))
            return self.calls[-1]

    def _answer(self, call: Call, environ: dict[str, Any]) -> Answered:
        if call.service == "pricing":
            return self._refused(call) or _json("200 OK", get_products(self.market.region, call.params))
        if call.service not in _KEPT:
            return self._refused(call) or _answered(self._moto, environ)
        with self.books:
            answered = self._refused(call) or self._once(call, environ)
            if call.action == "DeleteAutoScalingGroup" and answered[0].startswith("200"):
                self.market.forget_actions(call.params["AutoScalingGroupName"])
            return answered

    def _once(self, call: Call, environ: dict[str, Any]) -> Answered:
        token = call.params.get("ClientToken")
        if token is None:
            return _answered(self._moto, environ)
        asked, given = self._tokens.get((call.action, token), (call.params, None))
        if asked != call.params:
            message = "The request uses the same client token as a previous, but non-identical request."
            return _refusal(call.service, Refusal(400, "IdempotentParameterMismatch", message))
        answered = given or _answered(self._moto, environ)
        if answered[0].startswith("200"):
            self._tokens[call.action, token] = (asked, answered)
        return answered

    def _refused(self, call: Call) -> Answered | None:
        if self.throttled[call.action] > 0:
            self.throttled[call.action] -= 1
            limited = Refusal(503, "RequestLimitExceeded", "Request limit exceeded.")
            return _refusal(call.service, limited if call.service == "ec2" else Refusal(400, "Throttling", "Rate exceeded"))
        rule = _RULES.get((call.service, call.action))
        refusal = rule(self, call.params) if rule else None
        return _refusal(call.service, refusal) if refusal else None

    def _taken_name(self, params: dict[str, str]) -> Refusal | None:
        if params["AutoScalingGroupName"] not in self.market.autoscaling.autoscaling_groups:
            return None
        return Refusal(
            400, "AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name already exists"
        )

    def _members_left(self, params: dict[str, str]) -> Refusal | None:
        group = self.market.autoscaling.autoscaling_groups.get(params["AutoScalingGroupName"])
        if group is None or params.get("ForceDelete") == "true" or not group.instance_states:
            return None
        message = "You cannot delete an AutoScalingGroup while there are instances (...) still in the group."
        return Refusal(400, "ResourceInUse", message)

    def _above_maximum(self, params: dict[str, str]) -> Refusal | None:
        group = self.market.autoscaling.autoscaling_groups.get(params["AutoScalingGroupName"])
        desired = params.get("DesiredCapacity")
        if group is None:
            return Refusal(400, "ValidationError", "AutoScalingGroup name not found - null")
        maximum, minimum = int(params.get("MaxSize", group.max_size)), int(params.get("MinSize", group.min_size))
        if desired is None or minimum <= int(desired) <= maximum:
            return None
        return Refusal(
            400,
            "ValidationError",
            f"Desired capacity:{desired} must be between the specified min size:{minimum} and max size:{maximum}",
        )

    def _in_the_past(self, params: dict[str, str]) -> Refusal | None:
        known = self.market.autoscaling.scheduled_actions.get(params["ScheduledActionName"])
        if known is not None and known.auto_scaling_group_name != params["AutoScalingGroupName"]:
            raise AssertionError("moto keeps one action of a name, whatever its group: put the run into the name")
        if params["AutoScalingGroupName"] not in self.market.autoscaling.autoscaling_groups:
            return Refusal(400, "ValidationError", "AutoScalingGroup name not found - null")
        if "StartTime" not in params or start_time(params["StartTime"]) > self.now().astimezone(UTC):
            return None
        return Refusal(400, "ValidationError", "Given start time is in the past")

    def _no_member(self, params: dict[str, str]) -> Refusal | None:
        groups = self.market.autoscaling.autoscaling_groups.values()
        if any(state.instance.id == params["InstanceId"] for group in groups for state in group.instance_states):
            return None
        message = f"Instance Id not found - No managed instance found for instance ID: {params['InstanceId']}"
        return Refusal(400, "ValidationError", message)

    def _no_capacity(self, params: dict[str, str]) -> Refusal | None:
        kind = params.get("InstanceType", "m1.small")
        if self.market.has(kind, int(params.get("MinCount", "1"))):
            return None
        return Refusal(
            500,
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {kind} capacity in the zone you requested.",
        )


_RULES: dict[tuple[str, str], Callable[[Api, dict[str, str]], Refusal | None]] = {
    ("autoscaling", "CreateAutoScalingGroup"): Api._taken_name,
    ("autoscaling", "DeleteAutoScalingGroup"): Api._members_left,
    ("autoscaling", "SetDesiredCapacity"): Api._above_maximum,
    ("autoscaling", "UpdateAutoScalingGroup"): Api._above_maximum,
    ("autoscaling", "PutScheduledUpdateGroupAction"): Api._in_the_past,
    ("autoscaling", "TerminateInstanceInAutoScalingGroup"): Api._no_member,
    ("ec2", "RunInstances"): Api._no_capacity,
}


def _service(environ: dict[str, Any]) -> str:
    """Whom a call is for, by the scope of its signature; without one it is for S3, as moto has it."""
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split(",")[0].split("/")
    return scope[3].lower() if len(scope) == 5 else "s3"


def _answered(application: Any, environ: dict[str, Any]) -> Answered:
    kept: list[Any] = []
    parts = application(environ, lambda status, headers, exc_info=None: kept.extend([status, headers]))
    try:
        body = b"".join(parts)
    finally:
        if hasattr(parts, "close"):
            parts.close()
    return kept[0], list(kept[1]), body


def _refusal(service: str, refusal: Refusal) -> Answered:
    """The error in the form of the service: EC2 and the others that answer in XML have their own."""
    error = f"<Code>{refusal.code}</Code><Message>{refusal.message}</Message>"
    body = f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error><RequestId>{uuid4()}</RequestId></ErrorResponse>"
    kind = "text/xml"
    if service == "ec2":
        body = f"<Response><Errors><Error>{error}</Error></Errors><RequestID>{uuid4()}</RequestID></Response>"
    elif service in ("ssm", "pricing", "servicequotas"):
        return _json(f"{refusal.status} refused", {"__type": refusal.code, "message": refusal.message})
    return f"{refusal.status} refused", [("Content-Type", kind), ("Content-Length", str(len(body)))], body.encode()


def _json(status: str, answer: dict[str, Any]) -> Answered:
    body = json.dumps(answer).encode()
    return status, [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(body)))], body
