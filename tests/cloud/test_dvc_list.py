import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightowl.cloud.dvc_list import rows_of
from nightowl.errors import DataError

MD5 = "d41d8cd98f00b204e9800998ecf8427e"


@given(
    st.lists(st.text("ab/é图 ", min_size=1).filter(lambda path: "//" not in f"/{path}/"), max_size=5),
    st.sampled_from([None, 1]),
)
def test_the_rows_are_those_that_json_finds(paths: list[str], indent: int | None) -> None:
    rows = [{"md5": MD5, "relpath": path} for path in paths]
    assert list(rows_of(json.dumps(rows, indent=indent), "dvc:/data")) == [(path, MD5) for path in paths]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "is not one that DVC writes"),
        ("", "is not one that DVC writes"),
        ('[{"md5": "x", "relpath": "a"}]', "names 'a', which has no MD5 but 'x'"),
        (f'[{{"md5": "{MD5}"}}]', "not one that DVC writes: KeyError"),
        ('["a"]', "not one that DVC writes: TypeError"),
        ('[{"md5": ]', "not one that DVC writes: JSONDecodeError"),
        (f'[{{"md5": "{MD5}", "relpath": "../a"}}]', "names '../a', which would leave the folder"),
    ],
)
def test_another_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=f"dvc:/data: its list of files {message}|dvc:/data: its list of files is {message}"):
        list(rows_of(text, "dvc:/data"))
