"""The public `tables`: counts or sums of combinations of values, protected for publication, and audited."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..treatment.random.key import MADE_BY, Key
from ..utils.progress import Reporter
from ..utils.validation import Columns, as_columns, brief, check_word, whole_number
from .cell_keys import NoiseTable
from .cells import CellRequest, Cells, count_cells, mask_totals
from .linear import Additivity, Floats, Mask
from .magnitude import Dominance, PPercent
from .rounding import round_controlled, round_nearest, round_random
from .suppression import Protection, suppress_more
from .table_audit import as_amount, check_size, find_bounds
from .table_results import CountTable, make_frame

METHODS = ("nearest", "random", "controlled", "cell-key")
# The share of a sum by which its bounds have to differ from it, if it is suppressed for its few rows.
SAFETY = 0.1
# The most rounds of secondary suppression and audit: the first one passes but for rounding errors of linear programs.
MOST_ROUNDS = 5
# The name of the streams of random numbers, and their purposes.
STREAM, ROUNDING, ROW_KEYS = "tables", "rounding", "row keys"


def tables(
    table: Any,
    by: Columns,
    *,
    value: Hashable = None,
    weights: Hashable = None,
    round: int | None = None,  # noqa: A002
    method: str = "nearest",
    suppress_below: int | None = None,
    dominance: tuple[float, float] | None = None,
    p_percent: float | None = None,
    width: float | None = None,
    key: Key | bytes | str | os.PathLike[str] | None = None,
    record_id: Columns | None = None,
    p_table: Any = None,
    missing: str = "category",
    totals: bool = True,
    total: str = "Total",
) -> CountTable:
    """Count the rows of each combination of values, with all totals, and protect the counts for publication.

    Primary suppression takes away cells of few rows, or sums in which few contributions dominate. Secondary suppression
    takes away further cells, until an audit by linear programs shows that no suppressed cell can be computed, or
    bounded too closely, from the published cells and totals. Rounding or noise change the cells that are left.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a frame of any kind, a path, or a Dask DataFrame, which is computed at once. Files that do
        not fit into memory are counted chunk by chunk. The result is the same in every way and on every device.
    by:
        The columns whose combinations are cells. Cells that could be, but have no row, are 0.
    value:
        A column of numbers of 0 or more to sum, in place of counts. Each row is one contribution.
    weights:
        A column with the sampling weight of each row: cells are then estimated people. Limits of rows still hold rows.
    round:
        The base of rounding, a whole number of 2 or more. Default: figures are not rounded.
    method:
        How to round. "nearest" (default; halves up). "random": up with probability remainder / base, unbiased; the same
        cell is rounded alike in every table with this key. "controlled": all totals hold, at the least change (of three
        columns or more, within 30 % of it); at most 50,000 cells. "cell-key": no rounding; noise that depends on the
        rows of the cell alone.
    suppress_below:
        Suppress cells of fewer rows, 2 or more. Cells without rows are shown as 0 and are never suppressed, as is usual
        for counts. Make values coarser if a zero discloses something of others: see ``.one_cell_lines``.
    dominance, p_percent:
        With `value`: suppress sums whose n largest contributions are more than k percent of it (a pair (n, k)); or
        whose largest contribution the second largest can estimate to within p percent.
    width:
        The least width of the interval to which a reader can bound a suppressed cell. Default for counts:
        suppress_below - 1, so that no reader can be sure that a cell is below the limit. For sums: any width; their
        bounds also keep the distance that dominance and p % rules ask for, or 10 % of the sum for
        cells of few rows.
    key:
        The secret key of "random" and "cell-key": 32 bytes, or the path of a file with them.
    record_id:
        For "cell-key": the columns that identify a row; no two rows may share theirs. Default: all columns, the whole
        content of the row, which rows may share.
    p_table:
        For "cell-key": the probabilities of noise, as a table or a file with the columns count, noise and probability;
        the last count is for all higher ones. Default: -1, 0, 1 with 25, 50, 25 % for a count of 1; -2 to 2 with 10,
        20, 40, 20, 10 % above. A count of 0 stays 0.
    missing:
        "category" (default): missing values of `by` are one value of their own; "error": refuse them.
    totals:
        Whether totals are published too. Default True.
    total:
        The text that marks a total. Default "Total".

    Returns
    -------
    CountTable
        ``.counts``, a pandas DataFrame of all cells, ``.audit``, ``.write(path)``; prints as a table. Suppression is
        decided on exact figures, so that it holds for readers who undo the rounding. Sums also hold for a contributor
        who is alone in a cell, line by line; else readers who know a row of their own are not considered. Noise by cell
        keys is not differential privacy.

    Raises
    ------
    InputError
        No rows, unknown columns, an argument out of range or without what it goes with, more than a million cells (with
        suppression, more than 20,000 that have rows), no controlled rounding, a value that is missing or below 0, a
        record id that rows share, SciPy or highspy missing.
    TableReadError, DeviceError
        As `gpupif.score`.

    References
    ----------
    Hundepool et al., Statistical Disclosure Control (2012), chapters 4 and 5. Cell keys: see the papers of Fraser and
    Wooton (2005) and of Thompson, Broadfoot and Elazar (2013).

    Examples
    --------
    >>> import pandas as pd, gpupif
    >>> people = pd.DataFrame({"sex": list("ffffmmmm"), "job": ["cook"] * 3 + ["nurse"] + ["cook"] * 4})
    >>> gpupif.tables(people, ["sex", "job"], round=3).counts.tail(3)
         sex    job  count
    6  Total   cook      6
    7  Total  nurse      0
    8  Total  Total      9

    """
    started = time.perf_counter()
    names = as_columns("by", by, table)
    base = None if round is None else whole_number("round", round, "", least=2, most=2**31)
    check_word("method", method, METHODS)
    check_word("missing", missing, ("category", "error"))
    record = None if record_id is None else as_columns("record_id", record_id, table)
    by_key = method == "cell-key"
    conditions = (
        ("dominance", dominance, value is not None, "is a rule for sums. Name the column to sum by value="),
        ("p_percent", p_percent, value is not None, "is a rule for sums. Name the column to sum by value="),
        ("weights", weights, value is None, "sums of value= take no weights. Sum a column of value times weight"),
        ("round", round, not by_key, "cell keys draw noise in place of rounding. Take another method"),
        ("value", value, not by_key, "cell keys are for counts of rows. Take another method"),
        ("weights", weights, not by_key, "cell keys are for counts of rows. Take another method"),
        ("record_id", record_id, by_key, "goes with method='cell-key'. Add that"),
        ("p_table", p_table, by_key, "goes with method='cell-key'. Add that"),
        ("key", key, by_key or method == "random", "goes with method='random' or 'cell-key'. Add one"),
    )
    for argument, given, is_allowed, why in conditions:
        if given is not None and not is_allowed:
            raise InputError(f"{argument}: {why}, or leave it out.")
    if method in ("random", "controlled") and base is None:
        raise InputError(f"method: {method!r} needs a base. Give it by round=, such as 3.")
    if not isinstance(total, str) or not total:
        raise InputError(f"total: expected a text that marks totals, got {brief(total)}.")
    made: tuple[tuple[str, Any, Callable[[Any], Any]], ...] = (
        ("suppress_below", suppress_below, partial(whole_number, "suppress_below", noun="rows", least=2)),
        ("dominance", dominance, Dominance.from_any),
        ("p_percent", p_percent, PPercent.from_any),
    )
    rules = {rule: make(given) for rule, given, make in made if given is not None}
    if width is not None and not rules:
        raise InputError("width: goes with suppress_below, dominance or p_percent. Add one, or leave it out.")
    whole = value is None and weights is None
    least_width = as_amount("width", width, max(1, rules.get("suppress_below", 2) - 1) if whole else 0)
    if key is None and method in ("random", "cell-key"):
        raise InputError(f"key: method {method!r} draws by a secret key of 32 bytes, and there is none. {MADE_BY}.")
    secret = None if key is None else Key.from_any(key)
    noise = NoiseTable.from_any(p_table) if by_key else None
    request = CellRequest.from_arguments(names, value, weights, method, record, missing)._replace(
        draws=secret.draws(0, STREAM, ROW_KEYS) if by_key and secret else None,
        largest=max(2, rules["dominance"].n if "dominance" in rules else 0) if value is not None else 0,
        totals=totals,
    )
    cells = count_cells(table, request)
    for column, labels in zip(names, cells.labels, strict=True):
        if totals and total in labels:
            raise InputError(
                f"total: column {column!r} has the value {total!r}, which marks totals. Choose another text."
            )
    counted = time.perf_counter()
    values = [[*own, *([total] if totals else [])] for own in cells.labels]
    figures = cells.figures.ravel()
    additivity = Additivity(cells.rows.shape, totals)
    primary, margin = _primary(cells, rules)
    hidden, audit = primary, None
    if rules:
        check_size(int(np.count_nonzero(cells.rows)))
        protection = Protection(least_width, margin, float(whole), whole)
        exact, there = figures.astype(np.float64), cells.rows.ravel() > 0
        for _ in range(MOST_ROUNDS):
            with Reporter() as report:
                report.stage("suppress", int(hidden.sum()), "cells")
                hidden = suppress_more(additivity, exact, hidden, there, protection, report.advance)
                while value is not None and totals and (more := _open_lines(additivity, cells, hidden, margin)).any():
                    hidden = suppress_more(additivity, exact, hidden | more, there, protection, report.advance)
            audit = find_bounds(names, values, additivity, exact, hidden, protection)
            if audit.passes:
                break
        else:
            raise InputError(
                f"suppress_below: cells are still disclosed after {MOST_ROUNDS} rounds of secondary suppression. Name "
                "fewer columns, make them coarser first, or round only."
            )
    published, slack = figures, 0.0
    if noise is not None and cells.keys is not None:
        published, slack = noise.perturb(figures, cells.keys.ravel()), float(noise.most)
    elif base is not None and method == "nearest":
        published, slack = round_nearest(figures, base), base // 2 if whole else base / 2
    elif base is not None:
        # Whole numbers are below the base by at least 1.
        slack = float(base - whole)
        if secret is None:
            published = round_controlled(figures, base, additivity, hidden)
        else:
            published = round_random(figures, base, secret.draws(0, STREAM, ROUNDING).of_values(cells.texts()))
    name = "count" if value is None else "sum"
    while name in map(str, names):
        name += "_"
    shown = make_frame(names, values, np.arange(len(figures)), **{name: _column(published, hidden)})
    return CountTable(
        rows=int(cells.rows.ravel()[-1] if totals else cells.rows.sum()),
        by=names,
        figure=name,
        counts=shown,
        total=total,
        value=value,
        weights=weights,
        method=method if noise is not None or base is not None else "none",
        base=base,
        slack=slack,
        rules={own: rule if isinstance(rule, int) else str(rule) for own, rule in rules.items()},
        primary=int(primary.sum()),
        secondary=int(hidden.sum() - primary.sum()),
        totals_suppressed=int((hidden & mask_totals(cells.rows.shape)).sum()) if totals else 0,
        mean_change=float(np.abs(published - figures)[~hidden].mean()) if not hidden.all() else 0.0,
        one_cell_lines=0 if value is not None else _one_cell_lines(hidden | (published != 0), cells),
        audit=audit,
        key=None if secret is None else secret.digest,
        seconds={"count": counted - started, "protect": time.perf_counter() - counted},
    )


def _primary(cells: Cells, rules: Mapping[str, Any]) -> tuple[Mask, Floats]:
    """Return a mask of the cells that the rules suppress, and the margin that the bounds of each cell have to keep."""
    rows, sums = cells.rows.ravel(), cells.figures.ravel()
    primary, margin = np.zeros(len(rows), np.bool_), np.zeros(len(rows))
    if "suppress_below" in rules:
        primary = (rows > 0) & (rows < rules["suppress_below"])
        if cells.units is not None:
            margin[primary] = SAFETY * sums[primary]
    for rule in (rules[name] for name in ("dominance", "p_percent") if name in rules):
        assert cells.largest is not None
        own = rule.margin(sums, cells.largest.reshape(len(rows), -1) * cells.unit)
        # Sums of floats are exact up to rounding: what is above a limit by less is at the limit.
        unsafe = (own > 1e-12 * np.maximum(1.0, sums)) & (rows > 0)
        primary |= unsafe
        margin[unsafe] = np.maximum(margin, own)[unsafe]
    return primary, margin


def _open_lines(totals: Additivity, cells: Cells, hidden: Mask, margin: Floats) -> Mask:
    """Return a mask of one more cell for each line in which a contributor can compute or estimate another's sum.

    A line is a total and the cells that add up to it. Who is alone in a suppressed cell knows its sum. So beside any
    other suppressed cell there have to be further ones, whose sums are its margin or more if the total is published.
    """
    more = np.zeros_like(hidden)
    rows, sums = cells.rows.ravel(), cells.figures.ravel()
    for line in np.split(totals.matrix.indices, totals.matrix.indptr[1:-1]):
        total = line.max()
        inside = line[hidden[line]]
        alone = inside[rows[inside] == 1]
        # Who is alone in the whole line learns nothing of others.
        if not len(alone) or len(inside) < 2 or rows[total] == 1 or more[line].any():
            continue
        # The sum of all other suppressed cells has to be at least the margin of each, for each cell of one contributor.
        needs = sums[inside] + margin[inside] * (not hidden[total])
        *_, next_to, most = np.argsort(needs)
        lacks = (sums[alone] + needs[np.where(alone == inside[most], next_to, most)]).max() - sums[inside].sum()
        if len(inside) > 2 and (hidden[total] or lacks <= 1e-9 * sums[total]):
            continue
        spare = line[~hidden[line] & (rows[line] > 0)]
        # The smallest sum that suffices, else the largest; the total if there is no other.
        more[min(spare, key=lambda cell: (cell == total, sums[cell] < lacks, abs(sums[cell] - lacks)))] = True
    return more


def _one_cell_lines(occupied: Mask, cells: Cells) -> int:
    """Return how many rows and columns of a table have all their people in one of two or more cells.

    occupied: whether each cell is published as suppressed or above 0. Suppressed counts are above 0.
    """
    inner = [np.moveaxis(occupied.reshape(cells.rows.shape), axis, 0) for axis in range(cells.rows.ndim)]
    inner = [own[: len(own) - cells.totals] for own in inner]
    return sum(int((own.sum(axis=0) == 1).sum()) for own in inner if len(own) > 1)


def _column(figures: npt.NDArray[Any], hidden: Mask) -> Any:
    """Return the published figures, missing where suppressed: Int64 for counts, else float64."""
    import pandas as pd

    if figures.dtype.kind == "f":
        return pd.Series(np.where(hidden, np.nan, figures))
    # Files and pickles hold what is below the mask too.
    return pd.Series(pd.arrays.IntegerArray(np.where(hidden, 0, figures).astype(np.int64), hidden.copy()))
