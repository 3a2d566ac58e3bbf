"""How kept scores of two runs differ: cells whose risk rose most, and rows that became unique.

Rows are the same by the digest of their key, or by their place. Both tables are cut by that into parts in which equal
rows lie together; a part of both fits into memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
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
from ...results.cell_layout import COLUMN, ROW, VALUE
from ...results.condition import parse_condition
from ...results.outputs import ScoreView, outputs_of
from ...results.provenance import read_description
from ..record.kept import KEY_FILE, SCORE_FILE, Manifest
from ..record.row_keys import READ_ROWS, RowKeys, values_of
from .changes import CellChange, NewlyUnique, ScoreChanges

# Of both tables, what a part takes in memory, about; and into how many parts a table is cut at most.
PART_BYTES = 1 << 26
MOST_PARTS = 512
# Rows that are cut at once.
CUT_ROWS = 1 << 18
# By which measures of a row it is unique, where they are 1.
UNIQUE_MEASURES = ("unique", "class_size")
IDENTITY, UNIQUE, SCORE = "identity", "is_unique", "score"

Numbers = npt.NDArray[Any]


class Side(NamedTuple):
    """Kept scores of one run."""

    folder: Path
    manifest: Manifest

    @property
    def file(self) -> Path:
        """Of the scores."""
        return self.folder / SCORE_FILE

    @property
    def keys(self) -> Path:
        """Of which row is which."""
        return self.folder / KEY_FILE


def why_not(before: Side, after: Side) -> str | None:
    """Why kept scores of two runs cannot be compared, and which setting that takes; None where they can."""
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
    """How kept scores of two runs differ, of which `why_not` says nothing; and what of it cannot be said, and why.

    most: of the cells and rows that are listed. temp: where temporary files go. show_values: list values and keys.
    Raises TableReadError where files are damaged, OutputError where there is no room for temporary files.
    """
    try:
        return _compare(before, after, most, temp, show_values)
    except (pa.ArrowException, KeyError, FileNotFoundError) as error:
        folders = f"{before.folder} or {after.folder}"
        raise TableReadError(
            f"{folders}: a file of kept scores is damaged or gone ({reason_of(error)}). `gpupif nightly verify` says "
            "which."
        ) from error


def _compare(
    before: Side, after: Side, most: int, temp: Path | None, show_values: bool
) -> tuple[ScoreChanges, list[str]]:
    measure = find_measure(_shared(before, after))
    unique, missing = _unique_measure(before, after)
    sides = [_Reader(side, measure, unique) for side in (before, after)]
    columns = [name for name in sides[1].columns if name in sides[0].columns]
    found = _Found(measure, most, before.manifest.kind == "all", columns)
    with contextlib.ExitStack() as closing:
        number = max(1, min(MOST_PARTS, -(-sum(side.bytes(columns) for side in sides) // PART_BYTES)))
        cut = [_cut(side.tables(columns), number, temp, closing) for side in sides]
        for part in range(number):
            found.look(*(tables(part) for tables in cut))
    if before.manifest.kind == "cells" and (found.came or found.went):
        missing.append(
            f"{found.came + found.went:,} cells are kept of one run alone, the other one has no score for them: "
            'keep.scores = "all" says how much they rose.'
        )
    return found.changes(after, before.manifest.secret is not None, unique is not None, show_values), missing


def _shared(before: Side, after: Side) -> str:
    """The measure to compare by: CIG, or else the first of both."""
    both = [name for name in after.manifest.measures if name in before.manifest.measures]
    return "cig" if "cig" in both else both[0]


def _unique_measure(before: Side, after: Side) -> tuple[str | None, list[str]]:
    """The measure that says which rows are unique; None where none does, and which setting it takes."""
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
    """Whether a condition holds of all cells of unique rows, whatever their other scores are."""
    if where is None:
        return True
    # No comparison holds of what is unknown, and there is no "not": what holds so, holds anyway.
    known = parse_condition(where).holds(lambda name: np.array([1.0 if name == measure else np.nan]))
    return bool(known[0])


class _Reader:
    """Kept scores of one run as tables: identity of the row, its place, whether it is unique, and scores.

    Of all scores those of each column, one row for each row; of cells column and score, one row for each cell. Raises
    TableReadError for a file that does not say what it is of.
    """

    def __init__(self, side: Side, measure: Measure, unique: str | None) -> None:
        description = read_description(side.file)
        if description is None:
            raise TableReadError(f"{side.file}: expected scores that gpupif wrote, which say what they are of.")
        attackers = tuple(outcome.attacker for outcome in description.outcomes)
        view = ScoreView(description.about.measures, attackers, description.about.dtype)
        self._side = side
        self._whole = side.manifest.kind == "all"
        # The worst over attackers.
        self._score = view.score(measure)
        self._unique = None if unique is None else view.score(find_measure(unique))
        self._outputs = outputs_of([self._score, *([] if self._unique is None else [self._unique])])
        self.columns = [str(name) for name in description.about.columns]

    def bytes(self, columns: Sequence[str]) -> int:
        """What it takes in memory, about."""
        rows: int = pq.read_metadata(self._side.file).num_rows
        return rows * (48 + 8 * (len(columns) if self._whole else 4))

    def tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The tables; columns: scored ones, of both runs."""
        with contextlib.ExitStack() as closing:
            keys = None
            if self._side.manifest.secret is not None:
                keys = closing.enter_context(RowKeys(self._side.keys))
            file = closing.enter_context(pq.ParquetFile(self._side.file))
            for rows, unique, scores in self._of_all(file, columns) if self._whole else self._of_cells(file, columns):
                identity = pa.array(rows) if keys is None else keys.of(rows)
                yield pa.table({IDENTITY: identity, ROW: rows, UNIQUE: unique, **scores})

    def _of_all(
        self, file: pq.ParquetFile, columns: Sequence[str]
    ) -> Iterator[tuple[Numbers, Numbers, dict[str, Any]]]:
        names = {output: [f"{output}_{column}" for column in columns] for output in self._outputs}
        start = 0
        for batch in file.iter_batches(READ_ROWS, columns=[name for several in names.values() for name in several]):
            rows = np.arange(start, start + len(batch))
            arrays = {output: np.stack([_numbers(batch, name) for name in names[output]]) for output in names}
            unique = self._is_unique(arrays, rows)
            yield rows, unique, {str(place): scores for place, scores in enumerate(self._score.of(arrays))}
            start += len(rows)

    def _of_cells(
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
            yield rows, self._is_unique(arrays, rows), {COLUMN: target.drop_null(), SCORE: self._score.of(arrays)[0]}

    def _is_unique(self, arrays: Mapping[str, Numbers], rows: Numbers) -> Numbers:
        """Whether rows are unique by any of their cells (columns, rows); none where that is not known."""
        found: Numbers = np.zeros(len(rows), bool) if self._unique is None else (self._unique.of(arrays) == 1).any(0)
        return found


def _numbers(batch: pa.RecordBatch, name: str) -> Numbers:
    """A column of a file."""
    found: Numbers = batch.column(name).to_numpy(zero_copy_only=False)
    return found


def _cut(
    tables: Iterator[pa.Table], number: int, temp: Path | None, closing: contextlib.ExitStack
) -> Callable[[int], pa.Table]:
    """Cut tables into parts by identity; what gives a part. A single part stays in memory, several go to files."""
    if number == 1:
        whole = pa.concat_tables(list(tables))
        return lambda _: whole
    folder = closing.enter_context(temporary_folder(temp))
    files = [folder / f"part-{part}.arrow" for part in range(number)]
    with contextlib.ExitStack() as writing:
        writers: list[BatchWriter] = []
        for table in _gathered(tables):
            if not writers:
                schema = {field.name: field.type for field in table.schema}
                writers = [writing.enter_context(BatchWriter(file, schema)) for file in files]
            part = _parts_of(table.column(IDENTITY), number)
            columns = table.take(pa.array(np.argsort(part, kind="stable"))).combine_chunks().columns
            edges = np.cumsum([0, *np.bincount(part, minlength=number)]).tolist()
            for writer, (start, stop) in zip(writers, pairwise(edges), strict=True):
                if start < stop:
                    writer.write([column.chunk(0).slice(start, stop - start) for column in columns])
    return lambda part: _read(files[part])


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The tables, some in one, so that each part gets many rows at once."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= CUT_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _read(file: Path) -> pa.Table:
    with disk_errors(file), pa.OSFile(str(file)) as source:
        return ipc.open_file(source).read_all()


def _parts_of(identity: pa.ChunkedArray, number: int) -> Numbers:
    """The part of each row, by its place or by the first bytes of its digest."""
    plain = identity.combine_chunks()
    if pa.types.is_integer(plain.type):
        places: Numbers = plain.to_numpy() // READ_ROWS % number
        return places
    words = np.frombuffer(plain.buffers()[1], np.uint64)[2 * plain.offset :: 2][: len(plain)]
    return (words % np.uint64(number)).astype(np.int64)


class _Found:
    """What is found in the parts so far."""

    def __init__(self, measure: Measure, most: int, whole: bool, columns: Sequence[str]) -> None:
        self._measure, self._most, self._whole, self._columns = measure, most, whole, columns
        self.compared = self.rose = self.fell = self.came = self.went = 0
        self._cells: list[tuple[float, int, int, float, float]] = []
        self._uniques = 0
        self._unique_rows: list[int] = []

    def look(self, before: pa.Table, after: pa.Table) -> None:
        """Compare a part."""
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
        """Of what is compared: of rows that of the row; of cells with their column."""
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
        """Compare cells; columns: their places among those that are scored."""
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

    def changes(self, after: Side, keyed: bool, unique: bool, show_values: bool) -> ScoreChanges:
        """All that was found; keyed, unique: rows have keys, and it is known which are unique."""
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
    """The values of cells, as a file of cells has them."""
    dataset = ds.dataset(str(file), format="parquet")
    if VALUE not in dataset.schema.names:
        return {}
    rows = pc.field(ROW).isin([cell.row for cell in cells])
    found = dataset.to_table(columns=[ROW, COLUMN, VALUE], filter=rows).to_pylist()
    return {(one[ROW], one[COLUMN]): one[VALUE] for one in found}
