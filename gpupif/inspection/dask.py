"""The facts of the columns of a Dask frame: workers count the values of each partition, and merge the counts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd

from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..encoding.merge import ValueCounts, total_values
from ..errors import ColumnTypeError, InputError
from ..frames.dask_frame import check_dask_frame
from ..frames.open import open_frame
from ..marginals.request import CountRequest
from ..utils.progress import Reporter
from .column_facts import ColumnFacts, column_values, facts_of


class PartitionValues(NamedTuple):
    """The number of rows of one partition or several neighbours, and their values.

    values: by column; None if values of the column cannot be compared.
    """

    rows: int
    values: Sequence[ValueCounts | None]


def facts_on_dask(table: Any, request: CountRequest, report: Reporter) -> dict[Hashable, ColumnFacts]:
    """Return the facts of the columns of a Dask frame. Raises InputError, DeviceError."""
    check_dask_frame(table)
    every = list(table.columns)
    names = tuple(request.chosen(every))
    graph = Graph()
    partitions = graph.take(table if list(names) == every else table[list(names)])
    values = graph.each("values", partition_values, names, partitions)
    whole = graph.tree("merge", partial(add_values, names), values)
    facts: Sequence[ColumnFacts] = compute(graph.value(graph.one("facts", find_facts, whole)), report)
    if facts[0].rows == 0:
        raise InputError(f"table: expected at least one row, got none (columns: {', '.join(map(str, every))}).")
    return dict(zip(names, facts, strict=True))


def partition_values(names: Sequence[Hashable], partition: Any) -> PartitionValues:
    """Return the values of these columns in a partition."""
    frame = open_frame(partition)
    with frame.active():
        # A partition without rows may have another type, so its columns are replaced.
        columns = [frame.column(frame.names.index(name)) if frame.rows else pd.Series(dtype=object) for name in names]
        return PartitionValues(frame.rows, list(map(column_values, names, columns)))


def add_values(names: Sequence[Hashable], *parts: PartitionValues) -> PartitionValues:
    """Return the values of several neighbouring partitions together."""
    together = [_total(name, [part.values[place] for part in parts]) for place, name in enumerate(names)]
    return PartitionValues(sum(part.rows for part in parts), together)


def _total(name: Hashable, parts: Sequence[ValueCounts | None]) -> ValueCounts | None:
    """Return the values of one column over several partitions; None if they cannot be compared."""
    comparable = [part for part in parts if part is not None]
    if len(comparable) < len(parts):
        return None
    try:
        return total_values(name, comparable)
    except ColumnTypeError:
        return None


def find_facts(whole: PartitionValues) -> list[ColumnFacts]:
    """Return the facts of each column."""
    return [facts_of(values, whole.rows) for values in whole.values]
