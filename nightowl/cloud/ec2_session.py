"""AWS in one region: every call that rents, ends or looks for machines goes through `Aws.call`, and fails in one line.

What passes by itself (throttling, a group that is busy) is tried again; credentials come by the ordinary AWS chain.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import boto3
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    ParamValidationError,
)
from botocore.exceptions import (
    ConnectionError as NoConnection,
)

from nightowl.cloud.ec2_errors import NO_CREDENTIALS, is_transient, refusal
from nightowl.cloud.retry import Retrying, RetryPolicy, Transient
from nightowl.errors import RemoteError

TIMEOUT_SECONDS = 30.0
_IN_POLICIES = {"service-quotas": "servicequotas"}  # what a service is called in the names of actions
_ELSEWHERE = {"pricing": "us-east-1", "iam": "us-east-1"}  # services that answer from one region for all


def region_here() -> str:
    """The region that the AWS chain names. Raises RemoteError without one."""
    region: str | None = os.environ.get("AWS_REGION") or boto3.Session().region_name
    if not region:
        raise RemoteError("no AWS region: set AWS_REGION")
    return region


class Aws:
    """`endpoint` goes before AWS_ENDPOINT_URL; without either it is AWS itself."""

    def __init__(self, region: str, endpoint: str | None = None, policy: RetryPolicy = RetryPolicy()) -> None:  # noqa: B008
        self.region = region
        self._endpoint, self._retrying = endpoint, Retrying(policy)
        self._clients: dict[str, Any] = {}
        self.ahead_seconds: float | None = None
        """How far this machine's clock is ahead of AWS's, by the last answer; None before the first."""

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """The answer to one request, e.g. `call("ec2", "DescribeInstances", …)`.

        Raises:
            AwsRefused: when AWS says no.
            RemoteError: without credentials, or when AWS cannot be reached.
        """
        action = f"{_IN_POLICIES.get(service, service)}:{operation}"
        return self._retrying(f"{action} in {self.region}", lambda: self._attempt(action, service, operation, arguments))

    def pages(self, service: str, operation: str, rows: str, **arguments: Any) -> Iterator[Any]:
        """The rows of an answer that comes in pages, all of them."""
        token: dict[str, str] = {}
        while True:
            page = self.call(service, operation, **arguments, **token)
            yield from page.get(rows, [])
            if not page.get("NextToken"):
                return
            token = {"NextToken": page["NextToken"]}

    def _attempt(self, action: str, service: str, operation: str, arguments: dict[str, Any]) -> dict[str, Any]:
        where = f"{action} in {self.region}"
        try:
            answer: dict[str, Any] = getattr(self._client(service), xform_name(operation))(**arguments)
        except ClientError as error:
            told, status = error.response.get("Error", {}), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code, message = told.get("Code", ""), told.get("Message", "")
            raise is_transient(code, status) or refusal(code, message, action, self.region) from error
        except NoCredentialsError as error:
            raise RemoteError(f"{where}: {NO_CREDENTIALS}") from error
        except NoConnection as error:
            region = f"; is {self.region} a region of AWS, and is there a network?"
            raise Transient(f"cannot be reached ({type(error).__name__}){region}") from error
        except (ParamValidationError, BotoCoreError) as error:
            raise RemoteError(f"{where}: {' '.join(str(error).split())}") from error
        self._note_clock(answer)
        return answer

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            region = _ELSEWHERE.get(service, self.region)
            config = Config(connect_timeout=TIMEOUT_SECONDS, read_timeout=TIMEOUT_SECONDS, retries={"total_max_attempts": 1})
            session = boto3.Session(region_name=region)
            if session.get_credentials() is None:
                raise NoCredentialsError
            endpoint = self._endpoint or os.environ.get("AWS_ENDPOINT_URL") or None
            self._clients[service] = session.client(service, endpoint_url=endpoint, config=config)
        return self._clients[service]

    def _note_clock(self, answer: dict[str, Any]) -> None:
        date = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
        if date:
            self.ahead_seconds = (datetime.now(UTC) - parsedate_to_datetime(date).astimezone(UTC)).total_seconds()
