"""A new detector: its params from its data, its place in the list, and its deployments.

The three files are written in an order in which a kill leaves at most an unlisted folder, which is no detector yet.
"""

import io
from collections.abc import Callable
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.tokens import CommentToken

from nightowl.data.describe import suggest_params
from nightowl.errors import ParamsError
from nightowl.files import write_atomic
from nightowl.params import DETECTOR_NAME, SECTIONS, DataParams, detector_names

_FLOWS = ("nightly", "retrain", "promote", "rollback")


def add_detector(root: Path, name: str, source: Path, given: DataParams | None = None) -> str:
    """Add `name` to the checkout at `root`, with the params that suit the data at `source`; returns what was found, in words.

    Raises:
        ParamsError: when the name is taken or malformed.
        DataError: when the data cannot be used; nothing is written then.
    """
    folder = check_new_name(root, name)
    suggestion = suggest_params(source, given)
    deployments, listed = (
        _edited(root / "prefect.yaml", with_deployments, name),
        _edited(root / "params.yaml", with_detector, name),
    )
    write_atomic(folder / "params.yaml", detector_yaml(name, suggestion.params))
    write_atomic(root / "prefect.yaml", deployments)
    write_atomic(root / "params.yaml", listed)
    return suggestion.description


def check_new_name(root: Path, name: str) -> Path:
    """The folder that a detector of this name will have. Raises ParamsError when the name is taken or malformed."""
    folder = root / "detectors" / name
    if not DETECTOR_NAME.fullmatch(name):
        raise ParamsError(f"{name!r}: a detector's name begins with a-z or 0-9 and holds only a-z, 0-9, - and _, up to 63")
    if name in detector_names(root) or folder.exists():
        raise ParamsError(f"{folder}: there is a detector {name!r} already; choose another name, or edit its params.yaml")
    return folder


def _edited(path: Path, edit: Callable[[str, str], str], name: str) -> str:
    """The text of `path` after `edit`. Raises ParamsError when it has not the shape that it came with."""
    try:
        return edit(path.read_text(encoding="utf-8"), name)
    except FileNotFoundError:
        raise ParamsError(f"{path}: no such file; restore it: git checkout -- {path.name}") from None
    except (YAMLError, LookupError, TypeError, AttributeError, UnicodeDecodeError) as error:
        detail = " ".join(str(error).split())
        raise ParamsError(
            f"{path}: {name} cannot be added, as it has not the shape that it came with ({detail}); see: git diff {path.name}"
        ) from error


def detector_yaml(name: str, data: DataParams) -> str:
    """A detector's params.yaml: the data values that differ from the defaults, and every other section empty."""
    document = CommentedMap({section: CommentedMap() for section in SECTIONS})
    document["data"] = data.model_dump(mode="json", exclude_defaults=True)
    document.yaml_set_start_comment(f"Detector {name}. What stands here lies over the shared defaults in ../../params.yaml.")
    return _dump(document)


def with_detector(text: str, name: str) -> str:
    """The top-level params.yaml with `name` at the end of its list; comments and order stay."""
    document = _yaml().load(text)
    _append(document["detectors"], name)
    return _dump(document)


def with_deployments(text: str, name: str) -> str:
    """The prefect.yaml with the four deployments of `name`; the nightly one at 02:00 UTC, switched on."""
    document = _yaml().load(text)
    pool, limit = document["definitions"]["pool"], document["definitions"]["one_at_a_time"]
    for flow in _FLOWS:
        entry = CommentedMap(name=name, entrypoint=f"flows/{flow}.py:{flow}", parameters={"detector": name})
        if flow == "nightly":
            entry["schedules"] = [{"cron": "0 2 * * *", "timezone": "Etc/UTC", "active": True}]
        if flow in ("nightly", "retrain"):
            entry["concurrency_limit"] = limit
        entry["work_pool"] = pool
        _append(document["deployments"], entry)
    return _dump(document)


def _append(sequence: CommentedSeq, item: object) -> None:
    """Append to a block sequence. What follows its last item, blank lines and comments, stays at the end; a comment on the
    item's own line stays on that line."""
    last = len(sequence) - 1
    trailing = sequence.ca.items.pop(last, None)
    sequence.append(item)
    if trailing is None:
        return
    sequence.ca.items[last + 1] = trailing
    token = trailing[0]
    own, newline, rest = token.value.partition("\n") if token is not None else ("", "", "")
    if own.lstrip().startswith("#"):
        sequence.ca.items[last] = [CommentToken(own + newline, token.start_mark, None), *trailing[1:]]
        token.value = newline + rest


class _WithNull(RoundTripRepresenter):
    """Writes None as `null`, as people do, where ruamel leaves the place empty."""


def _null(representer: RoundTripRepresenter, value: None) -> ScalarNode:
    return representer.represent_scalar("tag:yaml.org,2002:null", "null")


_WithNull.add_representer(type(None), _null)


def _yaml() -> YAML:
    yaml = YAML()
    yaml.Representer = _WithNull
    yaml.preserve_quotes = True
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _dump(document: CommentedMap) -> str:
    stream = io.StringIO()
    _yaml().dump(document, stream)
    return stream.getvalue()
