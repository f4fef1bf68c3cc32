"""The verdict: promote or not, with every rule, its figure, its limit, and a sentence for people."""

from typing import Literal

from pydantic import Field

from nightowl.evaluation.budget import Spending
from nightowl.evaluation.intervals import Interval
from nightowl.records import Record

Outcome = Literal["promote", "refuse", "undecided", "same_model"]
Basis = Literal["first_model", "no_common_class", "against_champion"]


class Check(Record):
    """One rule applied. `figure` is None when it could not be measured; such a check does not pass.

    `interval` bounds the figure where images were resampled. `undecided`: not passed, and not failed either: the data could
    not tell.
    """

    rule: str
    passed: bool
    figure: float | None
    limit: float | None
    detail: str
    interval: Interval | None = None
    undecided: bool = False


class Verdict(Record):
    """`promote` is True only for the outcome `promote`. `basis` says by which stated rule the candidate was judged.

    `not_judged` names the classes that do not occur in test: no rule could be applied to them. `left_out` names the artefacts
    that break a budget and are not required, with the reasons: they do not ship, whatever the outcome. `spending` is what the
    decision cost of the test set's error budget, None where nothing was compared under one. `renews_reference`: it was shown
    to be better than the reference, version `reference_version` (or there is none to compare with), and takes its place if
    promoted.
    """

    outcome: Outcome
    basis: Basis
    sentence: str
    checks: tuple[Check, ...]
    candidate_sha256: str
    champion_version: str | None
    not_judged: tuple[str, ...] = ()
    left_out: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    spending: Spending | None = None
    reference_version: str | None = None
    renews_reference: bool = False

    @property
    def promote(self) -> bool:
        return self.outcome == "promote"
