from nightowl.data.formats.listing import Labelled
from nightowl.data.manifest import Split
from nightowl.data.overlap import one_split_each


def resolve(**members: str) -> tuple[dict[str, Split | None], list[str]]:
    """`members` maps a split to the one-letter paths that it lists."""
    names: dict[str, Split] = {"train": "train", "val": "val", "test": "test"}
    images = [Labelled(path, names[split]) for split, paths in members.items() for path in paths]
    kept, findings = one_split_each(images)
    assert all(finding.kind == "split_overlap" for finding in findings)
    return {image.path: image.split for image in kept}, [finding.detail for finding in findings]


def test_splits_that_share_nothing_stay_as_they_are() -> None:
    assert resolve(train="abc", val="d", test="e") == (
        {"a": "train", "b": "train", "c": "train", "d": "val", "e": "test"},
        [],
    )


def test_one_folder_as_val_and_test_is_val_only() -> None:
    kept, said = resolve(train="abc", val="de", test="de")
    assert kept == {"a": "train", "b": "train", "c": "train", "d": "val", "e": "val"}
    assert said == ["all 2 images of test are also in val: not used as test, which is taken by hash"]


def test_one_folder_for_everything_is_train_only() -> None:
    kept, said = resolve(train="abc", val="abc", test="abc")
    assert kept == dict.fromkeys("abc", "train")
    assert len(said) == 2


def test_a_shared_image_leaves_train_so_that_nothing_is_judged_on_what_it_was_fitted_to() -> None:
    kept, said = resolve(train="abcx", val="xd", test="e")
    assert kept["x"] == "val"
    assert said == ["in train and val: not used as train"]


def test_val_that_is_a_part_of_train_stays_val() -> None:
    kept, said = resolve(train="abcd", val="cd")
    assert kept == {"a": "train", "b": "train", "c": "val", "d": "val"}
    assert len(said) == 2


def test_a_shared_image_leaves_test_for_val() -> None:
    kept, said = resolve(train="abc", val="dx", test="xe")
    assert (kept["x"], kept["e"]) == ("val", "test")
    assert said == ["in test and val: not used as test"]


def test_images_without_a_split_are_kept_once() -> None:
    kept, findings = one_split_each([Labelled("a", None), Labelled("b", None)])
    assert [image.path for image in kept] == ["a", "b"] and findings == []
