import pytest

from nightowl.night.key import Parts, PastNight, night_key, nothing_new, what_is_new


@pytest.mark.parametrize("changed", range(4))
def test_each_part_changes_the_key(changed: int) -> None:
    parts = ["data", "params", "base", "code"]
    others = [part + "!" if index == changed else part for index, part in enumerate(parts)]
    first, second, again = (night_key(Parts(*each[:3]), each[3]) for each in (parts, others, parts))
    assert first != second
    assert first == again


@pytest.mark.parametrize(
    ("champion", "past", "expected", "reason"),
    [
        (None, [], None, "the first night of a detector"),
        (
            "1",
            [PastNight("1", "k", None, False)],
            "nothing new since version 1 was made: the champion stands",
            "it made the champion",
        ),
        ("1", [PastNight("1", "other", None, False)], None, "the inputs changed"),
        (
            "1",
            [PastNight("2", "k", "1", False), PastNight("1", "other", None, False)],
            "nothing new since version 2, which was not promoted: the champion, version 1, stands",
            "refused against this very champion",
        ),
        (
            "3",
            [PastNight("2", "k", "1", False), PastNight("3", "other", "1", False)],
            None,
            "refused against another champion: the judgement may fall out differently now",
        ),
        (
            "1",
            [PastNight("2", "k", "1", True), PastNight("1", "other", None, False)],
            "nothing new since version 2, which was taken back: the champion, version 1, stands",
            "a rollback is not undone by the next night",
        ),
        (
            None,
            [PastNight("1", "k", None, False)],
            "nothing new since version 1, which was not promoted: there is still no champion",
            "a first model that missed the floors",
        ),
        (
            "1",
            [PastNight("4", "k", "1", True), PastNight("1", "k", None, False)],
            "nothing new since version 1 was made: the champion stands",
            "the standing champion is named before a version that was taken back",
        ),
    ],
)
def test_a_night_ends_early_only_when_its_judgement_is_known(
    champion: str | None, past: list[PastNight], expected: str | None, reason: str
) -> None:
    known = nothing_new("k", champion, past)
    assert (known.sentence if known else None) == expected, reason
    assert known is None or known.is_champion == (expected is not None and expected.endswith("was made: the champion stands"))


@pytest.mark.parametrize(
    ("now", "same_key", "said"),
    [
        (Parts("d", "p", "b"), False, "new since version 3: code or libraries of the stages"),
        (Parts("D", "p", "b"), False, "new since version 3: data"),
        (Parts("D", "P", "B"), False, "new since version 3: data, params, base weights"),
        (Parts("d", "p", "b"), True, "the inputs are those of version 3, which is to be judged anew"),
    ],
)
def test_a_night_that_runs_says_what_is_new(now: Parts, same_key: bool, said: str) -> None:
    assert what_is_new("3", Parts("d", "p", "b"), now, same_key) == said
