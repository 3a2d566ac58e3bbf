"""Local recoding: the rows that are suppressed at the best node are recoded further, in rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ..criteria.class_criteria import ORIGINAL
from ..criteria.counted_table import CountedTable
from .column_levels import ColumnLevels
from .counted_request import CountedRequest
from .lattice import Levels
from .lattice_search import LatticeSearch
from .node_checks import NodeChecks
from .objectives import ColumnObjective, Objective
from .result import RecodedRows

Numbers = npt.NDArray[np.int64]


class EntropyOfRows(ColumnObjective):
    """Non-uniform entropy of some rows of a table, by the groups of the whole table.

    A cell loses log2(N' / N) bits: N rows of the whole table have its value, and N' rows have its group. Suppressed
    rows lose all bits, as at the top.

    rows_by_value: by axis, how many of the rows have each value.
    """

    name, unit = "entropy of rows", "bits"
    source = "non-uniform entropy, Gionis & Tassa 2009"

    def __init__(
        self,
        levels: Sequence[ColumnLevels],
        importance: Mapping[Hashable, float],
        checks: NodeChecks,
        rows_by_value: Sequence[Numbers],
    ) -> None:
        super().__init__(levels, importance, [], int(rows_by_value[0].sum()), checks, True)
        self.rows_by_value = rows_by_value

    def _cost(self, axis: int, level: int, hidden: Numbers | None) -> float:
        bits = _bits_lost(self.levels[axis], level, self.rows_by_value[axis])
        if hidden is not None:
            groups = self.levels[axis].levels[level].counts
            bits += _bits(hidden, groups, np.full(len(groups), groups.sum()))
        return self.importance[axis] * bits


def recode_further(
    asked: CountedRequest, node: Levels, search_of: Callable[[NodeChecks, Objective], LatticeSearch]
) -> tuple[list[RecodedRows], bool]:
    """Recode rows that are suppressed at the best node further, and return the rounds, and whether all are complete.

    In each round all nodes are searched with the rows that are left, of which at least one has to be in a class that
    meets the criteria. The node is taken with which these rows lose the least bits, rows that are in other classes
    losing all. Rows in other classes are left for the next round. The rounds end if no row is left, if no row is in a
    class that meets the criteria at any node, or if the search is over.

    node: the best node. search_of: returns the search for the node that costs least. Classes are compared with the
    whole table, as hardly a row is suppressed in the end. Groups are as large as in the whole table.
    """
    counted, rounds, complete = asked.counted, list[RecodedRows](), True
    if asked.suppression is None:
        return rounds, complete
    suppression = asked.suppression._replace(reference=ORIGINAL)
    with NodeChecks(counted, asked.levels, asked.criteria, asked.engine, suppression) as checks:
        left = np.flatnonzero(~checks.kept_rows(node))
    while len(left):
        table = counted.some(left)
        rows = int(table.multiplicities.sum())
        with NodeChecks(
            table, asked.levels, asked.criteria, asked.engine, suppression._replace(most=rows - 1)
        ) as checks:
            by_value = _rows_by_value(table, asked.levels)
            found = search_of(checks, EntropyOfRows(asked.levels, asked.request.importance, checks, by_value)).run()
            complete &= found.complete
            if found.node is None:
                break
            kept = checks.kept_rows(found.node)
            by_value = _rows_by_value(table.some(kept), asked.levels)
            rounds.append(
                RecodedRows(
                    asked.by_column(found.node),
                    int(table.multiplicities[kept].sum()),
                    math.fsum(map(_bits_lost, asked.levels, found.node, by_value)),
                    [checks.values[found.node][criterion] for criterion in suppression.criteria],
                )
            )
        left = left[~kept]
    return rounds, complete


def _rows_by_value(table: CountedTable, levels: Sequence[ColumnLevels]) -> list[Numbers]:
    """Return by axis how many of the rows have each value."""
    columns = [table.columns[table.place(column.name)] for column in levels]
    return [np.bincount(own.codes, table.multiplicities, own.cardinality).astype(np.int64) for own in columns]


def _bits_lost(column: ColumnLevels, level: int, rows: Numbers) -> float:
    """Return the bits that some rows lose at a level of a column. rows: by value."""
    coded = column.levels[level]
    return _bits(rows, column.column.counts, coded.counts[coded.codes])


def _bits(rows: Numbers, before: Numbers, after: Numbers) -> float:
    """Return the bits that rows lose, as groups of `before` rows become groups of `after` rows."""
    return math.fsum((rows * np.log2(after / before)).tolist())
