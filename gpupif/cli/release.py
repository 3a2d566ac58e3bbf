"""The command `gpupif release`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import typer

from ..errors import GpupifError, InputError, OutputError
from .options import Given
from .printing import as_document, interruption, say


def release(given: Given) -> None:
    """Answer queries of TABLE with differential privacy: counts, histograms, means and quantiles, charged to a ledger.

    All queries are charged before the first is answered. Whether the budget suffices depends on the ledger and the
    queries, never on the rows of TABLE. What is refused spends nothing; so is another table than the ledger's.
    """
    from ..io.base import every_column
    from ..io.write import check_output

    output = given.output
    if output is None and given.quiet and not given.as_json:
        raise InputError("quiet: the answers would be lost. Give --output, or leave --quiet out; nothing was spent.")
    given.check()
    to = given.report_file(given.table)
    if output is not None:
        check_output(output, given.overwrite, endings=(".json",))
    with given.configured():
        interruption.left = "gpupif budget says whether the queries were charged; nothing was answered"
        found = given.find(partial(_answer, given.queries, given.budget, output, given.overwrite), every_column)
    interruption.left = "the queries were charged"
    from ..release.table_results import MOST_PRINTED

    try:
        longest = max(0 if own.table is None else len(own.table) for own in found.answers)
        if output is None and not given.as_json and longest > MOST_PRINTED:
            say(f"All answers. The tables below show the first {MOST_PRINTED} cells.")
            typer.echo(as_document(found.to_dict()))
        given.show_result(found, to=to, input=given.table, output=output)
        if output is not None:
            given.say(f"Answers written to {output}.")
    except (OSError, SystemExit) as error:
        # Standard output is full, or nobody reads it: rich then ends the process.
        if output is None:
            typer.echo(as_document(found.to_dict()), err=True)
        elif isinstance(error, SystemExit):
            raise
        where = "above, on standard error" if output is None else f"in {output}"
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "nobody reads it"
        raise OutputError(
            f"standard output: could not be written: {reason}. The answers were charged, and are {where}."
        ) from None


def _answer(query: Path, ledger: Path, output: Path | None, overwrite: bool, table: Any) -> Any:
    """Return the answers. They are paid for, so that they are in their file before anything else is done."""
    from ..io.write import write_text
    from ..release.answers import answer

    found = answer(table, queries=query, budget=ledger)
    if output is None:
        return found
    document = as_document(found.to_dict())
    try:
        write_text(document + "\n", output, overwrite)
    except (GpupifError, OSError) as error:
        where = "output"
        try:
            typer.echo(document)
        except OSError:
            where = "error"
            typer.echo(document, err=True)
        reason = str(error).rstrip(".")
        raise OutputError(f"{reason}. The answers were charged, and are on standard {where} instead.") from None
    return found
