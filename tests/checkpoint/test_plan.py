import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.checkpoint.commits import Commit, Moment, data_of, newest_first, order_of
from nightowl.checkpoint.plan import Cadence, Keep
from tests.checkpoint.conftest import at


def a_commit(count: int, moment: Moment, writer: int = 1) -> Commit:
    return Commit(writer=writer, count=count, moment=moment, key="k", dataset_sha256="d", versions={}, sha256="0", num_bytes=1)


# Newest first: step 60 stopped in epoch 4; epochs 3, 2 and 1 ended, the first was the best.
HISTORY = [
    a_commit(6, at(60, epoch=3, reason="stop")),
    a_commit(5, at(55, epoch=3)),
    a_commit(4, at(45, epoch=3, reason="epoch")),
    a_commit(3, at(30, epoch=2, reason="epoch")),
    a_commit(2, at(20, epoch=1)),
    a_commit(1, at(15, epoch=1, reason="epoch", best=True)),
]


@pytest.mark.parametrize(
    ("keep", "gone", "reason"),
    [
        (Keep(2), [4, 3, 2], "the newest two and the best stay"),
        (Keep(1), [5, 4, 3, 2], "the newest alone, and the best"),
        (Keep(2, every_epochs=2), [4, 2], "the end of epoch 2 stays, states inside epochs do not"),
        (Keep(2, every_epochs=1), [2], "every end of an epoch stays"),
        (Keep(9), [], "there are fewer than may stay"),
    ],
)
def test_what_may_go(keep: Keep, gone: list[int], reason: str) -> None:
    assert [commit.count for commit in keep.superfluous(HISTORY)] == gone, reason


def test_only_the_newest_best_stays() -> None:
    ends = [a_commit(n, at(n, epoch=n, reason="epoch", best=n in (1, 2))) for n in (5, 4, 3, 2, 1)]
    assert [commit.count for commit in Keep(1).superfluous(ends)] == [4, 3, 1]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=12), st.integers(1, 4), st.integers(0, 3))
def test_the_newest_and_a_best_are_never_superfluous(ends: list[tuple[bool, bool]], last: int, every: int) -> None:
    history = [
        a_commit(n, at(n, epoch=n, reason="epoch" if is_end else "time", best=is_end and is_best))
        for n, (is_end, is_best) in reversed(list(enumerate(ends, 1)))
    ]
    gone = Keep(last, every).superfluous(history)
    left = [commit for commit in history if commit not in gone]
    assert left[:last] == history[:last]
    assert any(c.moment.best for c in left) == any(c.moment.best for c in history)


@pytest.mark.parametrize(
    ("moment", "always", "reason"),
    [
        (at(1), False, "a state by time is replaced by the next"),
        (at(1, epoch=1, reason="epoch"), False, "an epoch's end is no more than that"),
        (at(1, epoch=2, reason="epoch"), True, "each second one is kept"),
        (at(1, epoch=1, reason="epoch", best=True), True, "the best is what is delivered"),
        (at(1, epoch=3, reason="epoch", finished=True), True, "the last is what says that nothing is left"),
        (at(1, reason="stop"), True, "after a stop there is no next"),
    ],
)
def test_what_must_be_written_however_many_follow(moment: Moment, always: bool, reason: str) -> None:
    assert Keep(2, every_epochs=2).always(moment) is always, reason


@pytest.mark.parametrize(
    ("cost", "interval", "reason"),
    [
        (0.0, 120.0, "before the first, nobody knows what it costs"),
        (0.2, 120.0, "0.2 s in 120 s are far below 1 %"),
        (1.2, 120.0, "exactly 1 %"),
        (3.0, 300.0, "a big model's state comes less often"),
    ],
)
def test_the_interval_grows_so_that_saving_stays_at_one_percent(cost: float, interval: float, reason: str) -> None:
    cadence = Cadence(120.0)
    assert cadence.interval_seconds(cost) == pytest.approx(interval), reason
    assert not cadence.is_due(interval - 1, cost) and cadence.is_due(interval + 1, cost)


@given(st.floats(0.1, 1e5), st.floats(0, 1e4))
def test_the_overhead_is_bounded_whatever_it_costs(every: float, cost: float) -> None:
    assert cost / Cadence(every).interval_seconds(cost) <= 0.01 * (1 + 1e-9)


def test_a_later_writer_is_newer_whatever_the_steps() -> None:
    names = {a_commit(n, at(n), writer).name for writer, n in ((1, 9), (2, 1), (1, 10), (12, 1))}
    order = [order_of(name) for name in newest_first(names | {"commits/other.json", "commits/w1-c1.json"})]
    assert order == [(12, 1), (2, 1), (1, 10), (1, 9)]
    assert data_of("commits/w000001-c00000009.json") == a_commit(9, at(9)).data == "data/w000001-c00000009.pt"
