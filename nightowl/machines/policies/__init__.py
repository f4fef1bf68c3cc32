"""The rights that each part needs, as IAM policies: least privilege, in files that are read here, shown by `nightowl machines
policies`, and compared with what an account grants before anything starts.

`${NAME}` in a file stands for what a checkout and an account have; what nobody knows stays as it is, and is told.
"""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

from nightowl.cloud.storage import SCHEME, parse_url
from nightowl.machine_settings import MachineSettings

NAMES = ("orchestrator", "node", "node-container", "node-trust", "reaper")
Places = Mapping[str, str | None]
"""The s3:// addresses of CACHE, CHECKPOINTS and SOURCE, as far as they are known."""
NOWHERE: Places = {}
_PLACE = re.compile(r"\$\{(\w+)\}")


class Statement(NamedTuple):
    """An Allow: these actions on these resources, where the request has these values (condition key to values)."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    context: Mapping[str, tuple[str, ...]]


def policy(name: str, values: Mapping[str, str]) -> str:
    """The policy as JSON text, with `values` for its places. A statement about an SSM parameter goes when there is none."""
    text = files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    text = _PLACE.sub(lambda found: values.get(found[1], found[0]), text).replace('"/*"', '"*"')
    if values.get("IMAGE_PARAMETER") == "":
        document = json.loads(text)
        document["Statement"] = [each for each in document["Statement"] if each.get("Sid") != "TheImage"]
        return json.dumps(document, indent=2) + "\n"
    return text


def unfilled(text: str) -> list[str]:
    """Names of the places in it that nobody has filled."""
    return sorted(set(_PLACE.findall(text)))


def statements(text: str) -> Iterator[Statement]:
    """The statements of a policy whose places are filled; others say nothing yet."""
    for row in json.loads(text)["Statement"]:
        if not unfilled(json.dumps(row)):
            yield Statement(
                row.get("Sid", ""),
                tuple(_several(row["Action"])),
                tuple(_several(row.get("Resource", "*"))),
                {key: tuple(_several(value)) for test in row.get("Condition", {}).values() for key, value in test.items()},
            )


def values_of(settings: MachineSettings, account: str | None, node_role: str | None, places: Places) -> dict[str, str]:
    """What is known for the places of the policies."""
    known = {
        "REGION": settings.region,
        "SECURITY_GROUP": settings.security_group,
        "IMAGE_PARAMETER": settings.image if settings.image.startswith("/") else "",
        "ACCOUNT": account,
        "NODE_ROLE": node_role,
    }
    found = {name: value for name, value in known.items() if value is not None}
    for name, address in {"BOARD": settings.board, **places}.items():
        if address is not None and address.startswith(SCHEME):
            place = parse_url(address)
            prefix = place.prefix.rstrip("/")
            found |= {name: f"{place.bucket}/{prefix}".rstrip("/"), f"{name}_BUCKET": place.bucket, f"{name}_PREFIX": prefix}
    return found


def _several(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
