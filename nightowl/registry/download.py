"""A bundle on its way out of MLflow: fetched beside its place, checked file by file, published by one rename."""

from pathlib import Path

from nightowl.errors import RegistryError
from nightowl.files import publishing_folder, sha256_file
from nightowl.registry.connect import explained
from nightowl.registry.sums import NAME as SUMS
from nightowl.registry.sums import verify_sums


def download(uri: str, source: str, sums_sha256: str, folder: Path, where: str) -> Path:
    """Bring the files at `source` to `folder`. A whole copy that is there already is kept; any other folder is not touched.

    Raises:
        RegistryError: when a file is missing or damaged; it is named, and `folder` is left as it was.
    """
    if _is_whole(folder, sums_sha256, where):
        return folder
    if folder.exists() and not (folder / SUMS).is_file() and any(folder.iterdir()):
        raise RegistryError(f"{folder}: expected an empty folder or none to put {where} in; it holds something else")
    _refuse_missing(source, where)
    from mlflow.artifacts import download_artifacts

    with publishing_folder(folder) as scratch:
        with explained(uri):
            landed = Path(download_artifacts(artifact_uri=source, dst_path=str(scratch / "fetched"), tracking_uri=uri))
        verify_sums(landed, sums_sha256, f"{where} ({source})")
        for path in sorted(landed.iterdir()):
            path.rename(scratch / path.name)
        while landed != scratch:
            landed.rmdir()
            landed = landed.parent
    return folder


def _is_whole(folder: Path, sums_sha256: str, where: str) -> bool:
    if not (folder / SUMS).is_file() or sha256_file(folder / SUMS) != sums_sha256:
        return False
    try:
        verify_sums(folder, sums_sha256, where)
    except RegistryError:
        return False  # damaged since: fetched again
    return True


def _refuse_missing(source: str, where: str) -> None:
    """MLflow's own words for a local folder that has gone would not say what to do."""
    local = Path(source.removeprefix("file://"))
    if source.startswith(("/", "file:///")) and not local.is_dir():
        raise RegistryError(f"{where}: its files are not at {local}; was the folder of the registry moved or removed?")
