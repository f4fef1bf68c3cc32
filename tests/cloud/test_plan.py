from hypothesis import given
from hypothesis import strategies as st

from nightowl.cloud.plan import plan_pull
from nightowl.cloud.storage import RemoteObject

listings = st.dictionaries(st.text("ab/é", min_size=1, max_size=3), st.tuples(st.integers(0, 3), st.sampled_from("xyz"))).map(
    lambda rows: [RemoteObject(key, *rows[key]) for key in sorted(rows)]
)


@given(listings, listings)
def test_a_plan_leads_from_what_is_held_to_what_is_listed(listing: list[RemoteObject], index: list[RemoteObject]) -> None:
    plan = plan_pull(listing, index)
    held = {found.key: found for found in index}
    for key in plan.removed:
        del held[key]
    assert not {found.key for found in plan.added} & held.keys()
    assert {found.key for found in plan.changed} <= held.keys()
    held |= {found.key: found for found in (*plan.added, *plan.changed)}
    assert sorted(held.values()) == sorted(listing)


@given(listings)
def test_equal_listings_leave_nothing_to_do(listing: list[RemoteObject]) -> None:
    plan = plan_pull(listing, listing)
    assert (plan.added, plan.changed, plan.removed, plan.num_bytes) == ((), (), (), 0)


def test_a_new_etag_or_a_new_length_is_a_change_and_its_bytes_count() -> None:
    before = [RemoteObject("a", 1, "x"), RemoteObject("b", 2, "x"), RemoteObject("c", 3, "x")]
    now = [RemoteObject("a", 1, "x"), RemoteObject("b", 2, "y"), RemoteObject("c", 4, "x"), RemoteObject("d", 10, "x")]
    plan = plan_pull(now, before)
    assert [found.key for found in plan.changed] == ["b", "c"]
    assert [found.key for found in plan.added] == ["d"]
    assert plan.num_bytes == 2 + 4 + 10
