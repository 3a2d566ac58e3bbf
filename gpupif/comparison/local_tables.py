"""Two tables with aligned rows on this machine: chunks in memory or on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column
from ..engines.choose import choose_engine, requested_device
from ..errors import InputError
from ..io.temporary_folder import temporary_folder
from ..marginals.coded_table import code_columns
from ..marginals.counts_on_disk import ChunkCounts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetCounts
from ..out_of_core.memory_budget import plan_reading
from ..out_of_core.table_chunks import MemoryChunks, TableChunks
from ..out_of_core.temporary_table import TemporaryTable
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.progress import Reporter
from ..utils.validation import brief
from .aligned_tables import AlignedTables, CompareRequest, FindKept, kept_rows
from .released_values import ReleasedColumn, SharedValues
from .row_versions import KEPT_AFTER, VersionLayout

# The rows of a chunk of a table in memory.
CHUNK_ROWS = 1 << 20


class LocalTables(AlignedTables):
    """Two tables with aligned rows: frames, or paths of files, which are read in streams if they are too large."""

    def __init__(
        self, before: Any, after: Any, request: CompareRequest, report: Reporter, find_kept: FindKept | None
    ) -> None:
        self._names = list(request.columns)
        self._report = report
        with contextlib.ExitStack() as opened:
            sides = [_open(table, request.read(side), report, opened) for side, table in enumerate((before, after))]
            self._folder = opened.enter_context(temporary_folder(resources().temp))
            self._opened = opened.pop_all()
        first, second = sides
        self.rows = first.rows
        self._engine = choose_engine(requested_device(lambda: sum(one.rows * len(one.columns) for one in sides)))
        self._rows = RowPlaces.from_tables(first, second, request.row_id, find_kept)
        self.lacking = self._rows.lacking
        self._joined = JoinedChunks(request, first, second, self._rows)

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def joined(self) -> SetCounts:
        return self._count(self._joined)

    def versions(self, layout: VersionLayout) -> SetCounts:
        return self._count(VersionChunks(self._joined, layout))

    def _count(self, chunks: TableChunks) -> SetCounts:
        """Return an object that counts sets of columns of the chunks. The chunks are closed with this object."""
        budget = plan_reading(resources().memory, len(chunks.columns))
        names = list(range(len(chunks.columns)))
        stream = TemporaryTable(names, chunks, self._folder, budget, contextlib.ExitStack())
        return ChunkCounts(stream, CountRequest(), self._report, self._engine)


def _open(table: Any, names: Sequence[Hashable], report: Reporter, opened: contextlib.ExitStack) -> TableChunks:
    request = CountRequest(names)
    if request.in_streams(table):
        return opened.enter_context(request.open_temporary_table(table, report)).chunks
    with Workers() as workers:
        return MemoryChunks(code_columns(table, request, workers, report).columns, CHUNK_ROWS)


class RowPlaces:
    """The places of the rows of the table before in the table after.

    chunks: of the table after. places: for each row before its place after, -1 if the table after lacks the row; None
    if all rows have the same place in both tables. lacking: how many rows the table after lacks.
    """

    def __init__(self, chunks: TableChunks, places: npt.NDArray[np.int64] | None) -> None:
        self._chunks = chunks
        self._edges = np.cumsum([0, *chunks.sizes])
        self._places = places
        self.lacking = 0 if places is None else int((places < 0).sum())

    @classmethod
    def from_tables(
        cls, before: TableChunks, after: TableChunks, row_id: Hashable, find_kept: FindKept | None
    ) -> RowPlaces:
        """Find the places by order or, with `row_id`, by the names of rows, which are the last column of each table.

        find_kept: see `kept_rows`. Raises InputError if rows cannot be aligned.
        """
        if row_id is None:
            kept = kept_rows(before.rows, after.rows, find_kept)
            return cls(after, None if kept is None else np.where(kept, np.cumsum(kept) - 1, -1))
        first, second = before.columns[-1], after.columns[-1]
        for column, argument in ((first, "before"), (second, "after")):
            _check_ids(column, argument)
        shared = SharedValues.from_columns(first, second)
        place = np.full(len(shared.labels) + 1, -1, np.int64)
        place[shared.after[_last_codes(after)]] = np.arange(after.rows)
        numbers = shared.before[_last_codes(before)]
        places = place[numbers]
        # Only names that the table before lacks keep a place now.
        place[numbers] = -1
        unknown = place.max(initial=-1)
        if unknown >= 0:
            number = int(np.argmax(place))
            raise InputError(
                f"row_id: column {row_id!r}: after has {brief(shared.labels[number].as_py())}, which before lacks, in "
                f"row {unknown} (from 0). Expected rows of the table before only."
            )
        return cls(after, places)

    def there(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """Return for the rows before from `start` to `stop`: 1 if the table after has the row, else 0."""
        if self._places is None:
            return np.ones(stop - start, np.uint8)
        return (self._places[start:stop] >= 0).astype(np.uint8)

    def codes(self, start: int, stop: int, columns: Sequence[int], missing: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Return the codes after of the rows before from `start` to `stop`.

        columns: places of columns of the table after. missing: by column the code for rows that the table after lacks.
        """
        if self._places is None:
            return self._following(start, stop, columns)
        places = self._places[start:stop]
        codes_after = [np.full(stop - start, code, code_type(code + 1)) for code in missing]
        there = places >= 0
        chunk = np.searchsorted(self._edges, places, "right") - 1
        for number in np.unique(chunk[there]).tolist():
            rows = np.flatnonzero(there & (chunk == number))
            at = places[rows] - self._edges[number]
            for own, codes in zip(codes_after, self._chunks.some_codes(number, columns), strict=True):
                own[rows] = codes[at]
        return codes_after

    def _following(self, start: int, stop: int, columns: Sequence[int]) -> list[npt.NDArray[Any]]:
        """Return the codes of columns of the rows after from `start` to `stop`."""
        # An empty range is taken from the first chunk, which gives arrays of the right types.
        first, last = (0, 0) if start == stop else np.searchsorted(self._edges, [start, stop - 1], "right") - 1
        chunks = [
            [codes[max(0, start - edge) : max(0, stop - edge)] for codes in self._chunks.some_codes(number, columns)]
            for number, edge in zip(range(first, last + 1), self._edges[first:], strict=False)
        ]
        return chunks[0] if len(chunks) == 1 else [np.concatenate(own) for own in zip(*chunks, strict=True)]


