"""The command `gpupif budget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .options import PrintOptions, ReportFile, option


def budget(
    ledger: Annotated[Path, typer.Argument(help="The ledger of a table's releases.", show_default=False)],
    epsilon: float | None = option("1", "Make the ledger if there is none: what all releases may spend, nats."),
    delta: float | None = option("1e-6", "Of a new ledger. Default: 0."),
    neighbours: str | None = option(
        "add-remove|replace",
        "Of a new ledger: hide whether a person is there, or a person's values.",
        show_default="add-remove",
    ),
    contributions: int | None = option("N", "Of a new ledger: the most rows of one person. Default: 1."),
    group: int | None = option("N", "Of a new ledger: persons that are protected together. Default: 1."),
    report: options.Report = None,
    overwrite: options.Overwrite = False,
    *,
    shared: PrintOptions,
) -> None:
    """Show what the releases of a table spent, on what, and what is left; make the ledger with --epsilon."""
    to = ReportFile(report, overwrite, ledger.name, False)
    from ..release.ledger import Budget

    found = Budget(ledger, epsilon, delta, neighbours, contributions, group)
    shared.show(lambda: {"verdict": found.verdict(), **found.to_dict()}, found.print)
    if to.file is not None:
        from ..report.records import document_of

        to.write([document_of(found)], shared)
