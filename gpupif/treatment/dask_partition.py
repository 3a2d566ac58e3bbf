"""Tasks for a partition of a Dask frame: treat the partition, and describe its values afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.merge import ColumnMerger, ValueCounts, total_values
from ..encoding.plain_values import family, plain_labels
from ..frames.base import Frame
from ..frames.open import open_frame
from ..frames.replacement import Replacement
from ..pipeline.task_resources import task_threads
from ..utils.config import config
from .coded_columns import CodedColumn, coded_column, counts_of
from .lazy_table import Counted, Steps
from .steps import Chunk, RowFacts, StepCounts

# The first rows of a partition, which show the types of its columns.
FIRST_ROWS = 1 << 10


class DaskFacts(RowFacts):
    """Facts by partition.

    Pickling a `DaskFacts` keeps only its key. The facts of a task's partition are sent with the task, see `Place`.
    """

    def __init__(self, parts: Sequence[Mapping[str, npt.NDArray[Any]]], key: str = "") -> None:
        self.key = key or uuid.uuid4().hex
        self.parts = parts

    def __reduce__(self) -> Any:
        return DaskFacts, ([], self.key)

    def read(self, chunk: Chunk) -> Mapping[str, npt.NDArray[Any]]:
        # A chunk without rows, which only shows types, may belong to no partition.
        arrays = chunk.facts[self.key] if self.key in chunk.facts else self.parts[0]
        return {name: array[: chunk.rows] for name, array in arrays.items()}


class Place(NamedTuple):
    """The place of a partition in the table.

    starts: number of the partition's first row, before each step. facts: facts of the partition, by key.
    """

    starts: Sequence[int]
    facts: Mapping[str, Mapping[str, npt.NDArray[Any]]]


class TreatedPartition(NamedTuple):
    """A partition after steps. chunk: its treated rows. counts: see `TreatedTable`. before: the original partition."""

    chunk: Chunk
    counts: list[StepCounts]
    before: Frame


@dataclass(frozen=True)
class PartitionSteps:
    """The steps for the partitions of a table.

    steps: the steps to apply. names: names of the original columns.
    types: Arrow type by column name, in the whole table. A partition without a value in a column takes its type here.
    """

    steps: Steps
    names: Sequence[Hashable]
    types: Mapping[Hashable, pa.DataType]

    def run(self, partition: Any, place: Place, counted: bool = False) -> TreatedPartition:
        """Treat a partition. counted: whether the changes of each step are counted."""
        frame = open_frame(partition)
        chunk = Chunk(self.names, frame.rows, lambda name: column_of_frame(frame, name, self.types), place.facts)
        counts = [StepCounts() for _ in (*self.steps.applied, None)]
        with frame.active(), config(threads=task_threads()):
            self.steps.run(chunk, [*place.starts, 0], counts=counts if counted else None)
        return TreatedPartition(chunk, counts, frame)


def on_chunk(function: Callable[[Chunk], Any], steps: PartitionSteps, *given: Any) -> Any:
    """Return function(chunk) for a treated partition."""
    return function(steps.run(*given).chunk)


def column_of_frame(frame: Frame, name: Hashable, types: Mapping[Hashable, pa.DataType]) -> CodedColumn:
    """Return a column of a frame, with its type in `types` if no row has a value."""
    column = coded_column(name, frame.column(frame.names.index(name)) if frame.rows else pd.Series(dtype=object))
    if pa.types.is_null(column.labels.type) and name in types:
        return CodedColumn(column.codes, pa.array([], types[name]))
    return column


def first_rows_of(partition: Any) -> tuple[int, Any]:
    """Return the number of rows of a partition, and its first rows, which show the types of columns."""
    return len(partition), partition.iloc[:FIRST_ROWS]


def joined_by_name(*parts: Counted) -> Counted:
    """Join the values of columns in consecutive partitions. A column that is absent in a partition stays absent."""
    names = [name for name in parts[0] if all(name in own for own in parts)]
    return {name: total_values(name, [own[name] for own in parts]) for name in names}


def facts_of_scores(make: Callable[..., Any], scores: Any) -> dict[str, npt.NDArray[Any]]:
    """Return the facts that `make` computes from the scores of a partition, see `TreatedTable.scores`."""
    scores = scores.to_pandas() if hasattr(scores, "to_pandas") else scores
    arrays = {str(name): scores.iloc[:, place].to_numpy() for place, name in enumerate(scores.columns)}
    return {name: np.asarray(array) for name, array in make(arrays).items()}


def plain_frame(
    kinds: Mapping[Hashable, pa.DataType], steps: PartitionSteps, partition: Any, *given: Any
) -> pd.DataFrame:
    """Return a treated partition as a pandas DataFrame. kinds: Arrow type by name of the changed columns."""
    treated = steps.run(partition, *given)
    partition = partition.to_pandas() if hasattr(partition, "to_pandas") else partition
    kept = treated.chunk.kept
    left = partition if kept is None else partition[kept]
    series = {}
    for number, name in enumerate(steps.steps.names):
        column = left.iloc[:, list(steps.names).index(name)]
        if name in kinds:
            values = _decoded(treated.chunk[name], kinds[name])
            column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([values])), index=left.index)
        series[number] = column
    frame = pd.DataFrame(series, index=left.index)
    frame.columns = left.columns.take([list(steps.names).index(name) for name in steps.steps.names])
    return frame


def _decoded(column: CodedColumn, kind: pa.DataType) -> pa.Array:
    if not len(column.labels):
        return pa.nulls(len(column.codes), kind)
    missing = column.codes == len(column.labels)
    return plain_labels(column.labels).cast(kind).take(pa.array(column.codes, mask=missing))


class PartitionEnds(NamedTuple):
    """The changes of the steps, and the facts that decide the types of columns in the treated frame.

    counts: see `TreatedTable`.
    labels: by changed column, labels that show its type: all labels of categories, else the extremes or a first value.
    missing: by changed column, whether a value is missing.
    kinds: by changed column, the types of its values before and after the steps.
    orders: by changed column, the order of its original categories, if it has one.
    categories: by column of categories, all original categories, and the categories among the rows that are left.
    """

    counts: list[StepCounts]
    labels: dict[Hashable, pa.Array]
    missing: dict[Hashable, bool]
    kinds: dict[Hashable, tuple[pa.DataType, pa.DataType]]
    orders: dict[Hashable, list[Any]]
    categories: dict[Hashable, tuple[pd.Index[Any], pd.Index[Any]]]


def ends_of(
    watched: Sequence[Hashable],
    categorical: Sequence[Hashable],
    left: Sequence[Hashable],
    steps: PartitionSteps,
    *given: Any,
) -> PartitionEnds:
    """Return the changes of a partition, and the facts about its treated columns, see `PartitionEnds`.

    watched: columns that steps may change. categorical: columns of categories. left: columns of categories that no
    step drops.
    """
    partition, place = given
    treated = steps.run(partition, place, counted=True)
    ends = PartitionEnds(treated.counts, {}, {}, {}, {}, {})
    with treated.before.active():
        rows = treated.before.replaced(left, {}, treated.chunk.kept)
    for name in left:
        # A partition without rows may have a column of another type.
        if hasattr(partition[name].dtype, "categories"):
            ends.categories[name] = _categories(partition[name]), _categories(rows[name])
    orders = treated.before.orders()
    for name in watched:
        column = treated.chunk[name]
        before = treated.chunk.types_before[name]
        counts = counts_of(column)
        labels = column.labels.filter(pa.array(counts[:-1] > 0))
        text = family(labels.type) == "text" and (name in categorical or family(before) != "text")
        if not text and name not in categorical and len(labels):
            labels = _bounds(labels)
        ends.labels[name], ends.missing[name] = labels, bool(counts[-1])
        ends.kinds[name] = before, labels.type
        if name in orders:
            ends.orders[name] = orders[name]
    return ends


def _categories(column: Any) -> pd.Index[Any]:
    categories: Any = column.dtype.categories
    on_host: pd.Index[Any] = categories.to_pandas() if hasattr(categories, "to_pandas") else categories
    return on_host


def _bounds(labels: pa.Array) -> pa.Array:
    """Return the lowest and highest of whole numbers, the first of other values: they decide the column's type."""
    if family(labels.type) != "whole":
        return labels[:1]
    bounds = pc.min_max(labels)
    return pa.array([bounds["min"], bounds["max"]], labels.type).unique()


