"""The commands `gpupif nightly ...`: risk recomputed every night."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import printable
from . import options
from .messages import Command, as_options
from .options import configured, interruption, say, show

if TYPE_CHECKING:
    from rich.console import Console

    from ..nightly.run_outcome import RunOutcome

app = typer.Typer(
    name="nightly",
    help="Risk of a table recomputed every night: gates answered by exit code, and a record of all runs.",
    no_args_is_help=True,
)

ConfigFile = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The configuration, as init writes it.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Use this in place of what FILE says: run.device=cpu."),
]
# Exit codes of the command.
ANYTHING_ELSE, ANOTHER_RUN = 1, 4

Output = Annotated[
    Path, options.output_option("-o", "--output", metavar="FILE.toml", help="Write the configuration to this file.")
]


def init(
    table: options.Table,
    output: Output = Path("risk.toml"),
    overwrite: options.Overwrite = False,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Look at TABLE and write a first configuration, commented, to be edited."""
    from ..nightly.configuration.new_config import init as write_config
    from ..nightly.configuration.new_config import look_up

    with configured(quiet, memory_limit=memory_limit, temp=temp):
        seen = write_config(look_up(table, sep), output, overwrite)
    interruption.left = f"the configuration is complete: {output}"

    command = shlex.join(["gpupif", "nightly", "run", str(output)])

    def facts() -> dict[str, Any]:
        return {"input": str(table), "output": str(output), **seen.to_dict(), "commands": [command]}

    def draw(console: Console) -> None:
        seen.print(console)
        typer.echo()
        say(f"Configuration written to {output}. Check what it says, above all its gates, then:")
        say(f"  {command}")

    show(facts, draw, as_json, quiet)


@contextlib.contextmanager
def _exit_codes() -> Iterator[None]:
    """Bad input or configuration ends with 2, as everywhere; another run with 4, and anything else with 1."""
    from ..errors import AnotherRunError, GpupifError, InputError, TableReadError

    try:
        yield
    except (InputError, TableReadError):
        raise
    except (GpupifError, OSError, MemoryError) as error:
        text = str(error) if isinstance(error, GpupifError) else printable(str(error))
        _say_error(text or type(error).__name__)
        raise typer.Exit(ANOTHER_RUN if isinstance(error, AnotherRunError) else ANYTHING_ELSE) from None


def _say_error(text: str) -> None:
    typer.echo(f"gpupif: error: {as_options(text)}", err=True)


def run(
    file: ConfigFile,
    settings: Overrides = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Recompute the risk of the table that FILE names, and judge it by its gates.

    Exit code: 0 all gates hold, 3 a gate failed, 2 bad input or configuration, 4 another run is on, 1 anything else.
    """
    interruption.left = "the last good state is as it was"
    from ..nightly.comparison.figures import with_figures
    from ..nightly.configuration.config import load_config
    from ..nightly.event_log import logged_to_stderr
    from ..nightly.nightly_run import run_and_compare
    from ..nightly.report.terminal_report import draw

    def on_record(ended: RunOutcome) -> None:
        interruption.left = (
            f"run {ended.number} is on record: {ended.status}. Not everybody may have been told of it, and what is no "
            "longer needed may still be there: the next run removes that"
        )

    with configured(quiet), _exit_codes():
        config = load_config(file, settings or ())
        with logged_to_stderr(config.settings.tell.log, config.redact, quiet):
            outcome, before = run_and_compare(config, on_record)
    document, past = outcome.to_dict(), None if before is None else before.to_dict()
    show(lambda: with_figures(document, past), lambda console: draw(document, past, console), as_json, quiet)
    raise typer.Exit(outcome.exit_code)


def history(
    file: ConfigFile,
    settings: Overrides = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead, and nothing else.")] = False,
    as_json: options.Json = False,
) -> None:
    """List the runs of FILE: when, rows, PIF 95, gates, seconds, and why one did not end well."""
    from ..errors import InputError
    from ..nightly.record.run_history import history as find_history

    if as_csv and as_json:
        raise InputError("--csv: goes without --json. Leave one of them out.")
    with _exit_codes():
        found = find_history(file, overrides=settings or ())
    if as_csv:
        typer.echo(found.to_csv(), nl=False)
    else:
        show(found.to_dict, found.print, as_json, quiet=False)


RunNumber = Annotated[
    str | None, typer.Argument(help="A number, 'last', or 'good'. Default: the two last runs that came to results.")
]


def diff(
    file: ConfigFile,
    run_a: RunNumber = None,
    run_b: RunNumber = None,
    settings: Overrides = None,
    top: Annotated[int, typer.Option(metavar="N", help="How many cells and rows to list.")] = 20,
    as_json: options.Json = False,
) -> None:
    """Say what changed from RUN_A to RUN_B: columns, gates, classes, rows, and the cells whose risk rose most."""
    from ..nightly.comparison.run_diff import diff as find_diff
    from ..utils.validation import whole_number

    top = whole_number("top", top, "cells")
    with _exit_codes():
        found = find_diff(file, run_a, run_b, most=top, overrides=settings or ())
    show(found.to_dict, found.print, as_json, quiet=False)


def verify(
    file: ConfigFile, settings: Overrides = None, as_json: options.Json = False, quiet: options.Quiet = False
) -> None:
    """Hold all that is kept against its checksums, and the record against the files.

    Exit code: 0 all is as it was left, 3 there are problems, 2 no record there, 1 anything else.
    """
    from ..nightly.record.verification import verify as check

    with _exit_codes():
        found = check(file, overrides=settings or ())
    show(found.to_dict, found.print, as_json, quiet)
    raise typer.Exit(found.exit_code)


FUNCTIONS = (init, run, history, diff, verify)
COMMANDS = {f"{app.info.name} {function.__name__}": function for function in FUNCTIONS}
for command in FUNCTIONS:
    app.command(cls=Command)(command)