def _check_ids(column: Column, argument: str) -> None:
    """Raise InputError if a name of a row is missing or repeats."""
    if column.missing:
        raise InputError(
            f"row_id: column {column.name!r}: {argument} has {column.missing_rows:,} rows without a value. Expected a "
            "different value in each row."
        )
    most = int(np.argmax(column.counts))
    if column.counts[most] > 1:
        raise InputError(
            f"row_id: column {column.name!r}: {argument} has {brief(column.values([most])[0])} in "
            f"{column.counts[most]:,} rows. Expected a different value in each row."
        )


def _last_codes(chunks: TableChunks) -> npt.NDArray[Any]:
    return np.concatenate(
        [chunks.some_codes(number, [len(chunks.columns) - 1])[0] for number in range(len(chunks.sizes))]
    )


class JoinedChunks(TableChunks):
    """The joined table: the columns before, the columns after, and whether the table after has the row.

    Its rows and chunks are the rows and chunks of the table before.
    """

    def __init__(self, request: CompareRequest, before: TableChunks, after: TableChunks, places: RowPlaces) -> None:
        names = list(request.columns)
        self.sizes = before.sizes
        self._edges = np.cumsum([0, *before.sizes]).tolist()
        self._before, self._places = before, places
        own = {column.name: place for place, column in enumerate(after.columns)}
        # For each column its place in the table after, None if it was dropped.
        self._others = [None if name in request.dropped else own[name] for name in names]
        others = [
            _nothing(name, before.rows) if place is None else _with_missing(after.columns[place], places.lacking)
            for name, place in zip(names, self._others, strict=True)
        ]
        there = _plain(len(names), np.array([places.lacking, before.rows - places.lacking]))
        self.columns = [*before.columns[: len(names)], *others, there]

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        half = len(self._others)
        start, stop = self._edges[number : number + 2]
        found: dict[int, npt.NDArray[Any]] = {2 * half: self._places.there(start, stop)}
        first = [place for place in places if place < half]
        found |= zip(first, self._before.some_codes(number, first), strict=True)
        others = {
            place: other
            for place in places
            if half <= place < 2 * half and (other := self._others[place - half]) is not None
        }
        missing = [len(self.columns[place].labels) for place in others]
        found |= zip(others, self._places.codes(start, stop, list(others.values()), missing), strict=True)
        nothing = np.zeros(stop - start, np.uint8)
        return [found.get(place, nothing) for place in places]

    def close(self) -> None:
        """Close nothing: `LocalTables` closes both tables."""