def total_ends(watched: Sequence[Hashable], *parts: PartitionEnds) -> PartitionEnds:
    """Join the facts about consecutive partitions."""
    counts = [StepCounts() for _ in parts[0].counts]
    for part in parts:
        for own, more in zip(counts, part.counts, strict=True):
            own.add(more.changed, more.rows_removed)
    ends = PartitionEnds(counts, {}, {}, {}, {}, {})
    for name in watched:
        merger = ColumnMerger(name)
        for part in parts:
            labels = part.labels[name]
            merger.add(ValueCounts(labels, np.zeros(len(labels), np.int64), 0))
        merger.flush()
        ends.labels[name] = merger.values.labels
        ends.missing[name] = any(part.missing[name] for part in parts)
        kinds = [part.kinds[name] for part in parts]
        ends.kinds[name] = _first_known(before for before, _ in kinds), _first_known(after for _, after in kinds)
    for part in reversed(parts):
        ends.orders.update(part.orders)
    for name in dict.fromkeys(name for part in parts for name in part.categories):
        every, used = zip(*(part.categories[name] for part in parts if name in part.categories), strict=True)
        ends.categories[name] = every[0].append(list(every[1:])).unique(), used[0].append(list(used[1:])).unique()
    return ends


def _first_known(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """Return the first type that is not null; null if all are."""
    return next((kind for kind in kinds if not pa.types.is_null(kind)), pa.null())


def treated_frame(
    columns: Mapping[Hashable, Any],
    unchanged: Mapping[Hashable, Any],
    steps: PartitionSteps,
    partition: Any,
    *given: Any,
) -> Any:
    """Return a treated partition, of the kind of the original partition.

    columns: type by name of the changed columns. unchanged: type by name of the other columns of categories.
    """
    treated = steps.run(partition, *given)
    replaced = {}
    for name in columns:
        column = treated.chunk[name]
        before = treated.chunk.types_before[name]
        replaced[name] = Replacement(column.codes, column.labels, before)
    with treated.before.active():
        frame = treated.before.replaced(steps.steps.names, replaced, treated.chunk.kept)
        for name, kind in {**columns, **unchanged}.items():
            place = list(steps.steps.names).index(name)
            if frame.dtypes.iloc[place] != kind:
                column = frame.iloc[:, place]
                # A column without a value may have a type that pandas cannot convert.
                absent = [None] * len(column) if column.isna().all() else column
                frame.isetitem(place, type(column)(absent, index=column.index, dtype=kind))
    return frame
