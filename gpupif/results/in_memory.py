"""Scores in memory, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.attackers import KnownSubsets
from ..attack.priors import Prior
from ..encoding.column import Column
from ..engines.base import Job
from ..engines.shared_scores import SharedScores, multiples, take_rows, take_scored_column
from ..errors import OutputError
from ..frames.base import Frame
from ..io.formats import PARQUET, written_format
from ..io.row_group import Multiple, RowGroup
from ..io.write import output_names, row_groups, write_device_columns, write_groups
from ..measures import Measure
from ..rows.threads import Workers
from ..utils.arrays import is_on_device, on_host
from ..utils.repeated import Repeated
from .backing import (
    AttackerOutcome,
    CellSource,
    CountChunks,
    OutcomeBacking,
    QueryResult,
    RowExplainer,
    RowValues,
    RunDescription,
    ScoreQuery,
    WriteRequest,
)
from .cell_explanations import ExplainedCells
from .cell_selection import CellQuery, ScoredRows
from .cell_table import CellLayout, LocalCellSource
from .packed_priors import pack_priors
from .provenance import to_metadata
from .query_search import ChunkColumn, ChunkFacts, CodesOf, ColumnScores, QuerySearch, cut_rows, sum_gains
from .riskiest import RiskyCell
from .score_outputs import CellScore, outputs_of
from .summary_figures import ColumnFacts

# Rows of a chunk that is searched for cells.
ROWS_SEARCHED = 1 << 18


class MemoryBacking(OutcomeBacking):
    """Scores of a table in memory.

    frame: the table. outcomes: one for each attacker, in order. values: by output (see `ScoredAttacker.named`), the
    scores: an array (scored columns, rows) on the host or a device, or `SharedScores`. priors: of the scored columns.
    """

    def __init__(
        self,
        frame: Frame,
        about: RunDescription,
        outcomes: Sequence[AttackerOutcome],
        values: Mapping[str, Any],
        priors: Mapping[Hashable, Prior],
    ) -> None:
        super().__init__(about, outcomes)
        self._frame = frame
        self._values = dict(values)
        self._priors = priors
        self._frames: dict[CellScore, Any] = {}
        # By score, the sums of the rows of each chunk.
        self._row_sums: dict[CellScore, list[Any]] = {}
        for output, array in values.items():
            self._hold(output, array)

    @property
    def rows(self) -> int:
        return self._frame.rows

    def priors(self) -> Mapping[Hashable, Prior]:
        return {name: self._priors[name] for name in self.about.columns}

    def packed_priors(self) -> dict[str, str]:
        return pack_priors(self.priors())

    def column_facts(self) -> list[ColumnFacts]:
        return [*map(ColumnFacts.from_prior, self.priors().values())]

    def where(self) -> str:
        return f"device {self.about.device}"

    def frame(self, score: CellScore) -> Any:
        frame = self._frames.get(score)
        if frame is None:
            frame = self._frame.wrap(self.array(score), self.about.columns)
            if len(score.outputs) == 1:
                self._frames[score] = frame
        return self._frame.view(frame)

    def array(self, score: CellScore) -> Any:
        if self._frame.from_file:
            for output in score.outputs:
                self._hold(output, on_host(self._values[output]))
        return self._scores(score)

    def _scores(self, score: CellScore) -> Any:
        """Return a score of all cells as an array (scored columns, rows), on the host or a device."""
        for output in score.outputs:
            values = self._values[output]
            if isinstance(values, SharedScores):
                self._hold(output, values.all_rows())
        with self._frame.active():
            scores = score.compute(self._values)
        if isinstance(scores, np.ndarray):
            scores.setflags(write=False)
        return scores

    def _hold(self, output: str, scores: Any) -> None:
        """Keep these scores as the scores of an output."""
        if isinstance(scores, np.ndarray):
            scores.setflags(write=False)
        self._values[output] = scores

    def row_sums(self, score: CellScore, name: str) -> Any:
        sums = self._row_sums.get(score)
        if sums is None:
            self.find(ScoreQuery(gains=score, of_rows=(100,)))
            sums = self._row_sums[score]
        if len(sums) > 1:
            sums[:] = [np.concatenate(sums)]
        return self._frame.series(sums[0], name)

    def find(self, query: ScoreQuery) -> QueryResult:
        values = {output: self._values[output] for output in outputs_of(query.looked_at)}
        on_device = any(map(is_on_device, values.values()))
        search = QuerySearch(query)
        encoded = self.row_values() if query.each_value else None

        def look_at(start: int, stop: int) -> ChunkFacts:
            columns: list[ChunkColumn] = []
            codes_of = None if encoded is None else encoded.between(start, stop)

            def each_column() -> Iterator[ChunkColumn]:
                for scored_column in range(len(self.about.columns)):
                    scores = ColumnScores(take_scored_column(values, scored_column, start, stop))
                    column = search.look_at(scores, scored_column, start, codes_of)
                    # Gains are summed here, and not kept: they are as large as the scores.
                    columns.append(column._replace(gains=None))
                    yield column

            return ChunkFacts(columns, sums=sum_gains(each_column()))

        # A device has threads of its own, and is active in the calling thread only.
        with self._frame.active(), Workers(1 if on_device else None) as workers:
            chunks = workers.run(look_at, [(0, self.rows)] if on_device else cut_rows(self.rows, workers.threads))
            if query.gains is not None:
                self._row_sums[query.gains] = [chunk.sums for chunk in chunks]
            return self._answer(search, chunks, workers)

    def _answer(self, search: QuerySearch, chunks: Sequence[ChunkFacts], workers: Workers) -> QueryResult:
        """Return the answer to a query from all chunks, with the scores of the riskiest cells."""
        result, shown = search.result(chunks, workers), search.query.shown
        values, top = {output: self._values[output] for output in outputs_of(shown)}, []
        for cell in result.top:
            taken = take_scored_column(values, cell.scored_column, cell.row, cell.row + 1)
            arrays = {output: scores[None] for output, scores in taken.items()}
            top.append(cell._replace(scores=[score.compute(arrays).item() for score in shown]))
        return result._replace(top=top)

    def fold(self, score: CellScore, count: CountChunks, add: Callable[..., Any]) -> Any:
        values = {output: self._values[output] for output in score.outputs}

        def chunks() -> Iterator[npt.NDArray[Any]]:
            for start in range(0, self.rows, ROWS_SEARCHED):
                taken = take_rows(values, start, min(self.rows, start + ROWS_SEARCHED), workers)
                yield on_host(score.compute(taken))

        with self._frame.active(), Workers() as workers:
            return count(chunks(), workers)

    def cells(self, query: CellQuery) -> CellSource:
        labels, encoded = index_table(self._frame, each=True), self.row_values()
        columns = None if encoded is None else encoded.columns
        layout = CellLayout.for_columns(self.about.columns, query.types, columns, labels)

        def rows(outputs: Sequence[str]) -> Iterator[ScoredRows]:
            values, scores = self.row_values(), {output: self._values[output] for output in outputs}
            with self._frame.active(), Workers() as workers:
                for start in range(0, self.rows, ROWS_SEARCHED):
                    stop = min(self.rows, start + ROWS_SEARCHED)
                    taken = take_rows(scores, start, stop, workers)
                    arrays = {output: on_host(array) for output, array in taken.items()}
                    codes_of = None if values is None else _on_host(values.between(start, stop))
                    yield ScoredRows(start, arrays, codes_of)

        return LocalCellSource(query, layout, rows)

    def joined(self, outputs: Mapping[str, CellScore]) -> Any:
        names = output_names(list(outputs), self.about.columns, [])
        columns = (column for score in outputs.values() for column in self.array(score))
        return self._frame.named(dict(zip(names, columns, strict=True)))

    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        with Workers() as workers:
            return self._output_rows(outputs, keep_input, workers).all_rows()

    def _output_rows(self, outputs: Mapping[str, CellScore], keep_input: bool, workers: Workers) -> _OutputRows:
        values = {output: self._values[output] for output in outputs_of(outputs.values())}
        return _OutputRows(self._frame, outputs, values, self.about.columns, keep_input, workers, self.row_values())

    def write(self, writing: WriteRequest) -> None:
        """See `Backing`; a device writes its scores to Parquet itself, others go through the host chunk by chunk."""
        path, overwrite = writing.path, writing.overwrite
        library = self._frame.device_frames()
        with Workers() as workers:
            rows = self._output_rows(writing.outputs, writing.keep_input, workers)
            if library is not None and rows.scores_on_device and str(path).lower().endswith(PARQUET.written):
                arrays = (self._scores(score) for score in writing.outputs.values())
                columns = dict(zip(rows.names, (column for array in arrays for column in array), strict=True))
                metadata = to_metadata(writing.describe(True))
                write_device_columns(library, columns, self.rows, path, writing.done, overwrite, metadata)
                return
            form = written_format(Path(path))
            # If the description comes last in the file, its summary is found while the scores are written.
            searches = [QuerySearch(query) for query in writing.queries] if form.metadata_last else []

            def groups() -> Iterator[Sequence[RowGroup]]:
                seen: list[list[ChunkFacts]] = [[] for _ in searches]
                for edges in row_groups(self.rows, len(rows.names)):
                    made, more = rows.groups(edges, form.repeated, searches)
                    for chunks, further in zip(seen, more, strict=True):
                        chunks += further
                    yield made
                if searches:
                    pairs = zip(searches, seen, strict=True)
                    writing.answered([self._answer(search, chunks, workers) for search, chunks in pairs])

            write_groups(groups(), path, writing.done, overwrite, lambda: to_metadata(writing.describe(True)))


def _on_host(codes_of: CodesOf) -> CodesOf:
    """Return a function that returns the same codes on the host."""
    return lambda scored_column: on_host(codes_of(scored_column))


class _OutputRows:
    """The rows of an output file: perhaps the table's columns, the scores, and perhaps the index of a pandas table.

    outputs: the scores to write, by the prefix of the names of their columns. values: by output, the scores that these
    are made of. columns: the scored columns. encoded: their values, if they are at hand. The index is written as pandas
    stores it, unless it is just row numbers. names: of the columns of scores. Raises OutputError for equal names.
    """

    def __init__(
        self,
        frame: Frame,
        outputs: Mapping[str, CellScore],
        values: Mapping[str, Any],
        columns: Sequence[Hashable],
        keep_input: bool,
        workers: Workers,
        encoded: RowValues | None,
    ) -> None:
        self._frame = frame
        self._encoded = encoded
        self._outputs = list(outputs.values())
        self._values = values
        self._scored_columns = range(len(columns))
        self._workers = workers
        self._source = frame.arrow() if keep_input else None
        self._labels = index_table(frame)
        others = [name for table in (self._source, self._labels) if table for name in table.column_names]
        self.names = output_names(list(outputs), columns, others)

    @property
    def scores_on_device(self) -> bool:
        """True if the rows are scores on a device, and nothing else."""
        on_device = all(map(is_on_device, self._values.values()))
        return on_device and self._source is None and self._labels is None

    def all_rows(self) -> pa.Table:
        """Return all rows as one table."""
        waves = row_groups(self._frame.rows, len(self.names))
        return pa.concat_tables(group.table() for edges in waves for group in self.groups(edges)[0])

    def groups(
        self, edges: Sequence[tuple[int, int]], repeated: bool = False, searches: Sequence[QuerySearch] = ()
    ) -> tuple[list[RowGroup], list[list[ChunkFacts]]]:
        """Return some row groups, and for each search the facts that it keeps of each group.

        edges: (start, stop) of each group. repeated: find how numbers repeat, for writers that make use of it.
        """
        with self._frame.active():
            arrays_of_groups = [self._on_host(start, stop) for start, stop in edges]
        searched = {output for search in searches for output in outputs_of(search.query.looked_at)}

        def take(
            start: int, stop: int, arrays: Mapping[str, Any], scored_column: int
        ) -> tuple[list[Any], list[ChunkColumn]]:
            """Return what is written of one scored column of a group, and what each search keeps of it."""
            shared = {output: scores for output, scores in self._values.items() if output not in arrays}
            multiples = self._multiples(shared, scored_column)
            needed = {
                output: scores for output, scores in shared.items() if output in searched or output not in multiples
            }
            in_arrays = {output: array[scored_column] for output, array in arrays.items()}
            scores = ColumnScores(in_arrays | take_scored_column(needed, scored_column, start, stop))
            written: list[Any] = []
            for score in self._outputs:
                if score.outputs[0] in multiples:
                    written.append(multiples[score.outputs[0]])
                else:
                    column = scores.column_of(score)
                    written.append((column.repeated if repeated else None) or column.values)
            codes_of = None if self._encoded is None else self._encoded.between(start, stop)
            return written, [search.look_at(scores, scored_column, start, codes_of) for search in searches]

        tasks = [
            (*span, arrays, scored_column)
            for span, arrays in zip(edges, arrays_of_groups, strict=True)
            for scored_column in self._scored_columns
        ]
        taken = iter(self._workers.run(take, tasks))
        made: list[RowGroup] = []
        seen: list[list[ChunkFacts]] = [[] for _ in searches]
        for start, stop in edges:
            columns = [next(taken) for _ in self._scored_columns]
            written = zip(*(written for written, _ in columns), strict=True)
            made.append(self._group(start, stop, [column for of_output in written for column in of_output]))
            for of_search, chunks in zip(zip(*(looks for _, looks in columns), strict=True), seen, strict=True):
                ranges = [(of_search, slice(*span)) for span in self._workers.ranges(stop - start)]
                sums = self._workers.run(sum_gains, ranges)
                together = None if sums[0] is None else np.concatenate(sums)
                chunks.append(ChunkFacts([column._replace(gains=None) for column in of_search], together))
        return made, seen

    def _multiples(self, shared: Mapping[str, Any], scored_column: int) -> dict[str, Multiple]:
        """Return by output which scores of a column are the scores of another output times a factor.

        Empty if a score is written that is made of several outputs.
        """
        if any(len(score.outputs) > 1 for score in self._outputs):
            return {}
        place = {score.outputs[0]: number for number, score in enumerate(self._outputs)}
        return {
            output: Multiple(place[other] * len(self._scored_columns) + scored_column, factor)
            for output, (other, factor) in multiples(shared, scored_column).items()
        }

    def _on_host(self, start: int, stop: int) -> dict[str, Any]:
        """Return some rows of the scores that are arrays, from a device to the host."""
        arrays = {output: values for output, values in self._values.items() if not isinstance(values, SharedScores)}
        return {output: on_host(array[:, start:stop]) for output, array in arrays.items()}

    def _group(self, start: int, stop: int, scores: Sequence[npt.NDArray[Any] | Repeated | Multiple]) -> RowGroup:
        """Return a row group: the scores of some rows, the table's columns and the index."""
        before, after = (
            None if table is None else table.slice(start, stop - start) for table in (self._source, self._labels)
        )
        columns = [pa.array(column) if isinstance(column, np.ndarray) else column for column in scores]
        types = [
            pa.float64() if isinstance(column, Multiple) else pa.from_numpy_dtype(column.dtype) for column in scores
        ]
        fields = [pa.field(name, kind) for name, kind in zip(self.names, types, strict=True)]
        if after is None:
            return RowGroup(pa.schema(fields), columns).preceded_by(before)
        schema = pa.schema([*fields, *after.schema], after.schema.metadata)
        return RowGroup(schema, [*columns, *after.columns]).preceded_by(before)


