"""What AWS refuses when machines are rented, as one line that says what to do: which permission, quota, region or clock."""

import re

from nightowl.cloud.retry import Transient
from nightowl.cloud.s3_errors import NO_CREDENTIALS
from nightowl.errors import RemoteError

__all__ = ["NO_CREDENTIALS", "AwsRefused", "explain_capacity", "is_denied", "is_transient", "refusal"]

_THROTTLED = frozenset(
    {"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequestsException"}
)
_PASSES = frozenset({"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "ResourceContention"})
_BUSY = frozenset({"ScalingActivityInProgress", "ResourceInUse", "ResourceInUseFault"})
_DENIED = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Client.UnauthorizedOperation"})
_BAD_CREDENTIALS = {
    "AuthFailure": "AWS does not know them",
    "InvalidClientTokenId": "the access key is not known",
    "UnrecognizedClientException": "the access key is not known",
    "InvalidAccessKeyId": "the access key is not known",
    "SignatureDoesNotMatch": "the secret key does not fit the access key",
    "IncompleteSignature": "the secret key does not fit the access key",
    "ExpiredToken": "the session token has expired: log in again",
    "ExpiredTokenException": "the session token has expired: log in again",
}
_CLOCK = "the clock of this machine is off by minutes: set it (timedatectl set-ntp true)"
_CLOCK_CODES = frozenset({"RequestExpired", "RequestTimeTooSkewed", "InvalidSignatureTimestamp"})
_CAPACITY = {
    "InsufficientInstanceCapacity": "AWS has no such machine free there now: name more instance_types or subnets, or wait",
    "UnfulfillableCapacity": "AWS has no such machine free there now: name more instance_types or subnets, or wait",
    "Could not launch Spot Instances": "no spot capacity there now: name more instance_types or subnets, or wait",
    "VcpuLimitExceeded": "the account's quota of vCPUs is used up: ask for more under Service Quotas",
    "MaxSpotInstanceCountExceeded": "the account's quota of spot vCPUs is used up: ask for more under Service Quotas",
    "InvalidAMIID.NotFound": "there is no such machine image in this region: check machines.image",
    "InvalidAMIID.Malformed": "that is no id of a machine image: check machines.image",
    "InvalidParameterValue: Value (": "AWS does not take a value of the template: check machines.instance_profile and image",
    "not supported in your requested Availability Zone": "it is not offered in the zones of machines.subnets: name others",
}


class AwsRefused(RemoteError):
    """AWS said no, and asking again would not change that. `code` is what it calls it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def is_transient(code: str, status: int) -> Transient | None:
    """The answer as something to try again, or None."""
    if code in _THROTTLED or status in (429, 503):
        return Transient(f"AWS asks for fewer requests ({code or status})", slow_down=True)
    if code in _PASSES or code in _BUSY or status in (500, 502, 504):
        return Transient(f"AWS answered {status} {code}")
    return None


def refusal(code: str, message: str, action: str, region: str) -> AwsRefused:
    """The line for an answer to `action`, such as `ec2:CreateLaunchTemplate`."""
    message = " ".join(message.split())
    if code in _CLOCK_CODES or "Signature expired" in message or "Signature not yet current" in message:
        said = _CLOCK
    elif code in _BAD_CREDENTIALS:
        said = f"credentials refused: {_BAD_CREDENTIALS[code]} ({code})"
    elif code in _DENIED or code.endswith("AccessDenied"):
        said = f"access denied; the credentials in use need {_named_action(message) or action}: see docs/permissions.md"
    elif code == "OptInRequired":
        said = f"the account has not opened the region {region}: enable it, or check machines.region"
    else:
        said = explain_capacity(f"{code}: {message}") or f"AWS refused it ({code}: {message})"
    return AwsRefused(f"{action} in {region}: {said}", code)


def is_denied(error: Exception) -> bool:
    """Is it that the credentials may not?"""
    return isinstance(error, AwsRefused) and (error.code in _DENIED or error.code.endswith("AccessDenied"))


def explain_capacity(message: str) -> str | None:
    """What the message of a failed launch means and what to do, or None for one that is not known."""
    return next((said for part, said in _CAPACITY.items() if part in message), None)


def _named_action(message: str) -> str | None:
    """The permission that AWS names: launching needs iam:PassRole, and the call itself is another one."""
    found = re.search(r"not authorized to perform:? ([a-z0-9-]+:\w+)", message)
    return found.group(1) if found else None
