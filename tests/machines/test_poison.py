import pytest

from nightowl.machines.poison import poison
from nightowl.machines.records import StageFailure
from tests.machines.jobs import NOW


def failures(*steps: int | str | None) -> list[StageFailure]:
    """One a generation; `p` stands for a preemption."""
    return [
        StageFailure(
            stage="train",
            instance="i",
            generation=number,
            preempted=step == "p",
            step=5 if isinstance(step, str) else step,
            message=f"m{number}",
            at=NOW,
        )
        for number, step in enumerate(steps)
    ]


@pytest.mark.parametrize(
    ("steps", "is_poison", "why"),
    [
        ((5, 5), False, "twice may be chance"),
        ((5, 5, 5), True, "three times is not"),
        ((1, 5, 5, 5), True, "whatever was before"),
        ((5, 6, 6), False, "it went forward"),
        ((5, "p", 5), False, "taken back in between"),
        (("p", "p", "p", "p"), False, "taken back again and again"),
        (("p", 5, 5, 5), True, "taken back before"),
        ((None, None, None), True, "it never saved a step"),
        ((), False, "nothing"),
    ],
)
def test_the_same_step_three_times_on_end_is_poison(steps: tuple[int | str | None, ...], is_poison: bool, why: str) -> None:
    assert (poison(failures(*steps)) is not None) == is_poison, why


def test_it_says_where_and_why_and_counts_generations_not_nodes() -> None:
    assert poison(failures(5, 5, 5)) == "train failed 3 times on end after step 5, the last time with: m2"
    assert "before its first step was saved" in (poison(failures(None, None, None)) or "")
    twice = failures(5)[0]
    assert poison([twice, twice.model_copy(update={"instance": "j"}), twice.model_copy(update={"instance": "k"})]) is None
