"""Scores in memory, of the host or of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

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
from .base import (
    AttackerOutcome,
    CellSource,
    OutcomeBacking,
    QueryResult,
    RiskyCell,
    RowExplainer,
    RowValues,
    RunDescription,
    ScoreQuery,
    WriteRequest,
)
from .cell_layout import CellLayout
from .explained_cells import ExplainedCells
from .figures import ColumnFacts
from .local_cell_source import LocalCellSource
from .outputs import CellScore, ScoredAttacker, outputs_of
from .pieces import ColumnPiece, ColumnScores, Piece, QuerySearch, cut, sum_gains
from .provenance import to_metadata
from .selection import CellQuery, ScoredRows

# Rows whose scores are looked through for cells at once.
ROWS_LOOKED_AT = 1 << 18


class MemoryBacking(OutcomeBacking):
    """Scores of a table in memory.

    outcomes: of each attacker, in order. values: by output (see `ScoredAttacker.named`) the scores, an array (scored
    columns, rows) of host or device, or `SharedScores`. priors: of the scored columns.
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
        # Of the rows of each piece.
        self._row_sums: dict[CellScore, list[Any]] = {}
        for output, array in values.items():
            self._hold(output, array)

    @property
    def rows(self) -> int:
        return self._frame.rows

    def priors(self) -> Mapping[Hashable, Prior]:
        return {name: self._priors[name] for name in self.about.columns}

    def column_facts(self) -> list[ColumnFacts]:
        return [ColumnFacts(prior.column.cardinality, prior.entropy) for prior in self.priors().values()]

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
        """Where they lie."""
        for output in score.outputs:
            values = self._values[output]
            if isinstance(values, SharedScores):
                self._hold(output, values.all_rows())
        with self._frame.active():
            scores = score.of(self._values)
        if isinstance(scores, np.ndarray):
            scores.setflags(write=False)
        return scores

    def _hold(self, output: str, scores: Any) -> None:
        """Have these be the scores of an output, wherever they lie."""
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

        def look_at(start: int, stop: int) -> Piece:
            columns: list[ColumnPiece] = []

            def each() -> Iterator[ColumnPiece]:
                for scored_column in range(len(self.about.columns)):
                    found = search.look(
                        ColumnScores(take_scored_column(values, scored_column, start, stop)), scored_column, start
                    )
                    columns.append(found._replace(gains=None))
                    yield found

            return Piece(columns, sums=sum_gains(each()))

        # A device has its own threads, and is that of the calling one.
        with self._frame.active(), Workers(1 if on_device else None) as workers:
            pieces = workers.run(look_at, [(0, self.rows)] if on_device else cut(self.rows, workers.threads))
            if query.gains is not None:
                self._row_sums[query.gains] = [piece.sums for piece in pieces]
            return self._answer(search, pieces, workers)

    def _answer(self, search: QuerySearch, pieces: Sequence[Piece], workers: Workers) -> QueryResult:
        """The answer to a query, from all pieces."""
        query, found = search.query, search.result(pieces, workers)
        return found._replace(top=self._with_scores(found.top, query.shown))

    def _with_scores(self, top: Sequence[RiskyCell], shown: Sequence[CellScore]) -> list[RiskyCell]:
        """Cells with these scores."""
        values, found = {output: self._values[output] for output in outputs_of(shown)}, []
        for cell in top:
            taken = take_scored_column(values, cell.scored_column, cell.row, cell.row + 1)
            arrays = {output: scores[None] for output, scores in taken.items()}
            found.append(cell._replace(scores=[score.of(arrays).item() for score in shown]))
        return found

    def cells(self, query: CellQuery) -> CellSource:
        labels, encoded = index_table(self._frame, each=True), self.row_values()
        columns = None if encoded is None else encoded.columns
        layout = CellLayout.of(self.about.columns, query.types, columns, labels)

        def rows(outputs: Sequence[str]) -> Iterator[ScoredRows]:
            values, scores = self.row_values(), {output: self._values[output] for output in outputs}
            with self._frame.active(), Workers() as workers:
                for start in range(0, self.rows, ROWS_LOOKED_AT):
                    stop = min(self.rows, start + ROWS_LOOKED_AT)
                    taken = take_rows(scores, start, stop, workers)
                    arrays = {output: on_host(array) for output, array in taken.items()}
                    yield ScoredRows(start, arrays, None if values is None else values.between(start, stop))

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
        return _OutputRows(self._frame, outputs, values, self.about.columns, keep_input, workers)

    def write(self, writing: WriteRequest) -> None:
        """See `Backing`.

        Scores on a device go straight from there to Parquet, others part by part through the host.
        """
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
            # What the file says of its scores is found while these are written, where it is said last.
            searches = [QuerySearch(query) for query in writing.queries] if form.metadata_last else []

            def groups() -> Iterator[Sequence[RowGroup]]:
                pieces: list[list[Piece]] = [[] for _ in searches]
                for edges in row_groups(self.rows, len(rows.names)):
                    made, seen = rows.groups(edges, form.repeated, searches)
                    for own, more in zip(pieces, seen, strict=True):
                        own += more
                    yield made
                if searches:
                    found = (self._answer(*one, workers) for one in zip(searches, pieces, strict=True))
                    writing.answered(list(found))

            write_groups(groups(), path, writing.done, overwrite, lambda: to_metadata(writing.describe(True)))


