"""Scores in files, read on demand as long as the files are what they were."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds

from ..attack.priors import AsDict, Prior
from ..errors import InputError, TableReadError, reason_of
from ..io.base import Stamp, check_unchanged
from ..io.formats import CSV, written_format
from ..io.write import output_names, write_tables
from ..rows.threads import Workers
from ..utils.exact_sums import sum_rows
from ..utils.percentiles import ONCE, SHIFTS, DigitCounts, PercentileSearch
from .backing import CellSource, CountChunks, OutcomeBacking, QueryResult, ScoreQuery, ScoresDescription, WriteRequest
from .cell_selection import CellQuery, ScoredRows
from .cell_table import CellLayout, LocalCellSource
from .lazy_tables import StoredFrame
from .packed_priors import PackedPrior, pack_priors
from .provenance import to_metadata
from .query_search import ChunkFacts, QuerySearch, with_scores
from .riskiest import RiskyCell
from .score_distribution import ColumnAnswer, ColumnQuery, Tally
from .score_outputs import CellScore, ScoreView, outputs_of
from .summary_figures import ColumnFacts, Figures

# Columns whose percentiles are found at once: each takes up to 2 MiB of counts.
COLUMNS_AT_ONCE = 16
# The error for a file that changed: the facts in memory are about other scores than it holds now.
REPLACED = (
    "the scores changed since they were written or opened. Score the table again, or open what is there now with "
    "gpupif.open_scores."
)


class StoredBacking(OutcomeBacking):
    """Facts about scores that are in files; a subclass says whether the scores of all cells are there.

    path: the file or folder. stamps: size and time of change of each file, in order of the rows. description: the
    metadata of the files. rows: number of rows. spilled_bytes: see `Backing`. priors: if they are at hand.
    """

    def __init__(
        self,
        path: Path,
        stamps: Mapping[Path, Stamp],
        description: ScoresDescription,
        rows: int,
        spilled_bytes: int | None = None,
        priors: Mapping[Hashable, Prior] | None = None,
    ) -> None:
        super().__init__(description.about, description.outcomes)
        self.path = path
        self.files = list(stamps)
        self._stamps = stamps
        self.spilled_bytes = spilled_bytes
        self._facts = list(description.facts)
        self._packed = dict(description.priors)
        self._priors_at_hand = priors
        self._priors: Mapping[Hashable, AsDict] = priors or {
            name: PackedPrior(name, self._packed.get(str(name)), str(path)) for name in self.about.columns
        }
        self._rows = rows
        self.whole = description.rows in (None, rows)

    @property
    def rows(self) -> int:
        return self._rows

    def priors(self) -> Mapping[Hashable, AsDict]:
        return self._priors

    def packed_priors(self) -> dict[str, str]:
        return pack_priors(self._priors_at_hand) if self._priors_at_hand else self._packed

    def column_facts(self) -> list[ColumnFacts]:
        return self._facts

    def where(self) -> str:
        return f"device {self.about.device}; in {self.path}"

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Return some columns of the files, chunk by chunk, in order. Raises TableReadError."""
        with self._reading():
            yield from self._dataset().to_batches(columns=list(columns))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise TableReadError if files cannot be read while the block runs, or were replaced before or meanwhile."""
        check_unchanged(self._stamps, REPLACED)
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            check_unchanged(self._stamps, REPLACED)
            raise TableReadError(f"{self.path}: the scores could not be read: {reason_of(error)}.") from error
        check_unchanged(self._stamps, REPLACED)

    @abstractmethod
    def _column_types(self) -> dict[str, pa.DataType]:
        """Return the types of columns, for CSV, which does not keep them: scores may begin with whole numbers."""

    def _dataset(self) -> ds.Dataset:
        form: Any = written_format(self.path or Path()).dataset
        if form == CSV.dataset:
            # Only an empty field is a missing score.
            missing = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
            types = self._column_types()
            form = ds.CsvFileFormat(convert_options=pyarrow.csv.ConvertOptions(column_types=types, **missing))
        return ds.dataset([str(file) for file in self.files], format=form)


class FileBacking(StoredBacking):
    """Scores of all cells, in files."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._types = ScoreView(self.about.measures, tuple(self.attackers), self.about.dtype).types()

    def frame(self, score: CellScore) -> StoredFrame:
        return self._frame({"": score}, list(self.about.columns))

    def cells(self, query: CellQuery) -> CellSource:
        encoded = self.row_values()
        layout = CellLayout.for_columns(self.about.columns, query.types, None if encoded is None else encoded.columns)

        def rows(outputs: Sequence[str]) -> Iterator[ScoredRows]:
            values, start = self.row_values(), 0
            for arrays in self._chunks(outputs):
                stop = start + next(iter(arrays.values())).shape[1]
                yield ScoredRows(start, arrays, None if values is None else values.between(start, stop))
                start = stop

        return LocalCellSource(query, layout, rows)

    def joined(self, outputs: Mapping[str, CellScore]) -> StoredFrame:
        return self._frame(outputs, output_names(list(outputs), self.about.columns, []))

    def _frame(self, outputs: Mapping[str, CellScore], names: Sequence[Hashable]) -> StoredFrame:
        scores = list(outputs.values())
        read = outputs_of(scores)

        def columns() -> Iterator[list[Any]]:
            for arrays in self._chunks(read):
                yield [column for score in scores for column in score.compute(arrays)]

        nothing = {output: np.empty((0, 0), self._types[output]) for output in read}
        types = [score.compute(nothing).dtype for score in scores for _ in self.about.columns]
        return StoredFrame(columns, names, types)

    def array(self, score: CellScore) -> npt.NDArray[Any]:
        return np.concatenate([score.compute(arrays) for arrays in self._chunks(score.outputs)], axis=1)

    def row_sums(self, score: CellScore, name: str) -> StoredFrame:
        def sums() -> Iterator[list[Any]]:
            for arrays in self._chunks(score.outputs):
                yield [sum_rows(score.compute(arrays))]

        return StoredFrame(sums, [name], ["float64"])

    def fold(self, score: CellScore, count: CountChunks, add: Callable[..., Any]) -> Any:
        with Workers() as workers:
            return count((score.compute(arrays) for arrays in self._chunks(score.outputs)), workers)

    def find(self, query: ScoreQuery) -> QueryResult:
        """See `Backing`; the files are read once, and four times more for percentiles of some columns at once."""
        figures, top = self._find_riskiest(query) if query.figures or query.by else (Figures({}), [])
        every = range(len(self.about.columns))
        columns = {score: self._answers(score, asked, every) for score, asked in query.of_columns.items()}
        of_rows: list[float] = []
        if query.gains is not None:
            (of_rows,) = self._percentiles(query.gains, query.of_rows, every, by_row=True)
        return QueryResult(figures, columns, of_rows, top)

    def _find_riskiest(self, query: ScoreQuery) -> tuple[Figures, list[RiskyCell]]:
        """Return the figures, and the riskiest cells with their scores."""
        search = QuerySearch(replace(query, of_columns={}, gains=None))
        chunks: list[ChunkFacts] = []
        row, values = 0, self.row_values() if query.each_value else None
        with Workers() as workers:
            for arrays in self._chunks(outputs_of(search.query.looked_at)):
                stop = row + next(iter(arrays.values())).shape[1]
                codes_of = None if values is None else values.between(row, stop)
                chunks.append(search.look_at_chunk(arrays, row, workers, codes_of))
                row = stop
        figures, top = search.combine(chunks)
        return figures, with_scores(top, query.shown, partial(self._scores_of_rows, outputs_of(query.shown)))

    def _scores_of_rows(self, outputs: Sequence[str], rows: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """Return the scores (scored columns, rows) of some rows by output; only these rows are read."""
        names = [f"{output}_{column}" for output in outputs for column in self.about.columns]
        with self._reading():
            table = self._dataset().take(pa.array(rows), columns=names).combine_chunks()
        return self._arrays(table, outputs, range(len(self.about.columns)))

    def _answers(self, score: CellScore, asked: ColumnQuery, columns: Sequence[int]) -> list[ColumnAnswer]:
        """Return the answer for each of some scored columns."""
        tallies = [Tally((0,) * len(asked.above)) for _ in columns]
        for arrays in self._chunks(score.outputs) if asked.tallied else ():
            of_chunk = [Tally.from_numbers(numbers, ONCE, asked) for numbers in score.compute(arrays)]
            tallies = [Tally.total(both) for both in zip(tallies, of_chunk, strict=True)]
        shares: list[list[float]] = []
        for first in columns[::COLUMNS_AT_ONCE] if asked.percentiles else ():
            some = columns[first : first + COLUMNS_AT_ONCE]
            shares += self._percentiles(score, asked.percentiles, some, by_row=False)
        shares = shares or [[] for _ in columns]
        return [tally.answer(asked, own) for tally, own in zip(tallies, shares, strict=True)]

    def _percentiles(
        self, score: CellScore, wanted: Sequence[float], columns: Sequence[int], by_row: bool
    ) -> list[list[float]]:
        """Return percentiles of each of some scored columns, or of the sums of their rows."""
        searches = [PercentileSearch.for_percents(wanted)] * (1 if by_row else len(columns))
        for _ in SHIFTS:
            counts: list[DigitCounts] = [{} for _ in searches]
            for arrays in self._chunks(score.outputs, columns):
                scores = score.compute(arrays)
                numbers = [sum_rows(scores)] if by_row else scores
                for search, counted, chunk in zip(searches, counts, numbers, strict=True):
                    search.count(chunk, ONCE, counted)
            searches = [search.narrowed(counted) for search, counted in zip(searches, counts, strict=True)]
        return [search.percentiles() for search in searches]

    def _chunks(
        self, outputs: Sequence[str], columns: Sequence[int] | None = None
    ) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """Return scores (scored columns, rows) by output, chunk by chunk, of some or all scored columns."""
        places = range(len(self.about.columns)) if columns is None else columns
        names = [f"{output}_{self.about.columns[place]}" for output in outputs for place in places]
        for batch in self._batches(names):
            if batch.num_rows:
                yield self._arrays(batch, outputs, places)

    def _arrays(self, batch: Any, outputs: Sequence[str], columns: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
        """Return scores (scored columns, rows) by output from a batch, whose columns come output by output."""
        arrays = {}
        for number, output in enumerate(outputs):
            array = np.empty((len(columns), batch.num_rows), self._types[output])
            for place in range(len(columns)):
                array[place] = batch.column(number * len(columns) + place).to_numpy(zero_copy_only=False)
            arrays[output] = array
        return arrays

    def _column_types(self) -> dict[str, pa.DataType]:
        return {
            f"{output}_{column}": pa.from_numpy_dtype(np.dtype(kind))
            for output, kind in self._types.items()
            for column in self.about.columns
        }

    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        return pa.concat_tables(self._tables(outputs, keep_input))

    def write(self, writing: WriteRequest) -> None:
        tables = self._tables(writing.outputs, writing.keep_input)
        write_tables(tables, writing.path, writing.done, writing.overwrite, lambda: to_metadata(writing.describe(True)))

    def _tables(self, outputs: Mapping[str, CellScore], keep_input: bool) -> Iterator[pa.Table]:
        """Return the table's columns, if they are wanted, and the scores, chunk by chunk."""
        own = {f"{output}_{column}" for output in self._types for column in self.about.columns}
        with self._reading():
            beside = [name for name in self._dataset().schema.names if name not in own] if keep_input else []
        if keep_input and not beside:
            raise InputError(f"keep_input: {self.path} holds scores alone. Leave it out, or score with keep_input.")
        names = output_names(list(outputs), self.about.columns, beside)
        read = outputs_of(outputs.values())
        stored = [f"{output}_{column}" for output in read for column in self.about.columns]
        for batch in self._batches([*stored, *beside]):
            arrays = self._arrays(batch, read, range(len(self.about.columns)))
            scores = [pa.array(column) for score in outputs.values() for column in score.compute(arrays)]
            yield pa.table([*(batch.column(name) for name in beside), *scores], names=[*beside, *names])
