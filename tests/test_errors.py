from pathlib import Path

import pytest

from nightowl.errors import did_you_mean, remedy


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/checkout/inputs/line-3/base.json", "pin the inputs first: nightowl inputs pin line-3 --source PATH"),
        ("/checkout/out/line-3/prepare/dataset.jsonl", "run that stage first: dvc repro prepare@line-3"),
        ("/elsewhere/base.json", "pin the inputs first: nightowl inputs pin NAME --source PATH"),
    ],
)
def test_what_to_do_about_a_missing_file_names_its_detector(path: str, expected: str) -> None:
    assert remedy(Path(path)) == expected


def test_a_near_name_is_offered_and_a_far_one_is_not() -> None:
    assert did_you_mean("epoch", ["epochs", "seed"]) == " (did you mean epochs?)"
    assert did_you_mean("colour", ["epochs", "seed"]) == ""
