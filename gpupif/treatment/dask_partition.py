"""Tasks of a partition of a Dask frame: treat it, and say what is in it then."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.merge import ColumnMerger, ValueCounts
from ..encoding.plain_values import family, plain_labels
from ..errors import ColumnTypeError
from ..frames.base import Frame
from ..frames.open import open_frame
from ..frames.replacement import Replacement
from ..pipeline.task_resources import task_threads
from ..utils.config import config
from .coded_columns import CodedColumn, coded_column, counts_of
from .steps import Chunk, RowFacts, Step, StepCounts

# Rows of a partition that show of which types the values of its columns are.
FIRST_ROWS = 1 << 10


class DaskFacts(RowFacts):
    """Facts by partition. Only their key goes to tasks; the facts of the task's partition go with it."""

    def __init__(self, parts: Sequence[Mapping[str, npt.NDArray[Any]]], key: str = "") -> None:
        self.key = key or uuid.uuid4().hex
        self.parts = parts

    def __reduce__(self) -> Any:
        return DaskFacts, ([], self.key)

    def read(self, chunk: Chunk) -> Mapping[str, npt.NDArray[Any]]:
        # A chunk without rows, which shows types, may be of no partition.
        arrays = chunk.facts[self.key] if self.key in chunk.facts else self.parts[0]
        return {name: array[: chunk.rows] for name, array in arrays.items()}


class Place(NamedTuple):
    """What a task has to know of its partition: the row at which it begins before each step, and its facts by key."""

    starts: Sequence[int]
    facts: Mapping[str, Mapping[str, npt.NDArray[Any]]]


class TreatedPartition(NamedTuple):
    """A partition after some steps. before: as it came."""

    chunk: Chunk
    counts: list[StepCounts]
    before: Frame


@dataclass(frozen=True)
class PartitionSteps:
    """Steps for partitions with the columns `names`. left: the columns that there are afterwards.

    types: of the values of columns in the whole table, for partitions in which such a column has no value.
    """

    applied: Sequence[tuple[Step, str]]
    names: Sequence[Hashable]
    left: Sequence[Hashable]
    types: Mapping[Hashable, pa.DataType]

    def run(self, partition: Any, place: Place, counted: bool = False) -> TreatedPartition:
        """Treat a partition. counted: count what each step does."""
        frame = open_frame(partition)
        chunk = Chunk(self.names, frame.rows, lambda name: column_of_frame(frame, name, self.types), place.facts)
        counts = [StepCounts() for _ in self.applied]
        with frame.active(), config(threads=task_threads()):
            for (step, said), start, own in zip(self.applied, place.starts, counts, strict=True):
                chunk.apply(step, start, said, own if counted else None)
        return TreatedPartition(chunk, counts, frame)


def column_of_frame(frame: Frame, name: Hashable, types: Mapping[Hashable, pa.DataType]) -> CodedColumn:
    """Return a column of a frame, of a type in `types` if it has no value; a frame without rows may have another."""
    column = coded_column(name, frame.column(frame.names.index(name)) if frame.rows else pd.Series(dtype=object))
    if pa.types.is_null(column.labels.type) and name in types:
        return CodedColumn(column.codes, pa.array([], types[name]))
    return column


def rows_in(steps: PartitionSteps, *given: Any) -> int:
    """Return how many rows a partition has after steps."""
    return steps.run(*given).chunk.rows


def first_rows_of(partition: Any) -> tuple[int, Any]:
    """Return how many rows a partition has, and the first of them, which show the types of its columns."""
    return len(partition), partition.iloc[:FIRST_ROWS]


def values_in(
    names: Sequence[Hashable], needed: Hashable, steps: PartitionSteps, *given: Any
) -> list[ValueCounts | None]:
    """The values of columns in a partition; of one but `needed` that cannot be compared none."""
    treated = steps.run(*given)
    found: list[ValueCounts | None] = []
    for name in names:
        try:
            column = treated.chunk[name]
        except ColumnTypeError:
            if name == needed:
                raise
            found.append(None)
            continue
        counts = counts_of(column)
        used = counts[:-1] > 0
        found.append(ValueCounts(column.labels.filter(pa.array(used)), counts[:-1][used], int(counts[-1])))
    return found


def kept_in(steps: PartitionSteps, partition: Any, *given: Any) -> npt.NDArray[np.bool_]:
    """Return by row of a partition whether it is still there."""
    return steps.run(partition, *given).chunk.kept_rows(len(partition))


def facts_of_scores(make: Callable[..., Any], scores: Any) -> dict[str, npt.NDArray[Any]]:
    """What is made of the scores of a partition."""
    scores = scores.to_pandas() if hasattr(scores, "to_pandas") else scores
    arrays = {str(name): scores.iloc[:, place].to_numpy() for place, name in enumerate(scores.columns)}
    return {name: np.asarray(array) for name, array in make(arrays).items()}


