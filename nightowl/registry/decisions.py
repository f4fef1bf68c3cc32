"""What past nights spent of the error budget, and which version is the reference, read from versions and history. Pure.

Neither is kept apart: a decision is part of its version's record, made in one transaction with it, and the reference follows
from the events. So no kill and no second machine can leave them at odds with what happened.
"""

from collections.abc import Sequence

from nightowl.evaluation.budget import Spent, spent_on
from nightowl.records import Record
from nightowl.registry.history import Event
from nightowl.registry.version import VersionInfo


def decisions_of(versions: Sequence[VersionInfo]) -> tuple[Spent, ...]:
    """The decisions of the past, oldest first. What a dirty tree made can never be promoted, so it cost nothing."""
    judged = [(info.record, info.record.spending) for info in versions if not info.record.dirty]
    return tuple(Spent(night=record.night_id, question=s.question, alpha=s.alpha) for record, s in judged if s is not None)


class BudgetLeft(Record):
    """What is left of the error budget of a test set, after the decision of `night`, the newest."""

    night: str
    num_images: int
    num_decisions: int
    left: float
    total: float


def budget_left(versions: Sequence[VersionInfo]) -> BudgetLeft | None:
    """The budget of the test set that was judged on last, None where nothing was compared yet."""
    last = next((info.record for info in reversed(versions) if info.record.spending and not info.record.dirty), None)
    if last is None or last.spending is None:
        return None
    holdout, total = last.spending.question.holdout, last.spending.total
    spent = spent_on(decisions_of(versions), holdout)
    return BudgetLeft(
        night=last.night_id,
        num_images=holdout.num_images,
        num_decisions=len(spent),
        left=max(total - sum(spent.values()), 0.0),
        total=total,
    )


def reference_of(events: Sequence[Event], versions: Sequence[VersionInfo]) -> str | None:
    """The version that a slow decline is measured by, None before the first champion.

    The first champion is the first reference. A promotion moves it when the version was shown to be better than the reference
    of that time; a rollback takes that back too; a person may set it, and then no rollback undoes it. Where the champion was
    withdrawn there is none, and the next champion is the first again.
    """
    records = {info.version: info.record for info in versions}
    stack: list[tuple[str, str]] = []  # champion, and the reference while it was one
    reference: str | None = None
    for event in (event for event in events if event.state == "done"):
        if event.action == "reference":
            stack = [(champion, event.version) for champion, _ in stack]
        elif event.action == "withdraw":
            stack, reference = [], None
            continue
        elif event.action == "rollback":
            while stack and stack[-1][0] != event.version:
                stack.pop()
            stack = stack or [(event.version, event.version)]
        else:
            record = records.get(event.version)
            renewed = record is not None and record.renews_reference and record.reference_version == reference
            stack.append((event.version, event.version if reference is None or renewed else reference))
        reference = stack[-1][1] if stack else event.version
    return reference
