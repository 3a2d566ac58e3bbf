"""A request of `protect` on a counted table: its criteria, and its columns at each level of their hierarchies."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attack.request import warn_of_unique
from ..criteria.class_criteria import ClassCriteria
from ..criteria.counted_table import CountedTable
from ..criteria.criterion_set import CriterionSet
from ..engines.base import Engine
from ..engines.choose import choose_engine, requested_device
from ..frames.open import table_names
from ..hierarchies.hierarchy import Hierarchy
from ..rows.threads import Workers
from ..utils.display import plural
from .column_levels import ColumnLevels, column_levels, with_proposed
from .identifiers import warn_of_identifiers
from .lattice import Levels
from .node_checks import Suppression
from .request import ProtectRequest
from .treated_risk import with_population


@dataclass(frozen=True)
class CountedRequest:
    """A request on a table whose rows are counted.

    request: the request. table: the table as it was given. counted: its distinct rows over the columns that are used.
    criteria: the criteria on this table. hierarchies: by quasi-identifier, given or proposed.
    levels: of the quasi-identifiers. engine: scores the cells.
    """

    request: ProtectRequest
    table: Any
    counted: CountedTable
    criteria: CriterionSet
    hierarchies: Mapping[Hashable, Hierarchy]
    levels: Sequence[ColumnLevels]
    engine: Engine

    @classmethod
    def from_table(cls, table: Any, request: ProtectRequest) -> CountedRequest:
        """Count the rows of a table. Raises InputError for a request that does not fit the table."""
        names, labels = table_names(table)
        used = request.columns(names, labels)
        counted = CountedTable.from_table(table, used, "quasi_identifiers", request.named_by, request.missing)
        criteria = request.on_table(counted)
        counted = with_population(counted, table, criteria, request.missing)
        hierarchies = with_proposed(request.hierarchies, counted, criteria.quasi_identifiers)
        every = column_levels(counted, hierarchies)
        levels = [column.as_it_is() if column.name in request.strata else column for column in every]
        warn_of_unique([column.column for column in levels], counted.rows, argument="identifiers")
        others, coarser = request.not_named(names, labels)
        warn_of_identifiers(table, others, labels, coarser)
        engine = choose_engine(requested_device(counted.cells))
        return cls(request, table, counted, criteria, hierarchies, levels, engine)

    @property
    def most(self) -> int:
        """The number of rows that may be suppressed."""
        return math.floor(self.request.suppress * self.counted.rows)

    @property
    def suppression(self) -> Suppression | None:
        """The rows that may be suppressed, None for none."""
        attackers = ClassCriteria.by_attacker(self.criteria)
        return Suppression(attackers, self.most, self.request.reference) if self.most else None

    def by_column(self, node: Levels) -> dict[Hashable, int]:
        """Return the levels of a node by column."""
        return {column.name: level for column, level in zip(self.levels, node, strict=True)}

    def small_stratum(self) -> str:
        """Return a sentence on the smallest stratum if it has fewer rows than k; "" if none has."""
        strata, k = self.request.strata, ClassCriteria.from_set(self.criteria).k
        if not strata or self.request.missing == "wildcard":
            return ""
        with Workers() as workers:
            sizes = np.asarray(self.counted.class_sizes(strata, workers))
        row = int(sizes.argmin())
        if sizes[row] >= k:
            return ""
        columns = [self.counted.columns[self.counted.place(name)] for name in strata]
        named = ", ".join(f"{column.name!r} {column.values([int(column.codes[row])])[0]!r}" for column in columns)
        return (
            f"The stratum of {named} has {int(sizes[row]):,} {plural(int(sizes[row]), 'row')}, fewer than k={k:,}. "
            "Make strata larger, ask for a lower k, or let more rows be suppressed."
        )
