"""The `nightowl` command. A sub-command is a thin function in nightowl/commands/; errors become one line and an exit code."""

import sys
from typing import Annotated

import typer

from nightowl import __version__
from nightowl.commands import data, engine, evaluate, init, inputs, machines, models, night, node, predict, train
from nightowl.errors import NightowlError, explain_os_error
from nightowl.telemetry import turn_telemetry_off

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Retrain YOLO detectors every night, and ship only what is proven better.",
)


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="print the version and exit", is_eager=True)] = False) -> None:
    if show:
        print(f"nightowl {__version__}")
        raise typer.Exit


app.command()(night.demo)
app.command()(init.init)
app.command()(night.night)
app.command()(night.retrain)
app.command()(train.train)
app.command(hidden=True)(node.node)
app.command()(models.models)
app.command()(models.promote)
app.command()(models.rollback)
app.command()(models.reference)
app.command()(predict.bundle)
app.command()(predict.predict)
app.command()(evaluate.evaluate)
app.add_typer(data.app, name="data")
app.add_typer(inputs.app, name="inputs")
app.add_typer(engine.app, name="engine")
app.add_typer(machines.app, name="machines")


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 failed, 2 bad input, 3 refused (where asked for), 130 interrupted."""
    turn_telemetry_off()
    try:
        app(prog_name="nightowl")
    except NightowlError as error:
        _end(str(error), error.exit_code)
    except KeyboardInterrupt:
        _end("interrupted", 130)
    except OSError as error:
        explained = explain_os_error(error)
        if explained is None:
            raise
        _end(str(explained), explained.exit_code)


def _end(message: str, code: int) -> None:
    print(f"nightowl: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
