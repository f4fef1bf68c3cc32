"""DVC's list of the files of a folder: `[{"md5": …, "relpath": …}, …]`, read row by row, so that only its text is in memory."""

import json
import re
from collections.abc import Iterator

from nightowl.cloud.listing import fault_of_key
from nightowl.cloud.storage import is_md5
from nightowl.errors import DataError

_BETWEEN = re.compile(r"[\s,\[]*")


def rows_of(text: str, url: str) -> Iterator[tuple[str, str]]:
    """The path inside the folder and the MD5 of each file.

    Raises:
        DataError: for what is no such list, and for a path that cannot be a file inside the folder.
    """
    decode, at = json.JSONDecoder().raw_decode, 0
    if not text.startswith("[") or not text.rstrip().endswith("]"):
        raise DataError(f"{url}: its list of files is not one that DVC writes")
    while text[at := _between(text, at)] != "]":
        try:
            row, at = decode(text, at)
            path, md5 = str(row["relpath"]), str(row["md5"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{url}: its list of files is not one that DVC writes: {error!r} at character {at}") from error
        fault = fault_of_key(path) if is_md5(md5) else f"has no MD5 but {md5!r}"
        if fault or not path:
            raise DataError(f"{url}: its list of files names {path!r}, which {fault or 'is empty'}; nothing was pulled")
        yield path, md5


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    assert match is not None
    return match.end()
