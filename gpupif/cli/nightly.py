"""The commands `gpupif nightly ...`: risk recomputed every night."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .messages import Command, CommandFailedError
from .options import Given, with_options
from .printing import interruption, say

if TYPE_CHECKING:
    from rich.console import Console

    from ..nightly.run_outcome import RunOutcome

app = typer.Typer(
    name="nightly",
    help="Risk of a table recomputed every night: gates answered by exit code, and a record of all runs.",
    no_args_is_help=True,
)


def init(given: Given) -> None:
    """Look at TABLE, say which limits on risk would fail tonight, and write a first configuration, to be edited."""
    from ..nightly.configuration.new_config import look_up, write_first

    output = given.output
    with given.configured():
        arguments = given.arguments(write_first, path=output, roles=given.roles)
        first = write_first(look_up(given.table, given.sep), **arguments)
    seen = first.seen
    interruption.left = f"the configuration is complete: {output}"

    command = shlex.join(["gpupif", "nightly", "run", str(output)])

    def facts() -> dict[str, Any]:
        gates = {"tonight": first.tonight, "gates": [gate.to_dict() for gate, _ in first.gates]}
        return {"input": str(given.table), "output": str(output), **seen.to_dict(), **gates, "commands": [command]}

    def draw(console: Console) -> None:
        for line in first.tonight:
            say(line)
        typer.echo()
        # An inspection prints its roles as proposals.
        if given.roles is None:
            seen.print(console)
            typer.echo()
        say(f"Configuration written to {output}. Check what it says, above all its gates, then:")
        say(f"  {command}")

    given.show(facts, draw)


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


def run(given: Given) -> None:
    """Recompute the risk of the table that FILE names, and judge it by its gates.

    Exit code: 0 all gates hold, 3 a gate failed, 5 the release failed, 2 bad input or configuration, 4 another run is
    on, 1 anything else.
    """
    interruption.left = "the last good state is as it was"
    to = given.report_file(given.file)
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

    with given.configured(), _exit_codes():
        config = load_config(given.file, given.overrides)
        with logged_to_stderr(config.settings.tell.log, config.redact, given.quiet):
            outcome, before = run_and_compare(config, on_record, given.report)
    document, past = outcome.to_dict(), None if before is None else before.to_dict()
    given.show(lambda: with_figures(document, past), lambda console: draw(document, past, console))
    if given.report is not None:
        to.write(nightly_documents(given.file, given.overrides, given.redact), given)
    raise typer.Exit(outcome.exit_code)


def nightly_documents(file: Path, overrides: Sequence[str] = (), redact: bool = False) -> list[dict[str, Any]]:
    """Return the documents of the last run of a configuration and of its history, for a report."""
    from ..nightly.configuration.config import find_runs
    from ..nightly.record.record import Record
    from ..nightly.record.run_history import history as find_history
    from ..report.records import document_of

    with _exit_codes():
        found = find_history(file, overrides=overrides)
        with Record.open(find_runs(file, overrides).state) as record:
            runs = [document_of(run, redact) for run in record.runs()[-1:]]
    return [*runs, document_of(found, redact)]


def history(given: Given) -> None:
    """List the runs of FILE: when, rows, PIF 95, gates, seconds, and why one did not end well."""
    from ..errors import InputError
    from ..nightly.record.run_history import history as find_history

    if given.as_csv and given.as_json:
        raise InputError("--csv: goes without --json. Leave one of them out.")
    with _exit_codes():
        found = find_history(given.file, **given.arguments(find_history))
    if given.as_csv:
        typer.echo(found.to_csv(), nl=False)
    else:
        given.show(found.to_dict, found.print)


def diff(given: Given) -> None:
    """Say what changed from RUN_A to RUN_B: columns, gates, classes, rows, and the cells whose risk rose most."""
    from ..nightly.comparison.run_diff import diff as find_diff
    from ..utils.validation import whole_number

    whole_number("top", given.most, "cells")
    with _exit_codes():
        found = find_diff(given.file, **given.arguments(find_diff))
    given.show(found.to_dict, found.print)


def verify(given: Given) -> None:
    """Hold all that is kept against its checksums, and the record against the files.

    Exit code: 0 all is as it was left, 3 there are problems, 2 no record there, 1 anything else.
    """
    from ..nightly.record.verification import verify as check

    with _exit_codes():
        found = check(given.file, **given.arguments(check))
    given.show(found.to_dict, found.print)
    raise typer.Exit(found.exit_code)


COMMANDS = {f"{app.info.name} {function.__name__}": function for function in (init, run, history, diff, verify)}
for name, command in COMMANDS.items():
    app.command(cls=Command)(with_options(name, command))
