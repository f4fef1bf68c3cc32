"""Settings: where it runs. Nothing here may change the result, and nothing here is hashed.

Read from `settings.toml` at the root of the checkout and from NIGHTOWL_* variables, which win. A nested value is written
with two underscores: `NIGHTOWL_SOURCES__BCCD=/data/bccd`.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource
from pydantic_settings import SettingsError as UnreadableSettings

from nightowl.errors import SettingsError, did_you_mean
from nightowl.machine_settings import DetachedSettings, MachineSettings


class Settings(BaseSettings):
    """Every setting, with its unit in its name."""

    model_config = SettingsConfigDict(
        env_prefix="NIGHTOWL_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        toml_file="settings.toml",
        extra="forbid",
        frozen=True,
    )

    home: Path | None = Field(None, description="where nightowl keeps its state; default: `.nightowl` in the main checkout")
    sources: dict[str, str] = Field(
        default_factory=dict, description="detector name to the folder, s3:// address or dvc:PATH of its data"
    )
    s3_endpoint: str | None = Field(None, description="an S3-compatible server; default: AWS_ENDPOINT_URL, or AWS itself")
    registry_uri: str | None = Field(None, description="an MLflow server or database; default: SQLite in the home")
    registry_artifacts: str | None = Field(None, description="where a new registry keeps files, e.g. s3://bucket/models")
    weights: Path | None = Field(None, description="folder of base weights; default: `weights` in the home")
    checkpoints: str | None = Field(
        None, description="folder or s3:// address of checkpoints; default: `checkpoints` in the home"
    )
    checkpoint_every_seconds: Annotated[float, Field(gt=0)] = Field(
        120.0,
        description="time between two checkpoints within an epoch; longer where they would cost more than 1 % of the time",
    )
    checkpoint_keep: Annotated[int, Field(ge=1, le=1000)] = Field(2, description="newest checkpoints that are kept")
    checkpoint_keep_every_epochs: Annotated[int, Field(ge=0)] = Field(
        0, description="each so many epochs the checkpoint at the end is kept for good; 0: none"
    )
    engines: str | None = Field(None, description="folder or s3:// address of TensorRT engines; default: `engines` in the home")
    allow_downloads: bool = Field(True, description="may published base weights that params name be downloaded?")
    tensorboard: Path | None = Field(None, description="folder of TensorBoard event files; default: `tensorboard` in the home")
    mlflow_live: bool = Field(False, description="may the registry's MLflow show a training's figures while it runs?")
    rank_timeout_seconds: Annotated[float, Field(ge=1)] = Field(
        300.0, description="a rank that has not advanced for so long hangs: it is named, and the training ends"
    )
    stop_at: AwareDatetime | None = Field(
        None, description="when stages are to stop, e.g. 2026-07-01T06:00:00+02:00; a training goes on when it is run again"
    )
    stop_notice: Path | None = Field(None, description="a file whose appearance asks stages to stop; its first line says why")
    spot_notices: bool = Field(False, description="ask the metadata service of EC2 whether this machine is to be taken back?")
    checkpoint_request: Path | None = Field(
        None, description="a file; each time that it is touched a training saves its state at the next step"
    )
    cache_max_gb: Annotated[float, Field(gt=0)] | None = Field(
        None, description="what prepared images may take, in GB of 10^9 bytes; default: no limit but the disk's"
    )
    cache_max_age_days: Annotated[float, Field(gt=0)] = Field(30, description="prepared images unused for longer are removed")
    device: str = Field("auto", pattern=r"^(auto|cpu|\d+)$", description="auto, cpu, or a CUDA device index")
    num_workers: Annotated[int, Field(ge=0, le=256)] = Field(2, description="data loader processes a device")
    nproc: Annotated[int, Field(ge=1, le=64)] = Field(1, description="ranks on this host: one a GPU, or processes on the CPU")
    nnodes: Annotated[int, Field(ge=1, le=64)] = Field(1, description="hosts that train together")
    node_rank: Annotated[int, Field(ge=0, le=63)] = Field(0, description="which of them this is; 0 publishes")
    rendezvous: str | None = Field(
        None, pattern=r"^[^:\s]+:\d+$", description="HOST:PORT at which they meet, on a host that stays; node 0"
    )
    engine: Literal["local", "detached", "ec2"] = Field(
        "local",
        description="where the stages of a night run: in it; here, by a node that outlives it; or on rented machines",
    )
    detached: DetachedSettings = Field(DetachedSettings(), description="when runs of the engine detached end, come what may")
    machines: MachineSettings | None = Field(None, description="the rented machines; needed by the engine ec2")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


_TABLES: dict[str, type[BaseModel]] = {"machines": MachineSettings, "detached": DetachedSettings}

# Variables that carry a word between our own processes; they are not settings.
PROCESS_VARIABLES = ("NIGHTOWL_STAGE", "NIGHTOWL_RANK_REPORTS", "NIGHTOWL_NODE_HOME")


def load_settings(root: Path) -> Settings:
    """The settings in force for the checkout at `root`, with its folders as absolute paths: a relative one is meant
    from `root`, from wherever it is read. A variable that is set to nothing is not set.

    Raises:
        SettingsError: with every fault at once.
    """
    unknown = _unknown_variables()
    if unknown:
        known = [f"NIGHTOWL_{name.upper()}" for name in Settings.model_fields]
        meant = did_you_mean(
            unknown[0].removeprefix("NIGHTOWL_").split("__")[0], map(str.upper, Settings.model_fields), "NIGHTOWL_"
        )
        raise SettingsError(f"{', '.join(unknown)}: no such setting{meant}; known: {', '.join(known)}")
    path = root / "settings.toml"
    try:
        values = _at(path)()
    except ValidationError as error:
        raise SettingsError("\n".join(_describe(path, fault) for fault in error.errors())) from error
    except UnreadableSettings as error:
        raise SettingsError(
            'NIGHTOWL_SOURCES: expected JSON such as {"NAME": "/data/name"}, or one variable a detector such as '
            f"NIGHTOWL_SOURCES__NAME=/data/name, got {os.environ.get('NIGHTOWL_SOURCES')!r}"
        ) from error
    except (ValueError, OSError) as error:
        raise SettingsError(f"{path}: not readable as TOML: {error}") from error
    home = _absolute(root, values.home or main_checkout(root) / ".nightowl")
    named = values.checkpoints
    checkpoints = named if named is None or "://" in named else str(_absolute(root, Path(named)))
    engines = values.engines
    if engines is not None and "://" not in engines:
        engines = str(_absolute(root, Path(engines)))
    weights = _absolute(root, values.weights or home / "weights")
    notice = values.stop_notice and _absolute(root, values.stop_notice)
    request = values.checkpoint_request and _absolute(root, values.checkpoint_request)
    tensorboard = _absolute(root, values.tensorboard or home / "tensorboard")
    places = {
        "home": home,
        "engines": engines,
        "tensorboard": tensorboard,
        "weights": weights,
        "checkpoints": checkpoints,
        "stop_notice": notice,
        "checkpoint_request": request,
    }
    return values.model_copy(update=places)


def as_environment(settings: Settings) -> dict[str, str]:
    """The same settings as variables, for a process whose checkout has no settings.toml."""
    values = settings.model_dump(mode="json", exclude_none=True)
    return {f"NIGHTOWL_{key.upper()}": value if isinstance(value, str) else json.dumps(value) for key, value in values.items()}


def home_of(settings: Settings) -> Path:
    """The resolved home of settings that came from `load_settings`."""
    assert settings.home is not None
    return settings.home


def main_checkout(root: Path) -> Path:
    """The main working tree of the repository that `root` is a (linked) working tree of; `root` outside git."""
    command = ["git", "-C", str(root), "rev-parse", "--path-format=absolute", "--git-common-dir"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    common = Path(found.stdout.strip())
    return common.parent if found.returncode == 0 and common.name == ".git" else root


def _describe(path: Path, fault: ErrorDetails) -> str:
    """One line: where, which setting, what was expected, what was found."""
    where = f"{path} or NIGHTOWL_*: {'.'.join(map(str, fault['loc']))}"
    if fault["type"] != "extra_forbidden":
        return f"{where}: {fault['msg']}, got {fault['input']!r}"
    *above, given = map(str, fault["loc"])
    known = (_TABLES[above[0]] if above else Settings).model_fields
    return f"{where}: no such setting{did_you_mean(given, known)}; known here: {', '.join(known)}"


def _absolute(root: Path, path: Path) -> Path:
    return (root / path.expanduser()).resolve()


def _at(path: Path) -> type[Settings]:
    class Here(Settings):
        model_config = SettingsConfigDict(toml_file=path)

    return Here


def _unknown_variables() -> list[str]:
    known = {f"NIGHTOWL_{name.upper()}" for name in Settings.model_fields}
    ours = [
        name for name, value in os.environ.items() if value and name.startswith("NIGHTOWL_") and name not in PROCESS_VARIABLES
    ]
    return sorted(name for name in ours if name.split("__")[0] not in known)
