"""What a check found, in one line each: fine, wrong, or not to be known from here."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from nightowl.cloud.ec2_errors import is_denied
from nightowl.errors import RemoteError, SettingsError
from nightowl.records import Record

State = Literal["fine", "wrong", "unknown"]


class Finding(Record):
    """`what` was looked at, in a word or two."""

    what: str
    state: State
    said: str

    def __str__(self) -> str:
        return f"{self.what}: {self.said}"


def looked_at(what: str, check: Callable[[], Iterator[Finding]], needed: bool) -> Iterator[Finding]:
    """What `check` finds. That AWS does not let us look is unknown; any other refusal is wrong, where what was looked for is
    `needed` by name and not only good to know."""
    try:
        yield from check()
    except RemoteError as error:
        state: State = "wrong" if needed and not is_denied(error) else "unknown"
        yield Finding(what=what, state=state, said=f"not checked: {error}" if state == "unknown" else str(error))


def insist(findings: Iterable[Finding]) -> None:
    """Raises SettingsError with a line for everything that is wrong."""
    wrong = [str(each) for each in findings if each.state == "wrong"]
    if wrong:
        raise SettingsError("\n".join(wrong))
