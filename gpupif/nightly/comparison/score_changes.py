"""The changes of kept scores from one run to another: cells whose risk rose most, and rows that became unique.

A row of one run is that of the other by the digest of its key, or by its place. Both tables are cut by that into
partitions, so that the same rows are in partitions of the same number; one partition of each run fits into memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import ipc

from ...errors import TableReadError, reason_of
from ...io.file_errors import disk_errors
from ...io.ipc_batches import BatchWriter
from ...io.temporary_folder import temporary_folder
from ...measures import Measure, as_risk, find_measure
from ...results.cell_condition import parse_condition
from ...results.cell_table import COLUMN, ROW, VALUE
from ...results.provenance import read_description
from ...results.score_outputs import ScoreView, outputs_of
from ..record.kept_scores import KEY_FILE, SCORE_FILE, Manifest
from ..record.row_keys import READ_ROWS, RowKeys, values_of

# The memory of a partition of both tables, about; and the most partitions that a table is cut into.
PARTITION_BYTES = 1 << 26
MOST_PARTITIONS = 512
# Rows that are partitioned at once.
CHUNK_ROWS = 1 << 18
# The measures that are 1 for a unique row.
UNIQUE_MEASURES = ("unique", "class_size")
IDENTITY, UNIQUE, SCORE = "identity", "is_unique", "score"

Numbers = npt.NDArray[Any]


@dataclass(frozen=True)
class CellChange:
    """A cell whose risk rose. row: its place in the later table, from 0. key, value: None if they are not shown."""

    row: int
    column: str
    before: float
    after: float
    key: dict[str, str | None] | None = None
    value: str | None = None


@dataclass(frozen=True)
class NewlyUnique:
    """Rows that are unique in the later run, and were not in the earlier one: how many, and the first of them."""

    count: int
    rows: Sequence[int]
    keys: Sequence[dict[str, str | None]] | None = None


@dataclass(frozen=True)
class ScoreChanges:
    """The changes of scores.

    measure: name of the measure. by: "row key" or "place", by which rows are the same. compared, rose, fell: cells that
    both runs kept. came, went: cells (rows, if all scores are kept) that only one run has. cells: the cells whose risk
    rose most. newly_unique: None if that cannot be said.
    """

    measure: str
    by: str
    compared: int
    rose: int
    fell: int
    came: int
    went: int
    cells: Sequence[CellChange]
    newly_unique: NewlyUnique | None


class Side(NamedTuple):
    """The kept scores of one run."""

    folder: Path
    manifest: Manifest

    @property
    def file(self) -> Path:
        """The file of the scores."""
        return self.folder / SCORE_FILE

    @property
    def keys(self) -> Path:
        """The file of the row keys."""
        return self.folder / KEY_FILE


def why_not(before: Side, after: Side) -> str | None:
    """Return why kept scores of two runs cannot be compared, and the setting that it takes; None if they can."""
    a, b = before.manifest, after.manifest
    if a.kind != b.kind:
        return f"Run {a.run} kept {_kinds(a)}, run {b.run} {_kinds(b)}: they take the same keep.scores."
    if not set(a.measures) & set(b.measures):
        return "They have no measure in common: they take one in score.measures that stays."
    if (a.secret is None) != (b.secret is None):
        lacking = a.run if a.secret is None else b.run
        return f"Run {lacking} kept no row key: rows are the same only by input.row_key of both."
    if a.secret != b.secret:
        return "Their row keys were made with different secrets: the file of it was lost in between."
    return None


def _kinds(manifest: Manifest) -> str:
    return "all scores" if manifest.kind == "all" else f"cells where {manifest.where}"


def compare(
    before: Side, after: Side, most: int, temp: Path | None = None, show_values: bool = False
) -> tuple[ScoreChanges, list[str]]:
    """Return the changes of kept scores between two runs, and a sentence for each change that cannot be said.

    `why_not` has to be None. most: how many cells and rows are listed. temp: the folder of temporary files.
    show_values: list values and keys. Raises TableReadError if files are damaged, OutputError if there is no room for
    temporary files.
    """
    try:
        measure = find_measure(_shared(before, after))
        unique, missing = _unique_measure(before, after)
        sides = [_Reader(side, measure, unique) for side in (before, after)]
        columns = [name for name in sides[1].columns if name in sides[0].columns]
        changes = _Changes(measure, most, before.manifest.kind == "all", columns)
        with contextlib.ExitStack() as closing:
            number = max(1, min(MOST_PARTITIONS, -(-sum(side.bytes(columns) for side in sides) // PARTITION_BYTES)))
            partitions = [_partitions(side.tables(columns), number, temp, closing) for side in sides]
            for place in range(number):
                changes.add(*(read(place) for read in partitions))
        if before.manifest.kind == "cells" and (changes.came or changes.went):
            alone = changes.came + changes.went
            missing.append(
                f"{alone:,} cells are kept of one run alone, the other one has no score for them: "
                'keep.scores = "all" says how much they rose.'
            )
        return changes.result(after, before.manifest.secret is not None, unique is not None, show_values), missing
    except (pa.ArrowException, KeyError, FileNotFoundError) as error:
        folders = f"{before.folder} or {after.folder}"
        raise TableReadError(
            f"{folders}: a file of kept scores is damaged or gone ({reason_of(error)}). `gpupif nightly verify` says "
            "which."
        ) from error


def _shared(before: Side, after: Side) -> str:
    """Return the measure to compare by: CIG, or else the first one of both runs."""
    both = [name for name in after.manifest.measures if name in before.manifest.measures]
    return "cig" if "cig" in both else both[0]


def _unique_measure(before: Side, after: Side) -> tuple[str | None, list[str]]:
    """Return the measure that says which rows are unique; None if there is none, and a sentence with the setting."""
    manifests = [side.manifest for side in (before, after)]
    both = [name for name in UNIQUE_MEASURES if all(name in manifest.measures for manifest in manifests)]
    if not both:
        return None, ['Which rows became unique takes "unique" in score.measures of both runs.']
    for name in both:
        if all(manifest.kind == "all" or _keeps_unique(manifest.where, name) for manifest in manifests):
            return name, []
    return None, [
        'Which rows became unique takes keep.scores = "all", or keep.where of both runs such that it holds of all '
        f"cells of unique rows, such as '{both[0]} {'>=' if both[0] == 'unique' else '<='} 1'."
    ]


def _keeps_unique(where: str | None, measure: str) -> bool:
    """Return whether a condition holds for all cells of unique rows, whatever their other scores are."""
    if where is None:
        return True
    # No comparison holds for NaN, and there is no "not": if the condition holds here, it holds for any other scores.
    known = parse_condition(where).holds(lambda name: np.array([1.0 if name == measure else np.nan]))
    return bool(known[0])


class _Reader:
    """The kept scores of one run as tables: identity of the row, its place, whether it is unique, and scores.

    If all scores are kept there is a table row for each row, with the scores of each column; if cells are kept there is
    one for each cell, with column and score. Raises TableReadError for a file that gpupif did not write.
    """

    def __init__(self, side: Side, measure: Measure, unique: str | None) -> None:
        description = read_description(side.file)
        if description is None:
            raise TableReadError(f"{side.file}: expected scores that gpupif wrote, which say what they are of.")
        attackers = tuple(outcome.attacker for outcome in description.outcomes)
        view = ScoreView(description.about.measures, attackers, description.about.dtype)
        self._side = side
        self._whole = side.manifest.kind == "all"
        # The worst score over attackers.
        self._score = view.score(measure)
        self._unique = None if unique is None else view.score(find_measure(unique))
        self._outputs = outputs_of([self._score, *([] if self._unique is None else [self._unique])])
        self.columns = [str(name) for name in description.about.columns]

    def bytes(self, columns: Sequence[str]) -> int:
        """Return the memory that the tables take, about, in bytes."""
        rows: int = pq.read_metadata(self._side.file).num_rows
        return rows * (48 + 8 * (len(columns) if self._whole else 4))

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the tables. columns: the scored columns of both runs."""
        with contextlib.ExitStack() as closing:
            keys = None
            if self._side.manifest.secret is not None:
                keys = closing.enter_context(RowKeys(self._side.keys))
            file = closing.enter_context(pq.ParquetFile(self._side.file))
            for rows, unique, scores in (
                self._all_scores(file, columns) if self._whole else self._cells_of(file, columns)
            ):
                identity = pa.array(rows) if keys is None else keys.digests(rows)
                yield pa.table({IDENTITY: identity, ROW: rows, UNIQUE: unique, **scores})

    def _all_scores(
        self, file: pq.ParquetFile, columns: Sequence[str]
    ) -> Iterator[tuple[Numbers, Numbers, dict[str, Any]]]:
        names = {output: [f"{output}_{column}" for column in columns] for output in self._outputs}
        start = 0
        for batch in file.iter_batches(READ_ROWS, columns=[name for several in names.values() for name in several]):
            rows = np.arange(start, start + len(batch))
            arrays = {output: np.stack([_numbers(batch, name) for name in names[output]]) for output in names}
            unique = self._is_unique(arrays, rows)
            yield rows, unique, {str(place): scores for place, scores in enumerate(self._score.compute(arrays))}
            start += len(rows)

    def _cells_of(
        self, file: pq.ParquetFile, columns: Sequence[str]
    ) -> Iterator[tuple[Numbers, Numbers, dict[str, Any]]]:
        places = pa.array(columns, pa.string())
        names = [ROW, COLUMN, *self._outputs]
        # A table for a file without cells, too.
        nothing = pa.RecordBatch.from_pylist([], pa.schema([file.schema_arrow.field(name) for name in names]))
        for found in chain([nothing], file.iter_batches(READ_ROWS, columns=names)):
            target = pc.index_in(found.column(COLUMN), value_set=places)
            batch = found.filter(target.is_valid())
            arrays = {output: _numbers(batch, output)[None] for output in self._outputs}
            rows = _numbers(batch, ROW)
            yield (
                rows,
                self._is_unique(arrays, rows),
                {COLUMN: target.drop_null(), SCORE: self._score.compute(arrays)[0]},
            )

    def _is_unique(self, arrays: Mapping[str, Numbers], rows: Numbers) -> Numbers:
        """Return whether rows are unique by any of their cells, arrays (columns, rows); False if that is not known."""
        found: Numbers = (
            np.zeros(len(rows), bool) if self._unique is None else (self._unique.compute(arrays) == 1).any(0)
        )
        return found


