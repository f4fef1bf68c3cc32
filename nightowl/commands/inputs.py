"""`nightowl inputs`: what a night would depend on, pinned by hand, shown, or restored from a registered version."""

from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Pin, show and restore what the stages depend on.")

Name = Annotated[str, typer.Argument(help="the detector")]


@app.command()
def pin(
    name: Name,
    source: Annotated[
        str | None, typer.Option(help="folder, s3:// address or dvc:PATH of its data; remembered for next time")
    ] = None,
) -> None:
    """Read the data source, the champion and the base weights, and write down what they are in inputs/NAME/."""
    from nightowl.commands.place import workspace_of
    from nightowl.night.pinning import pin_inputs
    from nightowl.params import load_params
    from nightowl.registry.store import open_registry

    workspace = workspace_of(name)
    pinned = pin_inputs(workspace, load_params(workspace.root, name), open_registry(workspace.settings), source)
    if pinned.pulled:
        print(f"pulled {pinned.pulled}")
    print(f"pinned {len(pinned.manifest.images)} images, dataset version {pinned.dataset_version[:12]}, in {workspace.inputs}")
    show(name)


@app.command()
def show(name: Name) -> None:
    """Say what is pinned now."""
    from nightowl.commands.place import workspace_of
    from nightowl.data.findings import read_findings
    from nightowl.data.manifest import read_manifest
    from nightowl.evaluation.budget import read_history
    from nightowl.evaluation.champion import read_champion
    from nightowl.training.base import read_base

    workspace = workspace_of(name)
    manifest = read_manifest(workspace.manifest)
    base = read_base(workspace.base)
    print(f"dataset version  {manifest.version()}")
    print("images           " + ", ".join(f"{split} {count}" for split, count in manifest.num_images().items()))
    print("boxes            " + ", ".join(f"{label} {count}" for label, count in manifest.num_boxes().items()))
    print(f"splits           {manifest.split_rule}")
    print(f"findings         {len(read_findings(workspace.findings))}")
    print(f"base weights     {base.name} {base.sha256 or '(random weights)'}")
    print(f"champion         {' '.join(workspace.champion.read_text().split())}")
    reference = read_champion(workspace.reference)
    print(f"reference        version {reference.version}" if reference else "reference        none")
    print(f"decisions        {len(read_history(workspace.decisions))} of past nights")


@app.command()
def restore(name: Name, version: Annotated[str, typer.Option(help="registered version, or an alias")] = "champion") -> None:
    """Write inputs/NAME/ as a registered version had them, so that a clean clone can repeat it from the cache."""
    from nightowl.commands.place import workspace_of
    from nightowl.registry.restore import restore_inputs
    from nightowl.registry.store import open_registry

    workspace = workspace_of(name)
    registry = open_registry(workspace.settings)
    number = registry.version(name, version).version
    restore_inputs(registry, name, number, workspace.root)
    print(f"{workspace.inputs} is as version {number} had it; to repeat it: dvc repro gate@{name} export@{name}")
    show(name)
