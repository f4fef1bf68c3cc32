"""`nightowl engine`: TensorRT engines of registered versions, built where the GPU is."""

from typing import Annotated

import typer

from nightowl.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Build TensorRT engines where the GPU is, and list them.")


@app.command()
def build(model: Annotated[str, typer.Argument(help="NAME, NAME@champion or NAME@7; a name alone is its champion")]) -> None:
    """Build the engine of a registered version for this machine's GPU, unless it is there."""
    from nightowl.commands.place import settings_here
    from nightowl.night.engine import build_version

    detector, version = split_name(model)
    info, record = build_version(settings_here(), detector, version)
    print(f"{detector} version {info.version}: engine for {record.gpu} ({record.fingerprint.key()}), {record.num_bytes} bytes")
    print(record.held_in_words())


@app.command("list")
def list_engines(name: Annotated[str | None, typer.Argument(help="the detector; all of them without it")] = None) -> None:
    """List the versions that are to run on TensorRT, newest first, and their engines; `engine pending` where there is none."""
    from nightowl.commands.place import settings_here
    from nightowl.export.engine_store import open_engines
    from nightowl.night.engine import engines_of
    from nightowl.registry.store import open_registry

    settings = settings_here()
    registry, store = open_registry(settings), open_engines(settings)
    for detector in [name] if name else registry.detectors():
        for info in reversed(registry.versions(detector)):
            engines = engines_of(store, info)
            for record in engines:
                print("\t".join((detector, info.version, record.gpu, record.fingerprint.key(), f"{record.built_at:%Y-%m-%d}")))
            if not engines and "tensorrt" in info.record.formats:
                print("\t".join((detector, info.version, "engine pending")))


def split_name(model: str) -> tuple[str, str]:
    """Detector and version of NAME, NAME@champion or NAME@7. Raises UserError for another form."""
    from nightowl.commands.predict import NAMED

    named = NAMED.fullmatch(model if "@" in model else f"{model}@champion")
    if named is None:
        raise UserError(f"{model}: expected NAME, NAME@champion or NAME@7 (a version)")
    return named["detector"], named["version"]