def _numbers(batch: pa.RecordBatch, name: str) -> Numbers:
    """Return a column of a file."""
    found: Numbers = batch.column(name).to_numpy(zero_copy_only=False)
    return found


def _partitions(
    tables: Iterator[pa.Table], number: int, temp: Path | None, closing: contextlib.ExitStack
) -> Callable[[int], pa.Table]:
    """Partition tables by identity, and return a function that reads a partition.

    A single partition stays in memory, several go to files.
    """
    if number == 1:
        whole = pa.concat_tables(list(tables))
        return lambda _: whole
    folder = closing.enter_context(temporary_folder(temp))
    files = [folder / f"partition-{place}.arrow" for place in range(number)]
    with contextlib.ExitStack() as writing:
        writers: list[BatchWriter] = []
        for table in _large_chunks(tables):
            if not writers:
                schema = {field.name: field.type for field in table.schema}
                writers = [writing.enter_context(BatchWriter(file, schema)) for file in files]
            partition = _partition_of(table.column(IDENTITY), number)
            columns = table.take(pa.array(np.argsort(partition, kind="stable"))).combine_chunks().columns
            edges = np.cumsum([0, *np.bincount(partition, minlength=number)]).tolist()
            for writer, (start, stop) in zip(writers, pairwise(edges), strict=True):
                if start < stop:
                    writer.write([column.chunk(0).slice(start, stop - start) for column in columns])
    return lambda place: _read(files[place])