def index_table(frame: Frame, each: bool = False) -> pa.Table | None:
    """Return the index of a pandas table, see `index_columns`; None if it is just row numbers. Raises OutputError."""
    index = frame.host_index()
    if index is None or (index.equals(pd.RangeIndex(frame.rows)) and index.name is None):
        return None
    return index_columns(index, each)


def index_columns(index: pd.Index[Any], each: bool = False) -> pa.Table:
    """Return the labels of rows, as pandas stores them. Raises OutputError.

    each: make a column even of numbers in even steps, of which pandas stores only begin and end, so that the labels of
    some rows can be taken.
    """
    empty = pd.DataFrame(index=index, columns=pd.Index([], dtype=object))
    try:
        return pa.Table.from_pandas(empty, preserve_index=True if each else None)
    except (pa.ArrowException, TypeError) as error:
        raise OutputError(
            f"output: the index of the table cannot be stored ({error}). Convert it, to text for instance, or drop "
            "it with reset_index(drop=True)."
        ) from error


@dataclass(eq=False)
class TableExplainer(RowExplainer):
    """The view of one attacker on the cells of a table in memory.

    columns, job: of the columns that are scored or known, with the codes of all rows. subsets: what the attacker may
    know, if any few columns; then weights: for each scored column its weight against each set of known columns.
    """

    frame: Frame
    columns: Sequence[Column]
    job: Job
    subsets: KnownSubsets | None
    weights: Sequence[npt.NDArray[np.float64]] = ()

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        index = self.frame.index
        if index is None:
            return None
        with self.frame.active():
            return [index[row] for row in rows]

    def row_values(self) -> RowValues:
        job = self.job

        def between(start: int, stop: int) -> Callable[[int], npt.NDArray[Any]]:
            return lambda scored_column: job.codes[job.scored_columns[scored_column]][start:stop]

        return RowValues([self.columns[scored_column] for scored_column in job.scored_columns], between)

    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        with self.frame.active():
            return self._explained(cells).values()

    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        job = self.job
        weights = dict(zip(job.scored_columns, self.weights, strict=False))
        with self.frame.active():
            explained = self._explained(cells)
            if self.subsets is None:
                return explained.explain(explained.count(job.codes, job.multiplicities))
            return explained.explain_worst(job, self.subsets, lambda _, column: weights[column], by)

    def _explained(self, cells: Sequence[RiskyCell]) -> ExplainedCells:
        keys = [[int(codes[cell.row]) for codes in self.job.codes] for cell in cells]
        return ExplainedCells(self.job, self.columns, cells, keys)
