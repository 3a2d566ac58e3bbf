"""The command `gpupif release`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from . import options
from .option_values import FileRoles
from .options import ClusterOptions, ReportFile, option, output_option
from .printing import as_document, interruption


def release(
    table: options.Table,
    ledger: Annotated[
        Path, option("LEDGER", "The ledger that is charged, see gpupif budget.", "--ledger", show_default=False)
    ],
    query: Annotated[
        Path, option("Q.toml", "The queries: a list `query` in .toml, .json or .yaml.", "--query", show_default=False)
    ],
    output: Path | None = output_option("FILE.json", "The answers, which may be published.", "-o", "--output"),
    device: options.Device = None,
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    *,
    shared: ClusterOptions,
) -> None:
    """Answer queries of TABLE with differential privacy: counts, histograms, means and quantiles, charged to a ledger.

    All queries are charged before the first is answered. Whether the budget suffices depends on the ledger and the
    queries, never on the rows of TABLE. What is refused spends nothing; so is another table than the ledger's.
    """
    from ..io.base import every_column
    from ..io.write import check_output, write_text

    shared.check(table)
    to = ReportFile(report, overwrite, table, redact)
    if output is not None:
        check_output(output, overwrite, endings=(".json",))
    with shared.configured(device):
        from ..release.answers import answer

        interruption.left = "gpupif budget says whether the queries were charged; nothing was answered"
        found = shared.find(partial(answer, queries=query, budget=ledger), table, every_column)
    interruption.left = "the queries were charged"
    # Printed first: the answers are paid for, whatever becomes of the file.
    shared.report(found, FileRoles(None, table, None), to=to, input=table, output=output)
    if output is not None:
        write_text(as_document(found.to_dict()) + "\n", output, overwrite)
