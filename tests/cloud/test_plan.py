from hypothesis import given
from hypothesis import strategies as st

from nightowl.cloud.plan import Plan, plan_pull, side_by_side
from nightowl.cloud.storage import RemoteObject

listings = st.dictionaries(st.text("ab/é", min_size=1, max_size=3), st.tuples(st.integers(0, 3), st.sampled_from("xyz"))).map(
    lambda rows: [RemoteObject(key, *rows[key]) for key in sorted(rows)]
)


@given(listings, listings)
def test_the_rows_lead_from_what_is_held_to_what_is_listed(listing: list[RemoteObject], index: list[RemoteObject]) -> None:
    rows = list(side_by_side(listing, index))
    assert [row.now for row in rows if row.now] == listing
    assert [row.before for row in rows if row.before] == index
    assert all(row.now is None or row.before is None or row.now.key == row.before.key for row in rows)
    assert len({(row.now or row.before).key for row in rows}) == len(rows)  # type: ignore[union-attr]


@given(listings, listings)
def test_the_plan_counts_keys(listing: list[RemoteObject], index: list[RemoteObject]) -> None:
    plan, now, before = plan_pull(listing, index), {f.key: f for f in listing}, {f.key: f for f in index}
    assert plan.added == len(now.keys() - before.keys())
    assert plan.removed == len(before.keys() - now.keys())
    assert plan.changed == sum(now[key] != before[key] for key in now.keys() & before.keys())


@given(listings)
def test_equal_listings_leave_nothing_to_do(listing: list[RemoteObject]) -> None:
    assert plan_pull(listing, listing) == Plan()


def test_a_new_etag_or_a_new_length_is_a_change_and_its_bytes_count() -> None:
    before = [RemoteObject("a", 1, "x"), RemoteObject("b", 2, "x"), RemoteObject("c", 3, "x")]
    now = [RemoteObject("a", 1, "x"), RemoteObject("b", 2, "y"), RemoteObject("c", 4, "x"), RemoteObject("d", 10, "x")]
    assert plan_pull(now, before) == Plan(added=1, changed=2, removed=0, num_bytes=2 + 4 + 10)
