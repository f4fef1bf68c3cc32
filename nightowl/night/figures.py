"""The figures of the data that the champion was made from: from this machine where it was pinned here, else from its bundle."""

from pathlib import Path
from tempfile import TemporaryDirectory

from nightowl.data.figures import DatasetFigures, figures_of
from nightowl.data.manifest import read_manifest
from nightowl.errors import DataError
from nightowl.evaluation.champion import ChampionRecord
from nightowl.files import write_record
from nightowl.registry.store import Registry


def champion_figures(registry: Registry, champion: ChampionRecord, home: Path) -> DatasetFigures | None:
    """The figures of the champion's dataset version; None where its manifest is of a format that is no longer read.

    Raises:
        RegistryError: when its bundle is damaged or cannot be had.
    """
    kept = _kept(home, champion.dataset_version)
    try:
        return DatasetFigures.model_validate_json(kept.read_bytes())
    except (FileNotFoundError, ValueError):
        pass  # pinned elsewhere, or by an older version
    with TemporaryDirectory(prefix="nightowl-figures-") as scratch:
        bundle = registry.fetch(champion.detector, champion.version, Path(scratch) / "bundle")
        try:
            figures = figures_of(read_manifest(bundle / "inputs" / "manifest.jsonl"))
        except DataError:
            return None
    keep_figures(home, figures)
    return figures


def keep_figures(home: Path, figures: DatasetFigures) -> None:
    """Remember the figures of a dataset version that was pinned here."""
    write_record(_kept(home, figures.dataset_version), figures)


def _kept(home: Path, dataset_version: str) -> Path:
    return home / "figures" / f"{dataset_version}.json"