class _OfScoredColumn(NamedTuple):
    """Of some rows the scores of one column that are written, and what each search sees of all."""

    written: list[npt.NDArray[Any] | Repeated | Multiple]
    seen: list[ColumnPiece]


class _OutputRows:
    """Rows of an output: scores of a table with what goes beside them; names: of the score columns.

    outputs: the cells by output; values: the scores that these are made of. The input stands before them where it is
    kept; behind them the index of a pandas table, as pandas stores it, where it is more than row numbers. Raises
    OutputError where names collide.
    """

    def __init__(
        self,
        frame: Frame,
        outputs: Mapping[str, CellScore],
        values: Mapping[str, Any],
        columns: Sequence[Hashable],
        keep_input: bool,
        workers: Workers,
    ) -> None:
        self._frame = frame
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
        """Whether they are scores on a device, and nothing goes beside them."""
        there = all(map(is_on_device, self._values.values()))
        return there and self._source is None and self._labels is None

    def all_rows(self) -> pa.Table:
        """All of them."""
        several = row_groups(self._frame.rows, len(self.names))
        return pa.concat_tables(group.table() for edges in several for group in self.groups(edges)[0])

    def groups(
        self, edges: Sequence[tuple[int, int]], repeated: bool = False, searches: Sequence[QuerySearch] = ()
    ) -> tuple[list[RowGroup], list[list[Piece]]]:
        """Some groups of the rows, (start, stop) each, and by search what it sees of each group.

        repeated: find how numbers repeat.
        """
        with self._frame.active():
            several = [self._on_host(start, stop) for start, stop in edges]

        def take(start: int, stop: int, values: Mapping[str, Any], scored_column: int) -> _OfScoredColumn:
            shared = {output: scores for output, scores in self._values.items() if output not in values}
            of_others = self._multiples(shared, scored_column)
            looked = {output for search in searches for output in outputs_of(search.query.looked_at)}
            taken = {output: one for output, one in shared.items() if output in looked or output not in of_others}
            there = {output: scores[scored_column] for output, scores in values.items()}
            scores = ColumnScores(there | take_scored_column(taken, scored_column, start, stop))
            written: list[Any] = []
            for score in self._outputs:
                if score.outputs[0] in of_others:
                    written.append(of_others[score.outputs[0]])
                else:
                    own = scores.of(score)
                    written.append((own.repeated if repeated else None) or own.values)
            return _OfScoredColumn(written, [search.look(scores, scored_column, start) for search in searches])

        tasks = [
            (*span, values, scored_column)
            for span, values in zip(edges, several, strict=True)
            for scored_column in self._scored_columns
        ]
        taken = iter(self._workers.run(take, tasks))
        made: list[RowGroup] = []
        pieces: list[list[Piece]] = [[] for _ in searches]
        for start, stop in edges:
            columns = [next(taken) for _ in self._scored_columns]
            written = [column for several in zip(*(one.written for one in columns), strict=True) for column in several]
            made.append(self._group(start, stop, written))
            for seen, own in zip(zip(*(one.seen for one in columns), strict=True), pieces, strict=True):
                ranges = [(seen, slice(*span)) for span in self._workers.ranges(stop - start)]
                parts = self._workers.run(sum_gains, ranges)
                sums = None if parts[0] is None else np.concatenate(parts)
                own.append(Piece([one._replace(gains=None) for one in seen], sums))
        return made, pieces

    def _multiples(self, shared: Mapping[str, Any], scored_column: int) -> dict[str, Multiple]:
        """By output the scores of a column that are those of another one times a factor, if all are written alone."""
        if any(len(score.outputs) > 1 for score in self._outputs):
            return {}
        place = {score.outputs[0]: number for number, score in enumerate(self._outputs)}
        return {
            output: Multiple(place[of] * len(self._scored_columns) + scored_column, factor)
            for output, (of, factor) in multiples(shared, scored_column).items()
        }

    def _on_host(self, start: int, stop: int) -> dict[str, Any]:
        """Some rows of the scores that are arrays, of host or device."""
        arrays = {output: values for output, values in self._values.items() if not isinstance(values, SharedScores)}
        return {output: on_host(array[:, start:stop]) for output, array in arrays.items()}

    def _group(self, start: int, stop: int, scores: Sequence[npt.NDArray[Any] | Repeated | Multiple]) -> RowGroup:
        """Scores of some rows, with what goes beside them."""
        before, behind = (
            None if table is None else table.slice(start, stop - start) for table in (self._source, self._labels)
        )
        columns = [pa.array(one) if isinstance(one, np.ndarray) else one for one in scores]
        types = [pa.float64() if isinstance(one, Multiple) else pa.from_numpy_dtype(one.dtype) for one in scores]
        fields = [pa.field(name, kind) for name, kind in zip(self.names, types, strict=True)]
        if behind is None:
            return RowGroup(pa.schema(fields), columns).behind(before)
        schema = pa.schema([*fields, *behind.schema], behind.schema.metadata)
        return RowGroup(schema, [*columns, *behind.columns]).behind(before)


