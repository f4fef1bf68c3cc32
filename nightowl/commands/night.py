"""`nightowl night`, `nightowl retrain` and `nightowl demo`: a flow, run in place.

The core does not import Prefect: the flow is a process of its own, and its exit code is the command's.
"""

import signal
import sys
from typing import Annotated

import typer

Name = Annotated[str, typer.Argument(help="the detector")]
Source = Annotated[str | None, typer.Option(help="folder, s3:// address or dvc:PATH of its data; remembered for next time")]
FailOnRefusal = Annotated[bool, typer.Option("--fail-on-refusal", help="exit 3 when the gate refuses")]


def night(name: Name, source: Source = None, fail_on_refusal: FailOnRefusal = False) -> None:
    """Retrain NAME if anything is new, judge it, and promote it if it is better."""
    _run("nightly", name, source, fail_on_refusal)


def retrain(name: Name, source: Source = None, fail_on_refusal: FailOnRefusal = False) -> None:
    """The same as `night`, whether or not anything is new."""
    _run("retrain", name, source, fail_on_refusal)


def demo(
    images: Annotated[int | None, typer.Option(min=12, help="how many circuit boards to make")] = None,
    fail_on_refusal: FailOnRefusal = False,
) -> None:
    """A whole night on built-in circuit-board images, six kinds of defect."""
    from nightowl.boards import generate
    from nightowl.commands.place import workspace_of
    from nightowl.settings import home_of

    folder = home_of(workspace_of("demo").settings) / "demo-data"
    generate(folder, **({"num_images": images} if images else {}))
    _run("nightly", "demo", str(folder), fail_on_refusal, "--next-steps")


def _run(flow: str, name: str, source: str | None, fail_on_refusal: bool, *more: str) -> None:
    """Run the flow at the root of the checkout, and end as it ends. Faults of params are told before Prefect starts."""
    from nightowl.commands.foreground import run_in_foreground
    from nightowl.commands.place import workspace_of
    from nightowl.data.source import absolute_source
    from nightowl.params import load_params

    root = workspace_of(name).root
    load_params(root, name)
    command = [sys.executable, "-m", "flows", flow, name, *more]
    command += ["--source", absolute_source(source)] if source else []
    command += ["--fail-on-refusal"] if fail_on_refusal else []
    raise typer.Exit(run_in_foreground(command, root, left=signal.SIGTERM))
