"""`nightowl data cache`: the prepared images of this home: what is there, whether it is sound, and what may go."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from nightowl.settings import Settings
    from nightowl.stages.cached import Use

app = typer.Typer(no_args_is_help=True, help="Prepared images: what is there, whether it is sound, what may go.")


@app.command("list")
def list_() -> None:
    """Show what is prepared, for which detector and dataset version, and what all of it takes on the disk.

    A line without a detector is of an earlier dataset version or other params, or of another checkout.
    """
    import time

    from rich.console import Console
    from rich.table import Table

    from nightowl.data.cache.forecast import gigabytes
    from nightowl.data.cache.opening import DAY_SECONDS
    from nightowl.data.cache.place import places
    from nightowl.data.cache.prune import shards_in, versions_in

    _, root = _home()
    here, uses = places(root), _uses()
    table = Table("detector", "dataset version", "index", "form", "images", "bytes", "unused for", "shards")
    for version in sorted(versions_in(here), key=lambda version: -version.used_at):
        unused = "in use" if version.is_open else f"{(time.time() - version.used_at) / DAY_SECONDS:.1f} days"
        kind = version.index.parents[1].name.partition("-")[0]
        size, num_shards = gigabytes(version.num_bytes), str(len(version.shards))
        now = uses.get((kind, version.index.stem), [])
        whose, of = ", ".join(f"{use.detector} {use.split}" for use in now), {use.dataset_version[:12]: None for use in now}
        table.add_row(
            whose or "-", ", ".join(of) or "-", version.index.stem[:12], kind, str(version.num_images), size, unused, num_shards
        )
    shards = shards_in(here)
    console = Console(highlight=False)
    if table.row_count:
        console.print(table)
    console.print(f"{root}: {gigabytes(sum(shard.num_bytes for shard in shards))} in {len(shards)} shards", soft_wrap=True)


@app.command()
def verify() -> None:
    """Read every prepared image and compare its checksum. What is damaged is made anew by the next training that needs it."""
    from nightowl.data.cache.verify import verify as verify_cache
    from nightowl.progress import track

    _, root = _home()
    found = verify_cache(root, track)
    for shard in found:
        if not shard.is_whole:
            print(f"{shard.folder}: not whole; its images are made anew when they are needed")
        elif shard.num_damaged:
            print(f"{shard.folder}: {shard.num_damaged} of {shard.num_images} images damaged; made anew when they are needed")
    num_bad = sum(shard.num_damaged > 0 or not shard.is_whole for shard in found)
    print(f"{sum(shard.num_images for shard in found)} prepared images in {len(found)} shards; {num_bad} shards with damage")
    raise typer.Exit(1 if num_bad else 0)


@app.command()
def prune(
    max_gb: Annotated[float | None, typer.Option(min=0, help="keep at most this; default: the setting cache_max_gb")] = None,
    max_age_days: Annotated[float | None, typer.Option(min=0, help="default: the setting cache_max_age_days")] = None,
) -> None:
    """Remove what was not used lately. What is being read stays, and so does what was used within the last hour."""
    from nightowl.data.cache.forecast import gigabytes
    from nightowl.data.cache.opening import DAY_SECONDS, cache_max_bytes
    from nightowl.data.cache.prune import prune as prune_cache

    settings, root = _home()
    days = settings.cache_max_age_days if max_age_days is None else max_age_days
    max_bytes = cache_max_bytes(settings) if max_gb is None else int(max_gb * 1e9)
    done = prune_cache(root, days * DAY_SECONDS, max_bytes)
    if done.was_busy:
        print("images are being prepared now; nothing was removed: run it again later")
        raise typer.Exit(1)
    print(f"removed {done.num_versions} dataset versions and {done.num_shards} shards, {gigabytes(done.num_bytes)}")


def _uses() -> "dict[tuple[str, str], list[Use]]":
    """What the detectors of this checkout would open now, by form and name of the index."""
    from pathlib import Path

    from nightowl.commands.place import workspace_of
    from nightowl.night.checkout import checkout_root
    from nightowl.params import detector_names, load_params
    from nightowl.stages.cached import uses_of

    found: dict[tuple[str, str], list[Use]] = {}
    root = checkout_root(Path.cwd())
    for name in detector_names(root):
        for index, use in uses_of(workspace_of(name), load_params(root, name).prepare).items():
            found.setdefault(index, []).append(use)
    return found


def _home() -> "tuple[Settings, Path]":
    from nightowl.commands.place import settings_here
    from nightowl.data.cache.place import FOLDER
    from nightowl.settings import home_of

    settings = settings_here()
    return settings, home_of(settings) / FOLDER
