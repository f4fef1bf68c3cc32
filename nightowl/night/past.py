"""What the registry remembers of past nights, as far as it settles whether tonight may be skipped."""

from collections.abc import Sequence

from nightowl.night.key import Parts, PastNight
from nightowl.registry.record import BundleRecord
from nightowl.registry.rules import refusal_to_promote
from nightowl.registry.version import VersionInfo


def past_nights(versions: Sequence[VersionInfo]) -> list[PastNight]:
    """The nights that came to their end, newest first, so that the latest judgement of the same inputs is the one named.

    What a dirty tree made could not be promoted whatever the judgement: once committed, the same code may run again. And a
    version that may be promoted but never was belongs to a night that was cut short between the two: it must run again, or a
    model that was proven better would never ship.
    """
    ended = [info for info in reversed(versions) if not info.record.dirty and not _cut_short(info, versions)]
    return [PastNight(info.version, info.record.night_key, info.record.champion_version, info.taken_back) for info in ended]


def parts_of(record: BundleRecord) -> Parts:
    """The inputs of a registered version."""
    return Parts(record.dataset_version, record.params_sha256, record.base.identity)


def _cut_short(info: VersionInfo, versions: Sequence[VersionInfo]) -> bool:
    return info.state == "not promoted" and refusal_to_promote(info, versions, as_judged=True) is None
