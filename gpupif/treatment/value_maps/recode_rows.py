"""Local recoding: rows of small equivalence classes are recoded to coarser levels than other rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa

from ...errors import InputError
from ...hierarchies.hierarchy import Hierarchy, hierarchy_with_level
from ...rows.keys import code_type
from ...rows.threads import Workers
from ...utils.validation import brief
from ..coded_columns import CodedColumn, as_text, relabeled
from ..field_checks import whole
from ..steps import Chunk, RowFacts, Step
from ..suppression.grouping import KeyedRows
from ..treatment import Tools, TreatedTable, Treatment

# The bytes of memory for each row, and for each cell, while classes are counted.
ROW_BYTES, COLUMN_BYTES = 40, 16


@dataclass(frozen=True)
class RecodeRows(Treatment):
    """Recode each row at the first of several nodes at which its equivalence class has at least k rows.

    levels: dictionary by column, the quasi-identifiers. A list of the levels of the column's hierarchy in the plan, one
        level for each node, in the order in which the nodes are tried. All lists have the same length.
    k: the fewest rows of an equivalence class.

    At the first node, all rows are counted. Rows of classes with fewer than k rows go on to the next node. There only
    these rows are counted, so that each class has at least k rows that were recoded alike. Values of different levels
    do not match, unless their groups have the same name: then classes join and only grow. Rows that are in small
    classes at every node stay at the last node: `SuppressRows` with the same k removes them. A missing value is a value
    of its own, except at the top of a hierarchy, where all cells are one group.

    Columns that have a level above 0 at any node become texts. The rows have to fit into memory as codes.

    Raises InputError for lists of different lengths, for a level that a hierarchy lacks, for a value that has no place
    in a hierarchy, and for a table that does not fit into memory.

    Local recoding: Prasser, Eicher, Bild, Spengler & Kuhn 2017, A tool for optimizing de-identified health data.
    """

    do: ClassVar[str] = "recode_rows"

    levels: Mapping[Hashable, Sequence[int]]
    k: Annotated[int, whole("rows")]

    def check(self) -> None:
        super().check()
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
        """Return the columns that the table must have: the columns of `levels`."""
        return list(self.levels)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names = self.named()
        columns = table.codes(names, ROW_BYTES + COLUMN_BYTES * len(names))
        nodes = len(self.levels[names[0]])
        chosen = np.full(len(columns[0].codes), nodes - 1, np.int64)
        left = np.arange(len(chosen))
        recoded_rows = []
        with Workers() as workers:
            for node in range(nodes):
                at_node = [
                    relabeled(
                        CodedColumn(column.codes[left], column.labels),
                        *_groups(column.labels, name, self.levels[name][node], tools.hierarchies),
                    )
                    for name, column in zip(names, columns, strict=True)
                ]
                large = np.zeros(0, np.bool_)
                if len(left):
                    rows = KeyedRows([own.codes for own in at_node], [len(own.labels) for own in at_node], workers)
                    large = rows.class_sizes(range(len(names))) >= self.k
                chosen[left[large]] = node
                recoded_rows.append(int(np.count_nonzero(large)))
                left = left[~large]
        changing = [name for name in names if any(self.levels[name])]
        record = {"rows_by_node": recoded_rows, "rows_of_small_classes": len(left)}
        return RecodeRowsStep(
            table.facts_of({"0": chosen}),
            {name: self.levels[name] for name in changing},
            tools.hierarchies,
            writes=changing,
            record=record,
            revealing=list(record),
        )


@dataclass(frozen=True)
class RecodeRowsStep(Step):
    """The prepared `RecodeRows`.

    facts: integers (rows,), named "0": the node of each row. levels: by column that changes, its level at each node.
    hierarchies: by column.
    """

    facts: RowFacts
    levels: Mapping[Hashable, Sequence[int]]
    hierarchies: Mapping[Hashable, Hierarchy]

    def apply(self, chunk: Chunk) -> None:
        node = np.asarray(self.facts.read(chunk)["0"], np.int64)
        for name, levels in self.levels.items():
            column = chunk[name]
            # The labels of all nodes, one after the other; each node has a label for missing values, too.
            labels = pa.concat_arrays(
                [_with_missing(*_groups(column.labels, name, level, self.hierarchies)) for level in levels]
            )
            codes = node * (len(column.labels) + 1) + column.codes
            chunk[name] = relabeled(CodedColumn(codes.astype(code_type(len(labels) + 1)), labels[:0]), labels)


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
