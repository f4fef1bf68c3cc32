"""What rented machines can reach, and what they are told: no folder of this machine, and no secret; their role lets them in.

What they cannot reach is refused in one line, before anything is started.
"""

from pathlib import Path

from nightowl.cloud.dvc_config import DvcConfig, as_text
from nightowl.cloud.storage import SCHEME
from nightowl.data.source import is_remote, tracked_path
from nightowl.errors import DataError, SettingsError
from nightowl.machine_settings import MachineSettings
from nightowl.settings import Settings, as_environment

_CORE = {"analytics": "false", "check_update": "false", "autostage": "false", "no_scm": "true"}
# Of a remote, what says where and how, not who: credentials and profiles stay here.
_TOLD = frozenset(
    {"url", "endpointurl", "region", "jobs", "checksum_jobs", "connect_timeout", "read_timeout"}
    | {"sse", "sse_kms_key_id", "acl", "listobjects", "use_ssl"}
)
_SAME_THERE = (
    "s3_endpoint",
    "checkpoint_every_seconds",
    "checkpoint_keep",
    "checkpoint_keep_every_epochs",
    "rank_timeout_seconds",
    "cache_max_gb",
    "cache_max_age_days",
    "device",
    "num_workers",
)


def machines_of(settings: Settings) -> MachineSettings:
    """Where the machines are. Raises SettingsError when nobody said."""
    if settings.machines is None:
        raise SettingsError(
            'engine: "ec2" needs the table [machines] in settings.toml, or NIGHTOWL_MACHINES__*; see docs/machines.md'
        )
    return settings.machines


def source_there(root: Path, detector: str, source: str) -> str:
    """How a node names the source of `detector`: an address as it is; a folder that DVC tracks in the checkout at `root`, from
    the top of the code.

    Raises:
        DataError: for what only this machine can read.
    """
    path = tracked_path(source)
    if path is not None and path.is_absolute() and path.is_relative_to(root):
        return f"dvc:{path.relative_to(root)}"
    if path is not None:
        raise DataError(
            f"{detector}: its data, {source}, is tracked by another checkout than {root}, which rented machines have not"
        )
    if not is_remote(source):
        raise DataError(
            f"{detector}: its data lies in the folder {source}, which rented machines cannot read: put it into S3 "
            f"(aws s3 sync) and name it: --source s3://BUCKET/PREFIX"
        )
    return source


def cache_config(config: DvcConfig) -> bytes:
    """DVC's configuration for a node: the default remote, without credentials, and every other in S3.

    Raises:
        DataError: when there is no default remote, or it is not in S3.
    """
    default = config.sections.get("core", {}).get("remote")
    url = config.remote(None)["url"]
    if not url.startswith(SCHEME):
        raise DataError(f"{config.repo}: its DVC remote {url} is not in S3: rented machines could not share what they make")
    told = {
        name: {key: value for key, value in sorted(options.items()) if key in _TOLD}
        for name, options in sorted(config.sections.items())
        if name.startswith("remote ") and options.get("url", "").startswith(SCHEME)
    }
    return as_text({"core": {"remote": str(default), **_CORE}, **told}).encode()


def checkpoints_there(settings: Settings, machines: MachineSettings) -> str:
    """The s3:// address of the checkpoints of nodes: the setting, where it is one; otherwise beside the board."""
    named = settings.checkpoints
    return named if named and "://" in named else f"{machines.board}/checkpoints"


def settings_there(settings: Settings, detector: str, source: str) -> dict[str, str]:
    """NIGHTOWL_* for the stages on a node: what holds wherever they run, and addresses in place of folders."""
    machines = machines_of(settings)
    told = Settings.model_construct(
        **{name: getattr(settings, name) for name in _SAME_THERE},
        sources={detector: source},
        checkpoints=checkpoints_there(settings, machines),
        allow_downloads=False,  # what they need was pinned and sent
    )
    names = {f"NIGHTOWL_{name.upper()}" for name in (*_SAME_THERE, "sources", "checkpoints", "allow_downloads")}
    return {name: value for name, value in as_environment(told).items() if name in names}
