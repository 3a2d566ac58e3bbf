"""The public `tables`: counts or sums of combinations of values, protected for publication, and audited."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..marginals.request import CountRequest
from ..treatment.plan_run import warn_of_readers
from ..treatment.random.key import MADE_BY, Key
from ..utils.progress import Reporter
from ..utils.validation import Columns, as_columns, brief, check_word, is_number, whole_number
from .cell_keys import NoiseTable
from .cells import CellRequest, Cells, count_cells
from .linear import Additivity, Floats, Mask, need_scipy
from .magnitude import Dominance, PPercent
from .rounding import round_controlled, round_nearest, round_random
from .suppression import Protection, suppress_more
from .table_audit import check_size, find_bounds
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
        For "cell-key": the columns that identify a row. Default: all columns, the whole content of the row.
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
        decided on exact figures, so that it holds for readers who undo the rounding. It does not consider readers who
        know their own contribution. Noise by cell keys is not differential privacy.

    Raises
    ------
    InputError
        No rows, unknown columns, an argument out of range or without what it goes with, more than a million cells
        (20,000 with suppression), no controlled rounding, a value that is missing or below 0, SciPy missing.
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
    rules = _rules(suppress_below, dominance, p_percent, value)
    _check_together(method, base, value, weights, record_id, p_table, key, width, rules)
    secret = _secret(key, method) if method == "cell-key" or (base and method == "random") else None
    noise = NoiseTable.from_any(p_table) if method == "cell-key" else None
    record = None if record_id is None else as_columns("record_id", record_id, table)
    request = _cell_request(names, value, weights, method, record, missing)._replace(
        draws=secret.draws(0, STREAM, ROW_KEYS) if noise and secret else None,
        largest=max(2, rules["dominance"].n if "dominance" in rules else 0) if value is not None else 0,
        totals=totals,
    )
    cells = count_cells(table, request)
    _check_total(cells, total)
    counted = time.perf_counter()
    values = [[*own, *([total] if totals else [])] for own in cells.labels]
    figures = cells.figures.ravel()
    additivity = Additivity(cells.rows.shape, totals)
    primary, margin = _primary(cells, rules)
    hidden, audit = primary, None
    if rules:
        check_size(cells.rows.shape)
        need_scipy("suppress_below")
        whole = cells.units is None
        usual = max(1, rules.get("suppress_below", 2) - 1) if whole else 0
        least_width = float(usual if width is None else width)
        protection = Protection(least_width, margin, 1.0 if whole else 0.0, whole)
        exact = figures.astype(np.float64)
        for _ in range(MOST_ROUNDS):
            if audit is not None and audit.passes:
                break
            with Reporter() as report:
                report.stage("suppress", int(hidden.sum()), "cells")
                there = cells.rows.ravel() > 0
                hidden = suppress_more(additivity, exact, hidden, there, protection, report.advance)
            audit = find_bounds(names, values, additivity, exact, hidden, protection)
        if audit is not None and not audit.passes:
            raise InputError(
                f"suppress_below: {audit.disclosed:,} cells are still disclosed after {MOST_ROUNDS} rounds of "
                "secondary suppression. Name fewer columns, make them coarser first, or round only."
            )
    published, slack = figures, 0.0
    if noise is not None:
        assert cells.keys is not None
        published, slack = noise.perturb(figures, cells.keys.ravel()), float(noise.most)
    elif base is not None:
        published = _rounded(figures, base, method, cells, secret, additivity, hidden)
        # Whole numbers are below the base by at least 1, and rounded to the nearest by at most half of it.
        slack = (
            float(base - (cells.units is None))
            if method != "nearest"
            else base // 2
            if cells.units is None
            else base / 2
        )
    name = _free_name("count" if value is None else "sum", names)
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
        totals_suppressed=int((hidden & cells.is_total().ravel()).sum()),
        mean_change=float(np.abs(published - figures)[~hidden].mean()) if not hidden.all() else 0.0,
        one_cell_lines=0 if value is not None else _one_cell_lines(hidden | (published != 0), cells),
        audit=audit,
        key=None if secret is None else secret.digest,
        seconds={"count": counted - started, "protect": time.perf_counter() - counted},
    )


def _cell_request(
    by: Sequence[Hashable], value: Hashable, weights: Hashable, method: str, record: Any, missing: str
) -> CellRequest:
    """Return the columns that make a table. record: columns that identify a row; None for all columns."""
    amount, argument = (weights, "weights") if value is None else (value, "value")
    return CellRequest(by, amount, argument, record if method == "cell-key" else (), missing=missing)


def request_columns(
    by: Sequence[Hashable],
    *,
    value: Hashable = None,
    weights: Hashable = None,
    method: str = "nearest",
    record_id: Sequence[Hashable] | None = None,
    missing: str = "category",
) -> CountRequest:
    """Return the columns that `tables` reads with these arguments."""
    return _cell_request(by, value, weights, method, record_id, missing).columns()


def _rules(suppress_below: Any, dominance: Any, p_percent: Any, value: Hashable) -> dict[str, Any]:
    """Return the rules of primary suppression by name. Raises InputError for a wrong one."""
    rules: dict[str, Any] = {}
    if suppress_below is not None:
        rules["suppress_below"] = whole_number("suppress_below", suppress_below, "rows", least=2)
    for name, given, rule in (("dominance", dominance, Dominance), ("p_percent", p_percent, PPercent)):
        if given is not None:
            if value is None:
                raise InputError(f"{name}: is a rule for sums. Name the column to sum by value=, or leave it out.")
            rules[name] = rule.from_any(given)
    return rules


def _check_together(
    method: str,
    base: int | None,
    value: Hashable,
    weights: Hashable,
    record_id: Any,
    p_table: Any,
    key: Any,
    width: Any,
    rules: Mapping[str, Any],
) -> None:
    """Raise InputError for arguments that do not go together."""
    if value is not None and weights is not None:
        raise InputError("weights: sums of value= take no weights. Sum a column of value times weight instead.")
    if method == "cell-key":
        if base is not None:
            raise InputError("round: cell keys draw noise in place of rounding. Leave it out, or take another method.")
        if value is not None or weights is not None:
            named = "weights" if value is None else "value"
            raise InputError(f"{named}: cell keys are for counts of rows. Leave it out, or take another method.")
    elif method != "nearest" and base is None:
        raise InputError(f"method: {method!r} needs a base. Give it by round=, such as 3.")
    for name, given in (("record_id", record_id), ("p_table", p_table)):
        if given is not None and method != "cell-key":
            raise InputError(f"{name}: goes with method='cell-key'. Add that, or leave it out.")
    if key is not None and method not in ("random", "cell-key"):
        raise InputError("key: goes with method='random' or 'cell-key'. Add one, or leave it out.")
    if width is not None:
        if not rules:
            raise InputError("width: goes with suppress_below, dominance or p_percent. Add one, or leave it out.")
        if not (is_number(width) and 0 <= width < np.inf):
            raise InputError(f"width: expected a number of 0 or more, got {brief(width)}.")


def _secret(key: Any, method: str) -> Key:
    """Return the secret key. Raises InputError if there is none, and warns of one that others may read."""
    if key is None:
        raise InputError(f"key: method {method!r} draws by a secret key of 32 bytes, and there is none. {MADE_BY}.")
    if isinstance(key, str | os.PathLike):
        warn_of_readers(Path(key))
    return Key.from_any(key)


def _check_total(cells: Cells, total: Any) -> None:
    """Raise InputError if the text that marks totals is no text, or is a value of the table."""
    if not isinstance(total, str) or not total:
        raise InputError(f"total: expected a text that marks totals, got {brief(total)}.")
    for name, labels in zip(cells.by, cells.labels, strict=True):
        if cells.totals and total in labels:
            raise InputError(
                f"total: column {name!r} has the value {total!r}, which marks totals. Choose another text."
            )


def _primary(cells: Cells, rules: Mapping[str, Any]) -> tuple[Mask, Floats]:
    """Return a mask of the cells that the rules suppress, and the margin that the bounds of each cell have to keep."""
    rows, sums = cells.rows.ravel(), cells.figures.ravel()
    primary, margin = np.zeros(len(rows), np.bool_), np.zeros(len(rows))
    if "suppress_below" in rules:
        primary = (rows > 0) & (rows < rules["suppress_below"])
        if cells.units is not None:
            margin[primary] = SAFETY * sums[primary]
    largest = cells.largest.reshape(len(rows), -1) * cells.unit
    for rule in (rules[name] for name in ("dominance", "p_percent") if name in rules):
        own = rule.margin(sums, largest)
        # Sums of floats are exact up to rounding: what is above a limit by less is at the limit.
        unsafe = (own > 1e-12 * np.maximum(1.0, sums)) & (rows > 0)
        primary |= unsafe
        margin[unsafe] = np.maximum(margin, own)[unsafe]
    return primary, margin


def _one_cell_lines(occupied: Mask, cells: Cells) -> int:
    """Return how many rows and columns of a table have all their people in one of two or more cells.

    occupied: whether each cell is published as suppressed or above 0. Suppressed counts are above 0.
    """
    inner = [np.moveaxis(occupied.reshape(cells.rows.shape), axis, 0) for axis in range(cells.rows.ndim)]
    inner = [own[: len(own) - cells.totals] for own in inner]
    return sum(int((own.sum(axis=0) == 1).sum()) for own in inner if len(own) > 1)


def _rounded(
    figures: npt.NDArray[Any],
    base: int,
    method: str,
    cells: Cells,
    secret: Key | None,
    totals: Additivity,
    hidden: Mask,
) -> npt.NDArray[Any]:
    """Return all figures rounded; those of suppressed cells have no meaning."""
    if method == "nearest":
        return round_nearest(figures, base)
    if method == "controlled":
        return round_controlled(figures, base, totals, hidden)
    assert secret is not None
    return round_random(figures, base, secret.draws(0, STREAM, ROUNDING).of_values(cells.texts()))


def _free_name(name: str, taken: Sequence[Hashable]) -> str:
    """Return a name, with as many underscores behind it that no column has it."""
    while name in map(str, taken):
        name += "_"
    return name


def _column(figures: npt.NDArray[Any], hidden: Mask) -> Any:
    """Return the published figures, missing where suppressed: Int64 for counts, else float64."""
    import pandas as pd

    if figures.dtype.kind == "f":
        return pd.Series(np.where(hidden, np.nan, figures))
    # Files and pickles hold what is below the mask too.
    return pd.Series(pd.arrays.IntegerArray(np.where(hidden, 0, figures).astype(np.int64), hidden.copy()))
