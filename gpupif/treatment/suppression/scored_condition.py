"""Conditions on scores of a table as treated so far: what is scored for one, and of which cells and rows it holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...attack.any_known import FOLDS, AnyKnown
from ...attack.arguments import Arguments, Knowledge, as_attackers, as_known
from ...errors import InputError
from ...measures import MEASURES, is_measure, suggest_measure
from ...results.cell_condition import Condition, parse_condition
from ...results.cell_selection import Selection
from ...results.score_outputs import ScoredAttacker, ScoreView
from ...utils.validation import as_list, check_exist
from ..steps import RowFacts
from ..treatment import TreatedTable

Arrays = Mapping[str, npt.NDArray[Any]]


def check_condition(where: Any, attackers: Any) -> None:
    """Raise InputError for what is no condition on scores, whatever the table."""
    _measures(parse_condition(where), list(as_attackers(attackers) or ()))


def cells_where(
    where: str,
    table: TreatedTable,
    columns: Sequence[Hashable],
    known: Knowledge,
    attackers: Mapping[str, Knowledge] | None,
    weights: Hashable,
    missing: str,
    together: bool = False,
) -> RowFacts:
    """The cells of some columns for which a condition holds: facts named as their places, of rows that are booleans.

    known: None for all columns of the table, but that of weights; any few are of these, where it does not say among
    which. together: one fact, "0", whether it holds of any cell
    of the row. Others as of `gpupif.score`.
    """
    check_exist("columns", columns, table.names)
    condition = parse_condition(where)
    every = [name for name in table.names if name != weights]
    if attackers is None:
        known = _of_columns(known, every)
    else:
        attackers = {name: _of_columns(one, every) for name, one in attackers.items()}
    arguments = Arguments.of(
        _measures(condition, list(attackers or ())),
        columns,
        known=known,
        attackers=attackers,
        weights=weights,
        missing=missing,
    )
    return table.scores(arguments, _holding(condition, where, arguments, table, columns, together))


def _of_columns(known: Knowledge, columns: Sequence[Hashable]) -> Knowledge:
    """What an attacker knows; where nothing else is said all these columns, or any few of them."""
    asked = as_known("known", known)
    if isinstance(asked, AnyKnown):
        return asked if asked.pool is not None else replace(asked, among=columns)
    return columns if asked is None else asked


def _holding(
    condition: Condition,
    where: str,
    arguments: Arguments,
    table: TreatedTable,
    columns: Sequence[Hashable],
    together: bool,
) -> Callable[[Arrays], Arrays]:
    """What makes facts of scores."""
    request = arguments.make_request(table.names)
    each = request.by_attacker().items()
    view = ScoreView(
        request.measures,
        tuple(ScoredAttacker(name, tuple(one.known), one.subsets(table.rows)) for name, one in each),
        request.dtype,
    )
    named = view.by_name()
    Selection(where, condition=condition).check([measure.name for measure in view.measures], list(named))

    def make(scores: Arrays) -> Arrays:
        held = condition.holds(
            lambda name: named[name].of(
                {
                    output: np.stack([scores[f"{output}_{column}"] for column in columns])
                    for output in named[name].outputs
                }
            )
        )
        return {"0": np.asarray(held.any(axis=0))} if together else {str(place): one for place, one in enumerate(held)}

    return make


def _measures(condition: Condition, attackers: Sequence[str]) -> list[str]:
    """The measures that the names in a condition are of."""
    return list(dict.fromkeys(_measure_of(name, attackers) for name in condition.names))


def _measure_of(name: str, attackers: Sequence[str]) -> str:
    """The measure that a name of scores is of: by itself, against an attacker, or the worst or mean of several."""
    for prefix in ("", *(f"{attacker}_" for attacker in attackers)):
        for suffix in ("", *(f"_{fold}" for fold in FOLDS)):
            middle = name[len(prefix) : len(name) - len(suffix)]
            if name.startswith(prefix) and name.endswith(suffix) and is_measure(middle):
                return middle
    of_rows = ", ".join(measure.name for measure in MEASURES.values() if measure.is_row_measure)
    raise InputError(
        f"where: expected the name of a measure of cells or rows, got {name!r}.{suggest_measure(name)} Of rows there "
        f"are {of_rows}; of cells csf, cig, pointwise_information and others, which `gpupif measures` lists."
    )


def as_names(argument: str, columns: Any) -> list[Hashable]:
    """A list of names of columns, at least one; raises InputError."""
    names = as_list(argument, columns)
    if not names:
        raise InputError(f"{argument}: expected at least one column, got an empty list.")
    return names
