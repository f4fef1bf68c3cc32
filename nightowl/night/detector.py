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

from nightowl.data.describe import Suggestion, suggest_params
from nightowl.errors import ParamsError
from nightowl.files import write_atomic
from nightowl.params import DETECTOR_NAME, SECTIONS, DataParams, Params, detector_names

_COMMON = {
    "prepare": {"image_size": "network input side in pixels, a multiple of 32: larger finds smaller objects, and takes longer"},
    "train": {
        "base": "published or own .pt, a model .yaml (random weights), or champion",
        "epochs": "passes over the train images",
        "global_batch": "images an optimizer step",
    },
    "gate": {
        "min_test_images": "fewer than this cannot carry a decision",
        "min_map50": "floor, also for the first model, 0 to 1; set it to what the line needs",
        "min_class_ap50": "floor for each class that occurs in test, 0 to 1",
        "margin": "how far mAP50-95 may lie below the champion's, absolute",
    },
}
_FLOWS = ("nightly", "retrain", "promote", "rollback")


def add_detector(root: Path, name: str, source: Path, given: DataParams | None = None) -> Suggestion:
    """Add `name` to the checkout at `root`, with the params that suit the data at `source`; returns what was found.

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
    return suggestion


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
    """A detector's params.yaml: the data values that differ from the defaults, and every other section empty, with its common
    keys as remarks."""
    document = CommentedMap({section: CommentedMap() for section in SECTIONS})
    document["data"] = data.model_dump(mode="json", exclude_defaults=True)
    document.yaml_set_start_comment(
        f"Detector {name}. What stands here lies over the shared defaults in ../../params.yaml, which has every key.\n"
        "To set one of those in remarks, take away its section's {} and its own # and space."
    )
    lines = []
    for line in _dump(document).splitlines(keepends=True):
        lines += [line, *_common_keys(line.partition(":")[0])]
    return "".join(lines)


def _common_keys(section: str) -> list[str]:
    """A remark for each key that is often set in `section`: its default, and what it means."""
    defaults = getattr(Params(), section, None)
    return [f"#   {key}: {getattr(defaults, key)} # {meaning}\n" for key, meaning in _COMMON.get(section, {}).items()]


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


def few_test_images(num_test: int | None, needed: int) -> str | None:
    """A sentence about data whose test split is too small for the gate; None when it is large enough, or not known."""
    if num_test is None or num_test >= needed:
        return None
    return (
        f"test has {num_test} images, and gate.min_test_images is {needed}: the gate will decide nothing; label more for test, "
        "or lower it if fewer are enough for you"
    )


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
