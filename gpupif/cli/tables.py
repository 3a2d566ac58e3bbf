"""The command `gpupif tables`: each parameter of its function is an option, as Typer has it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

from ..errors import InputError
from ..utils.validation import brief
from . import options
from .messages import decimal_comma_hint
from .option_values import FileRoles, as_names
from .options import ClusterOptions, ReportFile, option, options_of_panel, output_option

suppression_option = options_of_panel("Suppression, audited by linear programs")
key_option = options_of_panel("Cell keys (--method cell-key)")


def tables(
    table: options.Table,
    by: Annotated[str, option("A,B", "Columns whose combinations are counted, 1 to 4 or so.", show_default=False)],
    round: int | None = option("3", "Base of rounding. Default: figures stay."),  # noqa: A002
    method: str = option(
        "nearest|random|controlled|cell-key",
        "How to round: controlled keeps all totals; cell-key draws noise in place of rounding.",
        default="nearest",
    ),
    value: str | None = option("COLUMN", "Sum this column in place of counting rows."),
    key_file: Path | None = option("FILE", "The secret key of random and cell-key: 32 bytes."),
    roles: options.RolesFile = None,
    suppress_below: int | None = suppression_option("3", "Suppress cells of fewer rows, and what protects them."),
    dominance: str | None = suppression_option("N,K", "Suppress sums whose N largest values are above K percent."),
    p_percent: float | None = suppression_option("P", "Suppress sums that give the largest value away to within P %."),
    width: float | None = suppression_option(
        "W", "Least width of the bounds of a suppressed cell. Default: --suppress-below less 1; for sums any."
    ),
    record_id: str | None = key_option("A,B", "Columns that identify a row. Default: the whole row."),
    p_table: Path | None = key_option("FILE.csv", "Columns count, noise, probability. Default: noise of at most 2."),
    weights: options.SamplingWeights = None,
    missing: options.Missing = "category",
    output: Path | None = output_option("FILE", "The cells: .csv, .parquet or .feather.", "-o", "--output"),
    no_totals: bool = output_option(None, "Leave totals out.", "--no-totals", default=False),
    total: str = output_option("TEXT", "What marks totals.", default="Total"),
    report: options.Report = None,
    redact: options.Redact = False,
    overwrite: options.Overwrite = False,
    device: options.Device = None,
    *,
    shared: ClusterOptions,
) -> None:
    """Count the rows of TABLE, or sum a column, by combinations of values, and protect the counts for publication."""
    shared.check(table)
    to = ReportFile(report, overwrite, table, redact)
    names = as_names(by, "by") or []
    record = as_names(record_id, "record_id")
    dominant = _dominance(dominance)
    from_file = FileRoles(roles, table, shared.sep, [*names, *(record or ()), value, weights])
    weights = weights if value is not None or method == "cell-key" else from_file.weights(weights)
    with shared.configured(device):
        from ..io.write import check_output
        from ..release.cells import CellRequest
        from ..release.tables import tables as make_tables

        if output is not None:
            check_output(output, overwrite)
        find = partial(
            make_tables,
            by=names,
            value=value,
            weights=weights,
            round=round,
            method=method,
            suppress_below=suppress_below,
            dominance=dominant,
            p_percent=p_percent,
            width=width,
            key=key_file,
            record_id=record,
            p_table=p_table,
            missing=missing,
            totals=not no_totals,
            total=total,
        )
        request = CellRequest.from_arguments(names, value, weights, method, record, missing)
        found = shared.find(find, table, request.columns().pick)
        if output is not None:
            found.write(output, overwrite)
    shared.report(found, from_file, to=to, input=table, output=output)
    if output is not None:
        shared.say(f"Cells written to {output}.")


def _dominance(text: str | None) -> tuple[float, float] | None:
    """Return the two numbers of a text N,K. Raises InputError."""
    if text is None:
        return None
    try:
        n, k = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"dominance: expected N,K, such as 2,85; got {brief(text)}{decimal_comma_hint(text)}."
        ) from None
    return n, k
