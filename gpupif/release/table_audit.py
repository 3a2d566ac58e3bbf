"""The public `audit_table`: bounds of every suppressed cell of a published table, whoever chose the suppressions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow.compute as pc

from ..encoding.column import numbers_of
from ..encoding.plain_values import texts
from ..errors import InputError, OutputError
from ..frames.open import open_table
from ..treatment.field_checks import is_finite
from ..utils.progress import Reporter
from ..utils.validation import Columns, as_list, brief, check_exist, table_value
from .cells import check_shape, mask_totals
from .linear import Additivity, Floats, Mask, bound_cells
from .suppression import Protection
from .table_results import CountTable, TableAudit, make_frame

# The most cells that are not known to be 0, totals included, where some are suppressed: linear programs are about all.
MOST_CELLS = 20_000


def audit_table(
    table: Any,
    by: Columns | None = None,
    *,
    figure: Hashable = None,
    total: str | Mapping[Hashable, str | None] | None = "Total",
    width: float | None = None,
    least: float | None = None,
    slack: float | None = None,
) -> TableAudit:
    """Bound every suppressed cell of a table by what the published cells say, whoever chose the suppressions.

    For each suppressed cell, two linear programs find the lowest and the highest figure that fit all totals. Equal
    bounds disclose the cell; so do bounds that are closer than asked.

    Parameters
    ----------
    table:
        The result of `gpupif.tables`, or a table of any kind, or a path: a row for each cell. Missing figures are
        suppressed. A combination without a row counts as 0; a total without a row is unknown, and is not audited.
    by:
        The columns whose values make cells. Default: all except `figure`.
    figure:
        The column of counts or sums. Default: the last one.
    total:
        The text that marks totals, for all columns of `by` or in a dictionary by column. None: there are no totals.
        Default "Total".
    width:
        The least width (highest less lowest) that a suppressed cell needs. Default: above 0; whole numbers 1.
    least:
        What every suppressed figure is known to have at least. Default 0. If zeros are never suppressed, counts have 1.
    slack:
        How far published figures may be from the true ones: base - 1 for random rounding. Default 0.

    Returns
    -------
    TableAudit
        ``.bounds``, ``.disclosed``, ``.passes``; prints as a table. Bounds of whole numbers are rounded inwards. They
        are those of the linear programs: whole numbers may be bounded more closely still with three columns or more.

    Raises
    ------
    InputError
        Unknown columns, a column without the text that marks totals, figures that are no numbers or below 0, two rows
        for a cell, figures that contradict their totals, more than 20,000 cells that are not known to be 0, SciPy or
        highspy missing.
    TableReadError
        As `gpupif.score`.

    References
    ----------
    Fischetti and Salazar, Models and algorithms for optimizing cell suppression in tabular data, Journal of the
    American Statistical Association 95 (2000), 916-928.

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> table = pd.DataFrame({"sex": ["f", "m", "Total"], "count": [7, None, 9]})
    >>> gpupif.audit_table(table).bounds
      sex  lower  upper  disclosed
    0   m    2.0    2.0       True

    """
    whole = True
    if isinstance(table, CountTable):
        by, figure = list(table.by), table.figure
        total = table.total if (table.counts[by[0]] == table.total).any() else None
        least = float(table.is_whole) if least is None else least
        slack = table.slack if slack is None else slack
        width = table.audit.width if width is None and table.audit is not None else width
        table, whole = table.counts, table.is_whole
    frame = open_table(table, lambda names: None)
    figure = frame.names[-1] if figure is None else figure
    check_exist("figure", [figure], frame.names)
    try:
        rows = frame.arrow()
    except OutputError:
        raise InputError(
            f"figure: expected column {figure!r} to have numbers, empty where suppressed, and other columns to have "
            "values of a single type; got texts beside numbers. Leave out marks such as 'x'."
        ) from None
    names = [name for name in frame.names if name != figure] if by is None else as_list("by", by)
    check_exist("by", names, frame.names)
    if not names or figure in names:
        raise InputError("by: expected columns beside the column of figures. Name them, and figure=.")
    places = {name: place for place, name in enumerate(frame.names)}
    figures = numbers_of(rows.column(places[figure]).combine_chunks())
    _check_figures(figure, figures, rows.column(places[figure]))
    values, codes = [], []
    for name in names:
        labels = texts(rows.column(places[name]).combine_chunks()).to_pylist()
        mark: Any = total.get(name, "Total") if isinstance(total, Mapping) else total
        if mark is None:
            # Equal to no value, so that all totals are unknown.
            mark = object()
        elif mark not in labels:
            raise InputError(
                f"total: column {name!r}: expected a value {brief(mark)} for its totals, got none. Say which text "
                f"marks totals, such as total='All', or that the column has none: total={{{name!r}: None}}."
            )
        values.append([*dict.fromkeys(label for label in labels if label != mark), mark])
        place_of = {label: place for place, label in enumerate(values[-1])}
        codes.append(np.array([place_of[label] for label in labels]))
    shape = [len(own) for own in values]
    check_shape(shape)
    flat = np.ravel_multi_index(codes, shape)
    if len(np.unique(flat)) < len(flat):
        raise InputError(
            f"table: expected a row for each combination of {', '.join(map(repr, names))}, got two for one."
        )
    unknown = mask_totals(shape)
    known, hidden = np.zeros(len(unknown)), np.zeros_like(unknown)
    known[flat], hidden[flat], unknown[flat] = np.nan_to_num(figures), np.isnan(figures), False
    off = as_amount("slack", slack)
    check_size(int(np.count_nonzero(unknown | hidden | (known + off > 0))))
    whole = whole and bool((known == np.floor(known)).all())
    widest, lowest = as_amount("width", width, whole), as_amount("least", least)
    protection = Protection(widest, np.zeros(len(known)), lowest, whole)
    return find_bounds(names, values, Additivity(shape), known, hidden, protection, off, unknown)


def as_amount(argument: str, given: Any, default: float = 0) -> float:
    """Return a finite number of 0 or more as a float; `default` for None. Raises InputError for any other value."""
    if given is None:
        return float(default)
    if not is_finite(given) or given < 0:
        raise InputError(f"{argument}: expected a number of 0 or more, got {brief(given)}.")
    return float(given)


def check_size(cells: int) -> None:
    """Raise InputError if more cells are not known to be 0 than linear programs can be about."""
    if cells > MOST_CELLS:
        raise InputError(
            f"by: expected at most {MOST_CELLS:,} cells that are not known to be 0, totals included, where cells are "
            f"suppressed; got {cells:,}. Name fewer columns, or make them coarser first."
        )


def _check_figures(figure: Hashable, figures: Floats, column: Any) -> None:
    """Raise InputError for a figure that is no number, or is below 0."""
    given = np.asarray(pc.invert(pc.is_null(column, nan_is_null=True)))
    wrong = np.flatnonzero(given & ~((figures >= 0) & (figures < np.inf)))
    if len(wrong):
        raise InputError(
            f"figure: column {figure!r}: expected counts or sums of 0 or more, missing where suppressed; got "
            f"{table_value(column[int(wrong[0])].as_py())}. Name the column of figures, and leave suppressed figures "
            "empty."
        )


def find_bounds(
    by: Sequence[Hashable],
    values: Sequence[Sequence[Any]],
    totals: Additivity,
    figures: Floats,
    hidden: Mask,
    protection: Protection,
    slack: float = 0.0,
    unknown: Mask | None = None,
) -> TableAudit:
    """Return the audit of a table.

    values: of each axis, totals last. figures, hidden: flat, all cells; without a margin of protection, figures of
    hidden cells are not read. unknown: cells that are not published and not audited. Default: none. Raises InputError.
    """
    not_asked = np.zeros_like(hidden) if unknown is None else unknown
    with Reporter() as report:
        report.stage("audit", int(hidden.sum()), "cells")
        bounds = bound_cells(totals, figures, hidden | not_asked, hidden, protection.least, slack, report.advance)
    lower, upper = protection.inward(*bounds)
    # A reader of the audit of a published table has no true figures: the lower bounds are as good without a margin.
    true = figures[hidden] if protection.margin.any() else lower
    failed = protection.fails(true, lower, upper, hidden)
    # Adding 0 makes 0 of -0.
    frame = make_frame(by, values, np.flatnonzero(hidden), lower=lower + 0.0, upper=upper + 0.0, disclosed=failed)
    return TableAudit(
        cells=int((~not_asked).sum()),
        suppressed=len(frame),
        computed=int(protection.computes(lower, upper).sum()),
        disclosed=int(failed.sum()),
        width=protection.width,
        least=protection.least,
        bounds=frame,
    )