def _large_chunks(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the tables, several joined to one, so that each partition gets many rows at once."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= CHUNK_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _read(file: Path) -> pa.Table:
    with disk_errors(file), pa.OSFile(str(file)) as source:
        return ipc.open_file(source).read_all()


def _partition_of(identity: pa.ChunkedArray, number: int) -> Numbers:
    """Return the partition of each row, by its place or by the first bytes of its digest."""
    plain = identity.combine_chunks()
    if pa.types.is_integer(plain.type):
        places: Numbers = plain.to_numpy() // READ_ROWS % number
        return places
    words = np.frombuffer(plain.buffers()[1], np.uint64)[2 * plain.offset :: 2][: len(plain)]
    return (words % np.uint64(number)).astype(np.int64)


class _Changes:
    """The changes that were found in the partitions so far."""

    def __init__(self, measure: Measure, most: int, whole: bool, columns: Sequence[str]) -> None:
        self._measure, self._most, self._whole, self._columns = measure, most, whole, columns
        self.compared = self.rose = self.fell = self.came = self.went = 0
        self._cells: list[tuple[float, int, int, float, float]] = []
        self._uniques = 0
        self._unique_rows: list[int] = []

    def add(self, before: pa.Table, after: pa.Table) -> None:
        """Compare a partition of both runs."""
        self._look_for_uniques(before, after)
        match = pc.index_in(self._identity(after), value_set=self._identity(before))
        shared = np.flatnonzero(match.is_valid().to_numpy(zero_copy_only=False))
        self.came += len(after) - len(shared)
        self.went += len(before) - len(shared)
        after, before = after.take(pa.array(shared)), before.take(match.drop_null())
        rows = after.column(ROW).to_numpy()
        if self._whole:
            for place in range(len(self._columns)):
                self._compare(rows, np.full(len(rows), place), before.column(str(place)), after.column(str(place)))
        else:
            self._compare(rows, after.column(COLUMN).to_numpy(), before.column(SCORE), after.column(SCORE))

    def _identity(self, table: pa.Table) -> pa.Array:
        """Return the identity of each table row: of the row, or for cells of the row and the column."""
        identity = table.column(IDENTITY).combine_chunks()
        if self._whole:
            return identity
        column = table.column(COLUMN).to_numpy().astype(np.int64)
        if pa.types.is_integer(identity.type):
            return pa.array(identity.to_numpy() * len(self._columns) + column)
        size = identity.type.byte_width
        words = np.frombuffer(identity.buffers()[1], np.uint8)[identity.offset * size :][: len(identity) * size]
        both = np.concatenate([words.reshape(-1, size), column.view(np.uint8).reshape(-1, 8)], axis=1)
        content = pa.py_buffer(np.ascontiguousarray(both))
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(size + 8), len(identity), [None, content])

    def _compare(self, rows: Numbers, columns: Numbers, before: pa.ChunkedArray, after: pa.ChunkedArray) -> None:
        """Compare cells. columns: their places among the scored columns."""
        scores = [np.asarray(one.to_numpy(), np.float64) for one in (before, after)]
        risks = [as_risk(self._measure, one) for one in scores]
        with np.errstate(invalid="ignore"):
            rise = risks[1] - risks[0]
        self.compared += len(rise)
        self.rose += int(np.count_nonzero(rise > 0))
        self.fell += int(np.count_nonzero(rise < 0))
        found = np.flatnonzero(rise > 0)
        if len(found) > self._most:
            least = np.partition(rise[found], -self._most)[-self._most]
            found = found[rise[found] >= least]
        # The highest rise first; of equal ones the earlier row, then the earlier column.
        first = found[np.lexsort((columns[found], rows[found], -rise[found]))][: self._most]
        several = zip(-rise[first], rows[first], columns[first], scores[0][first], scores[1][first], strict=True)
        self._cells += [(float(a), int(b), int(c), float(d), float(e)) for a, b, c, d, e in several]
        self._cells = sorted(self._cells)[: self._most]

    def _look_for_uniques(self, before: pa.Table, after: pa.Table) -> None:
        own = after.filter(after.column(UNIQUE))
        past = before.filter(before.column(UNIQUE)).column(IDENTITY).combine_chunks()
        new = own.filter(pc.invert(pc.is_in(own.column(IDENTITY), value_set=past)))
        rows = np.unique(new.column(ROW).to_numpy())
        self._uniques += len(rows)
        self._unique_rows = sorted([*self._unique_rows, *rows[: self._most].tolist()])[: self._most]

    def result(self, after: Side, keyed: bool, unique: bool, show_values: bool) -> ScoreChanges:
        """Return all changes. keyed: whether rows have keys. unique: whether it is known which rows are unique."""
        cells = [CellChange(row, self._columns[column], before, then) for _, row, column, before, then in self._cells]
        newly = NewlyUnique(self._uniques, self._unique_rows)
        if show_values:
            listed = {*self._unique_rows, *(cell.row for cell in cells)}
            keys = values_of(after.keys, listed) if keyed else {}
            values = {} if self._whole else _values(after.file, cells)
            cells = [replace(cell, key=keys.get(cell.row), value=values.get((cell.row, cell.column))) for cell in cells]
            newly = replace(newly, keys=[keys.get(row, {}) for row in newly.rows] if keyed else None)
        return ScoreChanges(
            self._measure.name,
            "row key" if keyed else "place",
            *(self.compared, self.rose, self.fell, self.came, self.went),
            cells,
            newly if unique else None,
        )


def _values(file: Path, cells: Sequence[CellChange]) -> dict[tuple[int, str], str | None]:
    """Return the values of cells, by row and column, as a file of cells has them."""
    dataset = ds.dataset(str(file), format="parquet")
    if VALUE not in dataset.schema.names:
        return {}
    rows = pc.field(ROW).isin([cell.row for cell in cells])
    found = dataset.to_table(columns=[ROW, COLUMN, VALUE], filter=rows).to_pylist()
    return {(one[ROW], one[COLUMN]): one[VALUE] for one in found}
