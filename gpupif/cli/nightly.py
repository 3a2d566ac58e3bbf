"""The commands `gpupif nightly ...`: risk recomputed every night."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .messages import Command, CommandFailedError
from .options import PrintOptions, ReadOptions, ReportFile, configured, expanded, option, output_option
from .printing import interruption, say

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
    option("KEY=VALUE", "Use this in place of what FILE says: run.device=cpu.", "--set"),
]
Output = Annotated[Path, output_option("FILE.toml", "Write the configuration to this file.", "-o", "--output")]


def init(
    table: options.Table,
    output: Output = Path("risk.toml"),
    overwrite: options.Overwrite = False,
    roles: options.RolesFile = None,
    require: list[str] | None = option(
        "CRITERION",
        "A limit on risk: 'k>=5', 'pif95<=3', 'max csf<=0.9', ... May be repeated. Default: those of the plan; else "
        "what offices use.",
    ),
    plan: Path | None = option("plan.toml", "Release the table as this plan treats it, and limit the risk of that."),
    key_file: Path | None = option("FILE", "The secret key by which the plan's random treatments draw: 32 bytes."),
    *,
    shared: ReadOptions,
) -> None:
    """Look at TABLE, say which limits on risk would fail tonight, and write a first configuration, to be edited."""
    from ..nightly.configuration.new_config import look_up, write_first

    with shared.configured():
        first = write_first(
            look_up(table, shared.sep), output, overwrite, roles=roles, require=require, plan=plan, key=key_file
        )
    seen = first.seen
    interruption.left = f"the configuration is complete: {output}"

    command = shlex.join(["gpupif", "nightly", "run", str(output)])

    def facts() -> dict[str, Any]:
        gates = {"tonight": first.tonight, "gates": [gate.to_dict() for gate, _ in first.gates]}
        return {"input": str(table), "output": str(output), **seen.to_dict(), **gates, "commands": [command]}

    def draw(console: Console) -> None:
        for line in first.tonight:
            say(line)
        typer.echo()
        # An inspection prints its roles as proposals.
        if roles is None:
            seen.print(console)
            typer.echo()
        say(f"Configuration written to {output}. Check what it says, above all its gates, then:")
        say(f"  {command}")

    shared.show(facts, draw)


@contextlib.contextmanager
def _exit_codes() -> Iterator[None]:
    """Set the exit code for errors in the block: 2 for bad input or configuration, 4 for another run, 1 for others."""
    from ..errors import AnotherRunError, GpupifError, InputError, TableReadError

    try:
        yield
    except (InputError, TableReadError):
        raise
    except (GpupifError, OSError, MemoryError) as error:
        from ..nightly.exit_codes import ANOTHER_RUN, EXIT_CODES, Status

        exit_code = ANOTHER_RUN if isinstance(error, AnotherRunError) else EXIT_CODES[Status.BROKEN]
        raise CommandFailedError(str(error) or type(error).__name__, exit_code) from None


def run(
    file: ConfigFile,
    settings: Overrides = None,
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    *,
    shared: PrintOptions,
) -> None:
    """Recompute the risk of the table that FILE names, and judge it by its gates.

    Exit code: 0 all gates hold, 3 a gate failed, 5 the release failed, 2 bad input or configuration, 4 another run is
    on, 1 anything else.
    """
    interruption.left = "the last good state is as it was"
    to = ReportFile(report, overwrite, file, redact)
    from ..nightly.comparison.figures import with_figures
    from ..nightly.configuration.config import load_config
    from ..nightly.event_log import logged_to_stderr
    from ..nightly.nightly_run import run_and_compare
    from ..nightly.report.readable_report import draw

    def on_record(ended: RunOutcome) -> None:
        interruption.left = (
            f"run {ended.number} is on record: {ended.status}. Not everybody may have been told of it, and what is no "
            "longer needed may still be there: the next run removes that"
        )

    with configured(shared.quiet), _exit_codes():
        config = load_config(file, settings or ())
        with logged_to_stderr(config.settings.tell.log, config.redact, shared.quiet):
            outcome, before = run_and_compare(config, on_record, report)
    document, past = outcome.to_dict(), None if before is None else before.to_dict()
    shared.show(lambda: with_figures(document, past), lambda console: draw(document, past, console))
    if report is not None:
        to.write(nightly_documents(file, settings, redact), shared)
    raise typer.Exit(outcome.exit_code)


def nightly_documents(file: Path, settings: list[str] | None = None, redact: bool = False) -> list[dict[str, Any]]:
    """Return the documents of the last run of a configuration and of its history, for a report."""
    from ..nightly.configuration.config import find_runs
    from ..nightly.record.record import Record
    from ..nightly.record.run_history import history as find_history
    from ..report.records import document_of

    with _exit_codes():
        found = find_history(file, overrides=settings or ())
        with Record.open(find_runs(file, settings or ()).state) as record:
            runs = [document_of(run, redact) for run in record.runs()[-1:]]
    return [*runs, document_of(found, redact)]


def history(
    file: ConfigFile,
    settings: Overrides = None,
    as_csv: bool = option(None, "Print CSV instead, and nothing else.", "--csv", default=False),
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
        PrintOptions(as_json).show(found.to_dict, found.print)


RunNumber = Annotated[
    str | None, typer.Argument(help="A number, 'last', or 'good'. Default: the two last runs that came to results.")
]


def diff(
    file: ConfigFile,
    run_a: RunNumber = None,
    run_b: RunNumber = None,
    settings: Overrides = None,
    top: int = option("N", "How many cells and rows to list.", default=20),
    as_json: options.Json = False,
) -> None:
    """Say what changed from RUN_A to RUN_B: columns, gates, classes, rows, and the cells whose risk rose most."""
    from ..nightly.comparison.run_diff import diff as find_diff
    from ..utils.validation import whole_number

    top = whole_number("top", top, "cells")
    with _exit_codes():
        found = find_diff(file, run_a, run_b, most=top, overrides=settings or ())
    PrintOptions(as_json).show(found.to_dict, found.print)


def verify(file: ConfigFile, settings: Overrides = None, *, shared: PrintOptions) -> None:
    """Hold all that is kept against its checksums, and the record against the files.

    Exit code: 0 all is as it was left, 3 there are problems, 2 no record there, 1 anything else.
    """
    from ..nightly.record.verification import verify as check

    with _exit_codes():
        found = check(file, overrides=settings or ())
    shared.show(found.to_dict, found.print)
    raise typer.Exit(found.exit_code)


FUNCTIONS = (init, run, history, diff, verify)
COMMANDS = {f"{app.info.name} {function.__name__}": function for function in FUNCTIONS}
for command in FUNCTIONS:
    app.command(cls=Command)(expanded(command))
