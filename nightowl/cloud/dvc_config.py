"""What DVC's own configuration says of a checkout: which remote there is, how it is reached, and where the cache lies.

Read as DVC reads it (system, user, repository, local; later ones win), without DVC. An option that is not known here is
refused by name: a remote that is meant otherwise must not be read in some other way.
"""

import configparser
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nightowl.cloud.storage import SCHEME, FolderStorage, Storage, parse_url
from nightowl.errors import DataError

_ACCESS = {
    "endpointurl": "endpoint",
    "region": "region",
    "profile": "profile",
    "access_key_id": "access_key",
    "secret_access_key": "secret_key",
    "session_token": "token",
}
_OF_NO_WEIGHT = frozenset(
    {"url", "jobs", "checksum_jobs", "connect_timeout", "read_timeout", "sse", "sse_kms_key_id", "acl", "listobjects", "verify"}
    | {"version_aware", "worktree", "no_traverse", "shared", "grant_read", "grant_read_acp", "grant_write_acp"}
    | {"grant_full_control"}
)
Section = dict[str, str]


@dataclass(frozen=True)
class DvcConfig:
    """The sections in force for the repository whose `.dvc` folder is in `repo`, with every path absolute."""

    repo: Path
    sections: Mapping[str, Section]

    @property
    def cache(self) -> Path:
        """The folder of the cache."""
        return Path(self.sections.get("cache", {}).get("dir", self.repo / ".dvc" / "cache"))

    @property
    def has_remote(self) -> bool:
        """Is there a default remote?"""
        return self.sections.get("core", {}).get("remote") is not None

    def remote(self, name: str | None) -> Section:
        """The options of the remote `name`, or of the default one. Raises DataError when there is none."""
        name = name or self.sections.get("core", {}).get("remote")
        if name is None:
            raise DataError(f"{self.repo}: DVC has no default remote here: dvc remote default NAME")
        options = self.sections.get(f'remote "{name}"', {})
        if "url" not in options:
            raise DataError(f"{self.repo}: DVC's configuration names no url for the remote {name!r}: dvc remote add {name} URL")
        return options


def read_config(repo: Path) -> DvcConfig:
    """Raises DataError for a file that cannot be read."""
    sections: dict[str, Section] = {}
    for path in (*_of_the_machine(), repo / ".dvc" / "config", repo / ".dvc" / "config.local"):
        for name, options in _read(path).items():
            sections.setdefault(name, {}).update(options)
    return DvcConfig(repo, sections)


def as_text(sections: Mapping[str, Section]) -> str:
    """The sections as one of DVC's files."""
    lines = []
    for name, options in sections.items():
        lines += [f"['{name}']" if '"' in name else f"[{name}]", *(f"    {key} = {_quoted(options[key])}" for key in options)]
    return "\n".join(lines) + "\n"


def opener(config: DvcConfig, remote: str | None) -> Callable[[], Storage]:
    """Opens the remote as a storage; nothing is asked of it before.

    Raises:
        DataError: for a kind of remote, or an option of it, that is not read here.
    """
    options = config.remote(remote)
    url = options["url"]
    instead = f"pull with `dvc pull` in {config.repo} and name the folder itself as the source"
    wrong = [name for name in options if name not in _ACCESS and name not in _OF_NO_WEIGHT]
    wrong += [name for name in ("version_aware", "worktree") if options.get(name, "false").lower() not in ("false", "0", "no")]
    if "://" in url and not url.startswith(SCHEME):
        raise DataError(f"{config.repo}: its DVC remote {url} is neither S3 nor a folder: {instead}")
    if wrong:
        raise DataError(f"{config.repo}: its DVC remote {url} has the option {wrong[0]}, which is not read here: {instead}")
    if "://" not in url:
        return lambda: FolderStorage(Path(url))

    def open_s3() -> Storage:
        from nightowl.cloud.s3 import S3Storage  # boto3 takes a while to import
        from nightowl.cloud.s3_access import Access

        return S3Storage(
            parse_url(url), Access(**{ours: options[theirs] for theirs, ours in _ACCESS.items() if theirs in options})
        )

    return open_s3


def is_read_here(config: DvcConfig) -> bool:
    """Is there a default remote, and is it one that `opener` opens?"""
    try:
        opener(config, None)
    except DataError:
        return False
    return True


def _of_the_machine() -> tuple[Path, Path]:
    """DVC's configuration for everybody, and for this user."""
    everybody = os.environ.get("XDG_CONFIG_DIRS", "").split(":")[0] or "/etc/xdg"
    ours = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    folders = (
        os.environ.get("DVC_SYSTEM_CONFIG_DIR") or f"{everybody}/dvc",
        os.environ.get("DVC_GLOBAL_CONFIG_DIR") or f"{ours}/dvc",
    )
    system, user = (Path(folder).expanduser() / "config" for folder in folders)
    return system, user


def _read(path: Path) -> dict[str, Section]:
    parser = configparser.ConfigParser(interpolation=None, strict=False, inline_comment_prefixes=(" #",))
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (configparser.Error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not readable as DVC's configuration: {' '.join(str(error).split())}") from error
    sections = {_bare(name): {key: _bare(value) for key, value in parser.items(name)} for name in parser.sections()}
    for name, options in sections.items():
        for key in ("url",) if name.startswith("remote ") else ("dir",) if name == "cache" else ():
            if key in options and "://" not in options[key]:
                options[key] = os.path.normpath(path.parent / Path(options[key]).expanduser())
    return sections


def _quoted(text: str) -> str:
    """With quotes where DVC would not read it as one value without."""
    if not any(sign in text for sign in " #,'\""):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def _bare(text: str) -> str:
    """Without the quotes that DVC puts around what holds blanks or quotes."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text
