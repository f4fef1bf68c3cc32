import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightowl.data.manifest import Split
from nightowl.data.split import group_key, role, take_splits
from nightowl.errors import DataError
from nightowl.params import SplitParams

PARAMS = SplitParams()
PATHS = [f"images/{number:04}.jpg" for number in range(1000)]


def splits(counts: dict[Split | None, int]) -> dict[str, Split | None]:
    return {f"{split}/{number}.jpg": split for split, count in counts.items() for number in range(count)}


@pytest.mark.parametrize(
    ("given_splits", "rule"),
    [
        ({None: 200}, "val (15%) and test (15%) taken by hash of the path without suffix"),
        ({"train": 200}, "train as given; val (15%) and test (15%) taken from train by hash of the path without suffix"),
        ({"train": 200, "val": 9}, "train and val as given; test (15%) taken from train by hash of the path without suffix"),
        ({"train": 200, "test": 9}, "train and test as given; val (15%) taken from train by hash of the path without suffix"),
        ({"train": 200, "val": 9, "test": 9}, "train, val and test as given"),
    ],
)
def test_each_case_has_its_rule_and_says_it(given_splits: dict[Split | None, int], rule: str) -> None:
    before = splits(given_splits)
    taken, said = take_splits(before, PARAMS)
    assert said == rule
    assert set(taken.values()) == {"train", "val", "test"}
    assert all(taken[path] == split for path, split in before.items() if split in ("val", "test")), "given ones stay"


def test_the_fractions_are_met() -> None:
    taken, _ = take_splits(dict.fromkeys(PATHS), SplitParams(val_fraction=0.2, test_fraction=0.1))
    counts = [list(taken.values()).count(split) for split in ("train", "val", "test")]
    assert counts == pytest.approx([700, 200, 100], abs=45)


def test_a_role_that_is_taken_alone_takes_the_images_that_it_takes_with_the_other() -> None:
    both, _ = take_splits(dict.fromkeys(PATHS, "train"), PARAMS)
    alone, _ = take_splits(dict.fromkeys(PATHS, "train") | {"v.jpg": "val"}, PARAMS)
    assert {p for p in PATHS if both[p] == "test"} == {p for p in PATHS if alone[p] == "test"}


@given(st.sets(st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=8)), st.randoms())
def test_growing_the_data_moves_no_image(names: set[str], random: "st.random.Random") -> None:
    small = dict.fromkeys(PATHS[:300])
    grown = [*small, *(f"new/{name}" for name in names)]
    random.shuffle(grown)
    before, _ = take_splits(small, PARAMS)
    after, _ = take_splits(dict.fromkeys(grown), PARAMS)
    assert {path: after[path] for path in small} == before


@settings(max_examples=40)
@given(st.dictionaries(st.integers(0, 400), st.integers(0, 30), min_size=60), st.randoms(), st.floats(0.3, 0.9))
def test_growing_grouped_data_moves_no_image_and_tears_no_group(
    lots: dict[int, int], random: "st.random.Random", share: float
) -> None:
    images = {f"{number}.jpg": f"lot{lot}" for number, lot in lots.items()}
    before = dict.fromkeys(random.sample(sorted(images), round(share * len(images))))
    params = SplitParams(val_fraction=0.3, test_fraction=0.3)
    try:
        small, _ = take_splits(before, params, images)
    except DataError:
        return  # too few lots to divide
    grown, _ = take_splits(dict.fromkeys(images), params, images)
    assert {path: grown[path] for path in before} == small
    for lot in set(images.values()):
        assert len({grown[path] for path in images if images[path] == lot}) == 1


def test_a_role_is_the_same_on_every_machine() -> None:
    found = " ".join(role(f"images/{number}", PARAMS) for number in range(8))
    assert found == "train test train train train test train test"


@pytest.mark.parametrize(
    ("path", "pattern", "key"),
    [
        ("images/a.jpg", None, "images/a"),
        ("images/b_jpg.rf.0a1b2c.jpg", None, "images/b_jpg"),
        ("images/lot7_0012.png", r"lot(\d+)_", "7"),
        ("images/lot7_0012.png", r"lot\d+", "lot7"),
        ("images/other.png", r"lot\d+", None),
    ],
)
def test_the_group_key(path: str, pattern: str | None, key: str | None) -> None:
    assert group_key(path, pattern) == key


def test_a_group_is_never_torn_apart() -> None:
    paths = [f"lot{lot}/{number}.png" for lot in range(60) for number in range(5)]
    taken, rule = take_splits(dict.fromkeys(paths), SplitParams(group_pattern=r"lot\d+/"))
    assert rule.endswith(r"by hash of the group lot\d+/")
    for lot in range(60):
        assert len({taken[path] for path in paths if path.startswith(f"lot{lot}/")}) == 1


@pytest.mark.parametrize(
    ("given_splits", "params", "message"),
    [
        ({"val": 3}, PARAMS, "val given, but no train split with images"),
        ({None: 1}, PARAMS, r"too few images to divide: .* would be empty: 1 images in 1 groups, data.split.val_fraction 0.15"),
        ({None: 9}, SplitParams(group_pattern="lot"), r"group_pattern: 'lot' does not match 9 of 9 paths, first None/0\.jpg"),
    ],
)
def test_what_cannot_be_divided_is_said(given_splits: dict[Split | None, int], params: SplitParams, message: str) -> None:
    with pytest.raises(DataError, match=message):
        take_splits(splits(given_splits), params)