def _nothing(name: Hashable, rows: int) -> Column:
    """Return a column of missing values, without codes of rows."""
    import pyarrow as pa

    return Column(name, np.empty(0, np.uint8), np.array([rows]), pa.nulls(0), missing=True)


def _with_missing(column: Column, more: int) -> Column:
    """Return the column with `more` further missing values."""
    if not more:
        return column
    counts = np.append(column.counts[: len(column.labels)], column.missing_rows + more)
    return replace(column, counts=counts, missing=True)


class VersionChunks(TableChunks):
    """The table of versions, see `row_versions`: for each chunk of the joined table one chunk for each version."""

    def __init__(self, joined: JoinedChunks, layout: VersionLayout) -> None:
        self._versions = layout.versions
        self.sizes = np.repeat(joined.sizes, len(self._versions)).tolist()
        self._joined = joined
        self._layout = layout
        shared = [column.shared for column in layout.columns]
        self._numbers = [*(values.before for values in shared), *(values.after for values in shared)]
        rows = joined.rows
        own = [_numbered(column) for column in layout.columns]
        version, fate = _plain(len(own), np.full(KEPT_AFTER + 1, rows)), _plain(len(own) + 1, np.array([rows, 0, 0]))
        there = [_plain(place, np.array([0, rows])) for place in range(len(own) + 2, layout.width)]
        self.columns = [*own, version, fate, *there]
        self._last: tuple[int, list[npt.NDArray[Any]], list[npt.NDArray[Any]], npt.NDArray[np.bool_]] | None = None

    def some_codes(self, number: int, places: Sequence[int]) -> list[npt.NDArray[Any]]:
        chunk, version = divmod(number, len(self._versions))
        last = self._last
        if last is None or last[0] != chunk:
            # All versions of a chunk are read one after the other: its numbers are kept until the next chunk.
            *codes, there = self._joined.codes(chunk)
            last = self._last = chunk, *self._layout.numbers(codes, self._numbers), there == 1
        found = self._layout.rows(*last[1:], self._versions[version])
        return [found[place] for place in places]

    def close(self) -> None:
        """Close nothing: `LocalTables` closes both tables."""


def _numbered(column: ReleasedColumn) -> Column:
    """Return a column of the numbers of a column's values in all versions, without codes of rows.

    The last number is for cells that are not in both tables.
    """
    detail = np.zeros(column.size, np.int64)
    np.add.at(detail, column.detail, column.before)
    return _plain(column.name, np.append(column.before + detail + column.after, 0))


def _plain(name: Hashable, counts: npt.NDArray[np.int64]) -> Column:
    """Return a column of the whole numbers from 0, without codes of rows. counts: how many rows have each number."""
    return Column(name, np.empty(0, np.uint8), counts, np.arange(len(counts)), missing=False)