def index_table(frame: Frame, each: bool = False) -> pa.Table | None:
    """The index of a pandas table, where it is more than row numbers, see `index_columns`. Raises OutputError."""
    index = frame.host_index()
    if index is None or (index.equals(pd.RangeIndex(frame.rows)) and index.name is None):
        return None
    return index_columns(index, each)


def index_columns(index: pd.Index[Any], each: bool = False) -> pa.Table:
    """Labels of rows, as pandas stores them; each: of each row, so that some can be taken. Raises OutputError.

    Without it numbers in steps are no column: only where they begin and end is stored, which is of all rows together.
    """
    empty = pd.DataFrame(index=index, columns=pd.Index([], dtype=object))
    try:
        return pa.Table.from_pandas(empty, preserve_index=True if each else None)
    except (pa.ArrowException, TypeError) as error:
        raise OutputError(
            f"output: the index of the table cannot be stored ({error}). Convert it, to text for instance, or drop "
            "it with reset_index(drop=True)."
        ) from error


class TableExplainer(RowExplainer):
    """What one attacker sees of the cells of a table in memory.

    columns, job: of the columns that are scored or known, with the codes of all rows. weights: where the attacker knows
    any few columns, of each scored column against each of their sets.
    """

    def __init__(
        self,
        frame: Frame,
        columns: Sequence[Column],
        job: Job,
        attacker: ScoredAttacker,
        weights: Sequence[npt.NDArray[np.float64]] = (),
    ) -> None:
        self._frame = frame
        self._columns = columns
        self._job = job
        self._subsets = attacker.subsets
        self._weights = weights

    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        index = self._frame.index
        if index is None:
            return None
        with self._frame.active():
            return [index[row] for row in rows]

    def row_values(self) -> RowValues:
        job = self._job

        def between(start: int, stop: int) -> Callable[[int], npt.NDArray[Any]]:
            return lambda scored_column: on_host(job.codes[job.scored_columns[scored_column]][start:stop])

        return RowValues([self._columns[scored_column] for scored_column in job.scored_columns], between)

    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        with self._frame.active():
            return self._asked(cells).values()

    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        job = self._job
        weights = dict(zip(job.scored_columns, self._weights, strict=False))
        with self._frame.active():
            asked = self._asked(cells)
            if self._subsets is None:
                return asked.explain(asked.count(job.codes, job.times))
            return asked.explain_worst(job, self._subsets, lambda _, position: weights[position], by)

    def _asked(self, cells: Sequence[RiskyCell]) -> ExplainedCells:
        keys = [[int(codes[cell.row]) for codes in self._job.codes] for cell in cells]
        return ExplainedCells(self._job, self._columns, cells, keys)