def plain_frame(
    kinds: Mapping[Hashable, pa.DataType], steps: PartitionSteps, partition: Any, *given: Any
) -> pd.DataFrame:
    """A treated partition with values as steps see them, in Arrow's types."""
    treated = steps.run(partition, *given)
    partition = partition.to_pandas() if hasattr(partition, "to_pandas") else partition
    kept = treated.chunk.kept
    left = partition if kept is None else partition[kept]
    series = {}
    for number, name in enumerate(steps.left):
        column = left.iloc[:, list(steps.names).index(name)]
        if name in kinds:
            values = _decoded(treated.chunk[name], kinds[name])
            column = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([values])), index=left.index)
        series[number] = column
    frame = pd.DataFrame(series, index=left.index)
    frame.columns = left.columns.take([list(steps.names).index(name) for name in steps.left])
    return frame


def _decoded(column: CodedColumn, kind: pa.DataType) -> pa.Array:
    if not len(column.labels):
        return pa.nulls(len(column.codes), kind)
    missing = column.codes == len(column.labels)
    return plain_labels(column.labels).cast(kind).take(pa.array(column.codes, mask=missing))


class PartitionEnds(NamedTuple):
    """What steps did, and by column what is in it then: labels, as many as say of which type it will be, whether any is
    missing; kinds: types of values before and after; orders: of categories that there were. categories: as they came,
    all that there were, and those that rows have which are left.
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
    """Return what a partition is in the end, and how it came to be that.

    watched: columns that steps may change. categorical: columns of categories, and left: those that stay.
    """
    partition, place = given
    treated = steps.run(partition, place, counted=True)
    found = PartitionEnds(treated.counts, {}, {}, {}, {}, {})
    with treated.before.active():
        rows = treated.before.replaced(left, {}, treated.chunk.kept)
    for name in left:
        # A partition without rows may have a column of another type.
        if hasattr(partition[name].dtype, "categories"):
            found.categories[name] = _categories(partition[name]), _categories(rows[name])
    orders = treated.before.orders()
    for name in watched:
        column = treated.chunk[name]
        before = treated.chunk.types_before[name]
        counts = counts_of(column)
        labels = column.labels.filter(pa.array(counts[:-1] > 0))
        text = family(labels.type) == "text" and (name in categorical or family(before) != "text")
        if not text and name not in categorical and len(labels):
            labels = _bounds(labels)
        found.labels[name], found.missing[name] = labels, bool(counts[-1])
        found.kinds[name] = before, labels.type
        if name in orders:
            found.orders[name] = orders[name]
    return found


def _categories(column: Any) -> pd.Index[Any]:
    categories: Any = column.dtype.categories
    found: pd.Index[Any] = categories.to_pandas() if hasattr(categories, "to_pandas") else categories
    return found


def _bounds(labels: pa.Array) -> pa.Array:
    """The lowest and highest of numbers, the first of other values."""
    if family(labels.type) != "whole":
        return labels[:1]
    bounds = pc.min_max(labels)
    return pa.array([bounds["min"], bounds["max"]], labels.type).unique()


def total_ends(watched: Sequence[Hashable], *parts: PartitionEnds) -> PartitionEnds:
    """Of partitions that follow each other."""
    counts = [StepCounts() for _ in parts[0].counts]
    for part in parts:
        for own, more in zip(counts, part.counts, strict=True):
            own.add(more.changed, more.rows_removed)
    found = PartitionEnds(counts, {}, {}, {}, {}, {})
    for name in watched:
        merger = ColumnMerger(name)
        for part in parts:
            labels = part.labels[name]
            merger.add(ValueCounts(labels, np.zeros(len(labels), np.int64), 0))
        merger.flush()
        found.labels[name] = merger.values.labels
        found.missing[name] = any(part.missing[name] for part in parts)
        kinds = [part.kinds[name] for part in parts]
        found.kinds[name] = _known(one for one, _ in kinds), _known(one for _, one in kinds)
    for part in reversed(parts):
        found.orders.update(part.orders)
    for name in dict.fromkeys(name for part in parts for name in part.categories):
        every, used = zip(*(part.categories[name] for part in parts if name in part.categories), strict=True)
        found.categories[name] = every[0].append(list(every[1:])).unique(), used[0].append(list(used[1:])).unique()
    return found


def _known(kinds: Any) -> pa.DataType:
    """The first type that is not that of nothing."""
    several = list(kinds)
    return next((one for one in several if not pa.types.is_null(one)), several[0])


def treated_frame(
    columns: Mapping[Hashable, Any],
    left_alone: Mapping[Hashable, Any],
    steps: PartitionSteps,
    partition: Any,
    *given: Any,
) -> Any:
    """Return a treated partition, of the kind that came in.

    columns: the types of those that steps changed. left_alone: the types of columns of categories that none did.
    """
    treated = steps.run(partition, *given)
    replaced = {}
    for name in columns:
        column = treated.chunk[name]
        before = treated.chunk.types_before[name]
        replaced[name] = Replacement(column.codes, column.labels, before)
    with treated.before.active():
        frame = treated.before.replaced(steps.left, replaced, treated.chunk.kept)
        for name, kind in {**columns, **left_alone}.items():
            place = list(steps.left).index(name)
            if frame.dtypes.iloc[place] != kind:
                column = frame.iloc[:, place]
                # What has no value may be of a type that no value can be brought from.
                absent = [None] * len(column) if column.isna().all() else column
                frame.isetitem(place, type(column)(absent, index=column.index, dtype=kind))
    return frame
