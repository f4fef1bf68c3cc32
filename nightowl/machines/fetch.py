"""What a run that is done has made, brought into DVC's cache here exactly as its nodes recorded it.

That the shared cache lacks some of it is told apart from every other trouble: what was deleted there can only be made again,
and that costs money, while a remote that is not reached today has it all tomorrow.
"""

import io
from collections.abc import Iterable

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from nightowl.cloud.dvc_cache import fetch_tracked
from nightowl.cloud.dvc_config import is_read_here, read_config
from nightowl.cloud.dvc_tracked import tracked_folder
from nightowl.errors import RemoteError, RemoteLacks
from nightowl.files import write_atomic
from nightowl.machines.board import Board
from nightowl.machines.records import StageEnd
from nightowl.stages.workspace import Workspace


def fetch(board: Board, workspace: Workspace) -> str | None:
    """Have the outputs of the run's stages in the cache of `workspace`, and its dvc.lock name them, so that DVC has only to
    check them out. Returns what the DVC remote lacks, in words, or without one the cache; None when all of it is here, or when
    the remote is of a kind that only DVC reads, which then fetches by itself.

    Raises:
        RemoteError: the remote or the board cannot be asked.
    """
    ends = board.stage_ends()
    write_atomic(workspace.root / "dvc.lock", recorded(ends, workspace.detector))
    config = read_config(workspace.root)
    if config.has_remote and not is_read_here(config):
        return None
    where = f"the DVC remote {config.remote(None)['url']}" if config.has_remote else f"DVC's cache {config.cache}"
    for end in ends:
        try:
            fetch_tracked(tracked_folder(workspace.out(end.stage)))
        except RemoteLacks:
            return f"{where} lacks what {end.stage} made"
    return None


def recorded(ends: Iterable[StageEnd], detector: str) -> str:
    """A dvc.lock of the stages that ended, each as the node recorded it that brought it about.

    Raises:
        RemoteError: for a record that is none.
    """
    stages = {}
    for end in ends:
        name = f"{end.stage}@{detector}"
        try:
            stages[name] = YAML(typ="safe", pure=True).load(end.lock)["stages"][name]
        except (YAMLError, KeyError, TypeError) as error:
            raise RemoteError(f"ends/{end.stage}.json: expected DVC's record of {name}, as {end.instance} made it") from error
    text = io.StringIO()
    YAML(typ="safe", pure=True).dump({"schema": "2.0", "stages": stages}, text)
    return text.getvalue()
