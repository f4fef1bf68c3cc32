import pytest

from nightowl.checkpoint.identity import Identity, differences, flat, require_same
from nightowl.errors import CheckpointError
from tests.checkpoint.conftest import IDENTITY


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dataset_sha256": "e" * 64}, "the data was dddddddddddd…, is eeeeeeeeeeee…"),
        ({"params": {"train.lr0": "0.02", "train.epochs": "3"}}, "train.lr0 was 0.01, is 0.02"),
        ({"params": {"train.lr0": "0.01"}}, "train.epochs was 3, is absent"),
        ({"base": {"name": '"yolo11s.yaml"'}}, 'base weights: name was "yolo11n.yaml", is "yolo11s.yaml"'),
        ({"code": {"nightowl/training/loop.py": "0"}}, "the training code changed (nightowl/training/loop.py)"),
        ({"libraries": {"torch": "2.15.0"}}, "torch was 2.14.1, is 2.15.0"),
    ],
)
def test_each_thing_that_decides_the_result_is_named_where_it_differs(change: dict[str, object], told: str) -> None:
    other = IDENTITY.model_copy(update=change)
    assert differences(IDENTITY, other) == [told]
    assert other.key() != IDENTITY.key()


def test_the_same_training_has_the_same_key_and_no_differences() -> None:
    again = Identity.model_validate_json(IDENTITY.model_dump_json())
    assert differences(IDENTITY, again) == [] and again.key() == IDENTITY.key()
    require_same(IDENTITY, again, "here")


def test_going_on_from_another_training_is_refused_with_every_difference() -> None:
    other = IDENTITY.model_copy(update={"dataset_sha256": "e" * 64, "libraries": {"torch": "2.15.0"}})
    with pytest.raises(
        CheckpointError, match=r"^s3://b/x/: checkpoints of another training: the data was .*; torch was 2.14.1"
    ):
        require_same(IDENTITY, other, "s3://b/x/")


def test_many_changed_files_are_counted() -> None:
    code = {f"nightowl/training/{name}.py": name for name in "abcde"}
    (told,) = differences(IDENTITY.model_copy(update={"code": code}), IDENTITY.model_copy(update={"code": {}}))
    assert told.startswith("the training code changed (nightowl/training/a.py, ") and told.endswith(" and 2 more)")


def test_nested_params_become_dotted_paths() -> None:
    assert flat({"train": {"lr0": 0.01, "augment": {"mosaic": 1.0}}, "classes": None, "empty": {}}) == {
        "train.lr0": "0.01",
        "train.augment.mosaic": "1.0",
        "classes": "null",
        "empty": "{}",
    }
