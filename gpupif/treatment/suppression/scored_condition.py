"""Conditions on the scores of a table after the steps so far: the cells and rows for which a condition holds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...attack.arguments import Arguments, Knowledge, as_attackers, as_known
from ...attack.attackers import AGGREGATES, AnyKnown
from ...attack.distances import has_order, make_axis
from ...attack.priors import make_prior
from ...criteria.class_criteria import RELEASED, ClassCriteria, suppress_in_turns
from ...criteria.counted_scores import known_columns
from ...criteria.counted_table import CountedTable
from ...criteria.criterion_set import CriterionSet
from ...encoding.column import Column
from ...engines.choose import choose_engine, requested_device
from ...errors import InputError
from ...measures import MEASURES, find_measure, is_measure, suggest_measure
from ...results.cell_condition import Condition, parse_condition
from ...results.cell_selection import Selection
from ...results.score_outputs import ScoredAttacker, ScoreView
from ...rows.distinct import distinct_rows
from ...rows.keys import KeyLayout
from ...rows.partition import Rows
from ...rows.threads import Workers
from ...utils.validation import check_exist
from ..coded_columns import table_column
from ..steps import RowFacts
from ..treatment import TreatedTable

Arrays = Mapping[str, npt.NDArray[Any]]
# The bytes of memory for each row, and for each cell, while classes are counted.
ROW_BYTES, COLUMN_BYTES = 40, 16


def check_condition(where: Any, attackers: Any) -> None:
    """Raise InputError if a text is no condition on scores, for any table."""
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
    """Return the cells for which a condition holds, as facts: booleans (rows,) by the position of a column, as text.

    where: the condition. columns: names of the columns whose cells are scored.
    known: columns that the attacker knows. None: all columns of the table except the column of sampling weights. Any
        few columns are among these, too, unless `known` says among which.
    together: whether there is a single fact, "0": the condition holds for any cell of the row. Default False.
    attackers, weights, missing: see `gpupif.score`.

    Raises InputError for a condition or for names that do not fit the table.
    """
    check_exist("columns", columns, table.names)
    condition = parse_condition(where)
    every = [name for name in table.names if name != weights]
    if attackers is None:
        known = _with_default(known, every)
    else:
        attackers = {name: _with_default(own, every) for name, own in attackers.items()}
    arguments = Arguments.from_user(
        _measures(condition, list(attackers or ())),
        columns,
        known=known,
        attackers=attackers,
        weights=weights,
        missing=missing,
    )
    return table.scores(arguments, _cell_finder(condition, where, arguments, table, columns, together))


def rows_of_failing_classes(criteria: CriterionSet, table: TreatedTable, reference: str) -> RowFacts:
    """Return the rows of equivalence classes that break a criterion on classes, as facts: booleans (rows,), "0".

    reference: see `class_criteria.suppress_in_turns`. The rows have to fit into memory as codes unless the criteria are
    of one attacker who knows a list of columns, compare no class with the rows that are left, no shares are of weights,
    and a missing value is a value of its own. Raises InputError if they do not fit.
    """
    attackers = ClassCriteria.by_attacker(criteria)
    classes = attackers[0]
    is_counted = len(attackers) > 1 or classes.weights is not None or classes.missing == "wildcard"
    is_counted |= classes.compares and reference == RELEASED
    if is_counted or isinstance(classes.known, AnyKnown) or not classes.known:
        return table.facts_of({"0": _counted_failing(criteria, attackers, table, reference)})
    scored = classes.columns or list(classes.known[:1])
    size = find_measure("class_size")
    distances, longest = distances_of(criteria, attackers, table)
    arguments = Arguments.from_user(
        [size.name, *(measure.name for measure in classes.measures)],
        scored,
        known=list(classes.known),
        distances=distances or None,
    )

    def make(scores: Arrays) -> Arrays:
        sizes = scores[f"{size.name}_{scored[0]}"]
        return {"0": classes.failing(sizes, lambda measure, name: scores[f"{measure.name}_{name}"], longest)}

    return table.scores(arguments, make)


def _counted_failing(
    criteria: CriterionSet, attackers: Sequence[ClassCriteria], table: TreatedTable, reference: str
) -> npt.NDArray[np.bool_]:
    """Return the result of `class_criteria.suppress_in_turns` for the rows of a table."""
    used = columns_of_attackers(attackers)
    # An attacker who knows nothing uses no column: any one has the number of rows.
    names = [name for name in table.names if name in used] or list(table.names[:1])
    distances, _ = distances_of(criteria, attackers, table)
    columns = [
        table_column(name, own)
        for name, own in zip(names, table.codes(names, ROW_BYTES + COLUMN_BYTES * len(names)), strict=True)
    ]
    rows = len(columns[0].codes)
    if not rows:
        return np.zeros(0, bool)
    engine = choose_engine(requested_device(lambda: len(names) * rows))
    with Workers() as workers:
        layout = KeyLayout.from_cardinalities([column.cardinality for column in columns])
        keys = layout.pack([column.codes for column in columns], workers)
        distinct = distinct_rows(Rows(keys, np.ones(rows, np.int64)), rows, workers)
        codes = layout.unpack(distinct.rows.keys)
        columns = [replace(column, codes=own) for column, own in zip(columns, codes, strict=True)]
        counted = CountedTable(columns, distinct.rows.counts.astype(np.int64), rows, is_distinct=True)
        failing, _ = suppress_in_turns(attackers, counted, distances, engine, workers, reference)
        return np.asarray(failing[distinct.number])


def columns_of_attackers(attackers: Sequence[ClassCriteria]) -> list[Hashable]:
    """Return the columns by which rows are judged: known columns, sensitive attributes and weights."""
    used = [name for own in attackers for name in (*known_columns(own.known), *own.columns, own.weights)]
    return [name for name in dict.fromkeys(used) if name is not None]


def distances_of(
    criteria: CriterionSet, attackers: Sequence[ClassCriteria], table: TreatedTable
) -> tuple[dict[Hashable, Any], dict[Hashable, int]]:
    """Return by sensitive attribute its distances, and the longest distance of two values.

    Both are empty if no criterion is on distances. criteria: have the distances that were given.
    """
    distances, longest = dict[Hashable, Any](), dict[Hashable, int]()
    for classes in attackers:
        walks = any(measure.walks for measure in classes.measures)
        for name in [own for own in classes.columns if walks and own not in distances]:
            values = table.values(name)
            missing = bool(values.missing) and classes.missing == "category"
            counts = np.append(values.counts, values.missing) if missing else values.counts
            column = Column(name, np.arange(len(counts)), counts, values.labels, missing)
            # A frame's ordered categories are not known in files: without distances they have no order.
            given = criteria.distances.get(name)
            distances[name] = ("ordered" if has_order(column) else "nominal") if given is None else given
            prior = make_prior(column, None, int(counts.sum()), counts)
            longest[name] = make_axis(column, prior, distances[name]).longest
    return distances, longest


def _with_default(known: Knowledge, columns: Sequence[Hashable]) -> Knowledge:
    """Return the known columns of an attacker; by default all of `columns`, or any few of them."""
    asked = as_known("known", known)
    if isinstance(asked, AnyKnown):
        return asked if asked.pool is not None else replace(asked, among=columns)
    return columns if asked is None else asked


def _cell_finder(
    condition: Condition,
    where: str,
    arguments: Arguments,
    table: TreatedTable,
    columns: Sequence[Hashable],
    together: bool,
) -> Callable[[Arrays], Arrays]:
    """Return a function that computes the facts of `cells_where` from the scores of rows."""
    request = arguments.make_request(table.names)
    each = request.by_attacker().items()
    view = ScoreView(
        request.measures,
        tuple(ScoredAttacker(name, tuple(own.known), own.subsets(table.rows)) for name, own in each),
        request.dtype,
    )
    named = view.by_name()
    Selection(where, condition=condition).check([measure.name for measure in view.measures], list(named))

    def make(scores: Arrays) -> Arrays:
        held = condition.holds(
            lambda name: named[name].compute(
                {
                    output: np.stack([scores[f"{output}_{column}"] for column in columns])
                    for output in named[name].outputs
                }
            )
        )
        return {"0": np.asarray(held.any(axis=0))} if together else {str(place): own for place, own in enumerate(held)}

    return make


def _measures(condition: Condition, attackers: Sequence[str]) -> list[str]:
    """Return the measures that a condition names."""
    return list(dict.fromkeys(_measure_of(name, attackers) for name in condition.names))


def _measure_of(name: str, attackers: Sequence[str]) -> str:
    """Return the measure in a name of scores, perhaps with an attacker before, and with worst or mean after it."""
    for prefix in ("", *(f"{attacker}_" for attacker in attackers)):
        for suffix in ("", *(f"_{aggregate}" for aggregate in AGGREGATES)):
            middle = name[len(prefix) : len(name) - len(suffix)]
            if name.startswith(prefix) and name.endswith(suffix) and is_measure(middle):
                return middle
    of_rows = ", ".join(measure.name for measure in MEASURES.values() if measure.is_row_measure)
    raise InputError(
        f"where: expected the name of a measure of cells or rows, got {name!r}.{suggest_measure(name)} Of rows there "
        f"are {of_rows}; of cells csf, cig, pointwise_information and others, which `gpupif measures` lists."
    )
