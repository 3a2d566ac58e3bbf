"""Why no treatment meets criteria: which of them, and which column stands in the way."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NoReturn

from ..attack.any_known import AnyKnown
from ..criteria.counted import CountedTable
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..criteria.quantities import OfScores
from ..errors import InputError, UnreachableError
from ..utils.display import as_cell, plural
from .checks import Checks
from .levels import ColumnLevels
from .search import Outcome, Search


def refuse_no_plan(
    found: Outcome,
    search: Search,
    checks: Checks,
    levels: Sequence[ColumnLevels],
    criteria: CriterionSet,
    table: CountedTable,
) -> NoReturn:
    """Raise UnreachableError, or InputError for a search that was ended before, where a search found no node."""
    top = tuple(one.height for one in levels)
    failing = [value for value in checks.values_of_all_rows(top) if not value.is_met]
    listed = " ".join(_said(value, criteria, table) for value in failing)
    checked = f"{search.checked:,} {plural(search.checked, 'check')}"
    if not found.complete:
        said = f"no treatment was found that meets the criteria, in {checked}."
        advice = (
            f"time_limit: {said} Raise it, or relax a criterion."
            if search.is_over
            else f"criteria: {said} There are too many nodes to look at all. Relax a criterion, or give fewer "
            "levels in "
            "hierarchies=."
        )
        raise InputError(f"{advice} {listed}".rstrip())
    if not failing:
        listed = f"Together they are not met at any node, in {checked}."
    raise UnreachableError(f"criteria: no treatment meets them. {listed}")


def _said(value: CriterionValue, criteria: CriterionSet, table: CountedTable) -> str:
    """Why a criterion is not met with all columns at their top."""
    criterion = value.criterion
    known = criteria.known(criterion)
    names: Sequence[Hashable] = list(known.pool or ()) if isinstance(known, AnyKnown) else known
    fixed = [name for name in names if name not in criteria.quasi_identifiers and name != value.column]
    came = "not defined" if value.value is None else as_cell(value.value)
    said = f"{str(criterion)!r} is not even met with each quasi-identifier at its top level, where it is {came}"
    of_values = not (isinstance(criterion.quantity, OfScores) and criterion.quantity.is_of_size)
    if of_values and value.column is not None and value.column not in criteria.quasi_identifiers:
        return (
            f"{said} in column {value.column!r}, which stands in the way: it is sensitive and stays as it is, with "
            f"{_distribution(value.column, table)}. Relax the criterion, or make the column coarser before."
        )
    if fixed:
        named = ", ".join(map(repr, fixed))
        return (
            f"{said}: column {named} {'stands' if len(fixed) == 1 else 'stand'} in the way, which the attacker knows "
            "and which stays as it is. Name it in quasi_identifiers=, or relax the criterion."
        )
    return f"{said}: the table has {table.rows:,} {plural(table.rows, 'row')}. Relax the criterion."


def _distribution(name: Hashable, table: CountedTable) -> str:
    """How the values of a column are distributed, in words."""
    column = table.columns[table.place(name)]
    most = int(column.counts.argmax())
    share = int(column.counts[most]) / table.rows
    value = column.values([most])[0]
    shown = "missing values" if value is None else repr(value)
    several = f"{column.cardinality:,} different {plural(column.cardinality, 'value')}"
    return f"{several}, {shown} in {100 * share:.3g} % of the rows"
