"""Local recoding: rows of classes that break a criterion are recoded to coarser levels than other rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...criteria.class_criteria import ORIGINAL, ClassCriteria, suppress_in_turns
from ...criteria.counted_table import CountedTable
from ...engines.choose import choose_engine, requested_device
from ...errors import InputError
from ...hierarchies.hierarchy import Hierarchy, hierarchy_with_level
from ...rows.keys import code_type
from ...rows.threads import Workers
from ...utils.validation import brief, check_exist
from ..coded_columns import CodedColumn, as_text, relabeled, table_column
from ..field_checks import not_empty, whole
from ..steps import Chunk, RowFacts, Step
from ..suppression.scored_condition import COLUMN_BYTES, ROW_BYTES, columns_of_attackers, distances_of
from ..suppression.suppress import check_learnt, check_of_classes, check_way, columns_of_criteria, criteria_of
from ..treatment import Tools, TreatedTable, Treatment

WAYS = ("k", "require")
WITH_REQUIRE = ("sensitive", "distances", "attackers", "weights", "missing", "reference")


@dataclass(frozen=True)
class RecodeRows(Treatment):
    """Recode each row at the first of several nodes at which its equivalence class meets criteria.

    Give exactly one of ``k`` and ``require``.

    levels: dictionary by column, the quasi-identifiers. A list of the levels of the column's hierarchy in the plan, one
        level for each node, in the order in which the nodes are tried. All lists have the same length.
    k: the fewest rows of an equivalence class.
    require: criteria on each equivalence class, as in `SuppressRows`.
    sensitive, distances, attackers, weights: with require, as in `SuppressRows`. The quasi-identifiers are the columns
        of `levels`. Other columns that attackers know stay as they are.
    missing: the reading of missing values, as in `SuppressRows`. With "wildcard" a row with a missing value also
        matches rows of other nodes: ``k`` still holds then, other criteria need not.
    reference: with require, the rows with which classes are compared, as in `SuppressRows`. "released": the rows that
        are not removed. Default None: "released".
    remove: True: rows whose class breaks a criterion at every node are removed. False: these rows stay, at the last
        node. Default False.

    At the first node, all rows are counted. Rows of classes that break a criterion go on to the next node. There only
    these rows are counted, so that each class has rows that were recoded alike, and meets the criteria. Classes are
    compared with the same rows at every node. If rows are removed, all nodes are tried again without them, until no row
    is. With several attackers, rows go on in turns as in
    `SuppressRows`: the rows of a node meet the criteria among themselves, whoever the attacker is. Classes of several
    nodes join if their groups have the same names in all columns that the attacker knows. Classes that join meet every
    criterion that each of them meets, except ``delta``: a value that one of them lacks may become too rare. A missing
    value is a value of its own, except at the top of a hierarchy, where all cells are one group.

    Columns that have a level above 0 at any node become texts. The rows have to fit into memory as codes.

    Raises InputError for lists of different lengths, for a level that a hierarchy lacks, for a value that has no place
    in a hierarchy, for a criterion that is not on each class, and for a table that does not fit into memory.

    Local recoding: Prasser, Eicher, Bild, Spengler & Kuhn 2017, A tool for optimizing de-identified health data.
    """

    do: ClassVar[str] = "recode_rows"

    levels: Mapping[Hashable, Sequence[int]]
    k: Annotated[int | None, whole("rows")] = None
    require: Sequence[str] | str | None = None
    sensitive: Annotated[Sequence[Hashable] | None, not_empty] = None
    distances: Mapping[Hashable, Any] | None = None
    attackers: Mapping[str, Any] | None = None
    weights: Hashable | None = None
    missing: Literal["category", "wildcard"] | None = None
    reference: Literal["released", "original"] | None = None
    remove: bool = False

    def check(self) -> None:
        super().check()
        if check_way(self, WAYS, {"k": ("missing",), "require": WITH_REQUIRE}) == "require":
            check_of_classes(self.require, self.attackers)
            check_learnt(self.require, self.sensitive)
        check_exist("distances", self.distances or {}, self.sensitive or (), "sensitive=")
        lengths = {name: len(own) for name, own in self.levels.items()}
        if not lengths or not min(lengths.values()):
            raise InputError(
                "recode_rows: levels: expected a list of levels by column, such as {'age': [0, 1, 2]}, got "
                f"{brief(self.levels)}."
            )
        first, number = next(iter(lengths.items()))
        for name, length in lengths.items():
            if length != number:
                raise InputError(
                    f"recode_rows: levels: column {name!r} has {length:,} levels, and column {first!r} has {number:,}. "
                    "Give one level of each column for each node."
                )

    def check_hierarchies(self, hierarchies: Mapping[Hashable, Hierarchy]) -> None:
        for name, own in self.levels.items():
            for level in own:
                if level:
                    hierarchy_with_level(hierarchies, name, level)

    def named(self) -> Sequence[Hashable]:
        """Return the columns that the table must have: the columns of `levels`, and all that the criteria need."""
        return columns_of_criteria(self, self.levels)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names = list(self.levels)
        criteria = criteria_of(self, names, table)
        attackers = ClassCriteria.by_attacker(criteria)
        distances, _ = distances_of(criteria, attackers, table)
        needed = list(dict.fromkeys([*names, *columns_of_attackers(attackers)]))
        columns = dict(zip(needed, table.codes(needed, ROW_BYTES + COLUMN_BYTES * len(needed)), strict=True))
        nodes, rows = len(self.levels[names[0]]), len(columns[names[0]].codes)
        same = [table_column(name, columns[name]) for name in needed if name not in names]
        # Classes are compared with the sensitive attributes of these rows, at every node.
        whole = CountedTable(same, np.ones(rows, np.int64), rows)
        engine = choose_engine(requested_device(lambda: len(needed) * rows))

        def at_node(node: int, rows: npt.NDArray[np.int64], whole: CountedTable, place: npt.NDArray[np.int64]) -> Any:
            """Return some rows of a table, at `place` of `whole`, with the groups of a node."""
            some = whole.some(place)
            recoded = list(some.columns)
            for name in names:
                own = CodedColumn(columns[name].codes[rows], columns[name].labels)
                groups = _groups(own.labels, name, self.levels[name][node], tools.hierarchies)
                recoded.append(table_column(name, relabeled(own, *groups)))
            return replace(some, columns=recoded)

        with Workers() as workers:
            released, chosen = np.arange(rows), np.full(rows, nodes, np.int64)
            while True:
                left = np.arange(len(released))
                chosen[released] = nodes
                for node in range(nodes if len(left) else 0):
                    counted = at_node(node, released[left], whole, left)
                    failing, _ = suppress_in_turns(attackers, counted, distances, engine, workers, ORIGINAL)
                    chosen[released[left[~failing]]] = node
                    left = left[failing]
                    if not len(left):
                        break
                again = self.remove and self.reference != ORIGINAL and any(own.compares for own in attackers)
                if not again or not len(left) or len(left) == len(released):
                    break
                released = np.flatnonzero(chosen < nodes)
                whole = CountedTable(same, np.ones(rows, np.int64), rows).kept(chosen < nodes)
        recoded_rows = np.bincount(chosen, minlength=nodes + 1).tolist()
        chosen[chosen == nodes] = -1 if self.remove else nodes - 1
        changing = [name for name in names if any(self.levels[name])]
        record = {"rows_by_node": recoded_rows[:nodes], "rows_of_failing_classes": recoded_rows[nodes]}
        return RecodeRowsStep(
            table.facts_of({"0": chosen}),
            {name: self.levels[name] for name in changing},
            tools.hierarchies,
            writes=changing,
            removes_rows=self.remove,
            record=record,
            revealing=list(record),
        )


@dataclass(frozen=True)
class RecodeRowsStep(Step):
    """The prepared `RecodeRows`.

    facts: integers (rows,), named "0": the node of each row, -1 for rows that are removed.
    levels: by column that changes, its level at each node. hierarchies: by column.
    """

    facts: RowFacts
    levels: Mapping[Hashable, Sequence[int]]
    hierarchies: Mapping[Hashable, Hierarchy]

    def apply(self, chunk: Chunk) -> None:
        node = np.asarray(self.facts.read(chunk)["0"], np.int64)
        kept = node >= 0
        node = np.maximum(node, 0)
        for name, levels in self.levels.items():
            column = chunk[name]
            # The labels of all nodes, one after the other; each node has a label for missing values, too.
            labels = pa.concat_arrays(
                [_with_missing(*_groups(column.labels, name, level, self.hierarchies)) for level in levels]
            )
            codes = node * (len(column.labels) + 1) + column.codes
            chunk[name] = relabeled(CodedColumn(codes.astype(code_type(len(labels) + 1)), labels[:0]), labels)
        if self.removes_rows:
            chunk.keep_rows(kept)


def _groups(
    labels: pa.Array, name: Hashable, level: int, hierarchies: Mapping[Hashable, Any]
) -> tuple[pa.Array, str | None]:
    """Return the text of each label at a level, and the text of missing values, None if they stay missing."""
    if not level:
        texts = pa.array([], pa.string()) if pa.types.is_null(labels.type) else as_text(labels).cast(pa.string())
        return texts, None
    hierarchy = hierarchy_with_level(hierarchies, name, level)
    root = hierarchy.root if level == hierarchy.height else None
    return (hierarchy.groups(labels, level) if len(labels) else pa.array([], pa.string())).cast(pa.string()), root


def _with_missing(labels: pa.Array, missing: str | None) -> pa.Array:
    return pa.concat_arrays([labels, pa.array([missing], pa.string())])
