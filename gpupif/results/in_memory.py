"""Scores in memory, of the host or of a GPU."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.priors import Prior
from ..encoding.column import Column
from ..engines.base import Job
from ..errors import OutputError
from ..frames.base import Frame
from ..io.formats import PARQUET
from ..io.write import output_names, row_groups, write_device_columns, write_tables
from ..measures import Measure
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .asked_cells import AskedCells
from .base import (
    AttackerOutcome,
    Cell,
    CellSource,
    OutcomeBacking,
    QueryResult,
    RowExplainer,
    RowValues,
    RunDescription,
    ScoreQuery,
    WriteRequest,
)
from .cell_layout import CellLayout
from .figures import ColumnFacts, Figures
from .local_cells import LocalCells
from .outputs import Cells, ScoredAttacker
from .provenance import to_metadata
from .riskiest import riskiest_in
from .selection import PIECE_ROWS, CellQuery, ScoredRows


class MemoryBacking(OutcomeBacking):
    """Scores of a table in memory.

    outcomes: of each attacker, in order. values: by output (see `ScoredAttacker.named`) the scores, an array (scored
    columns, rows) of host or device. priors: of the scored columns.
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
        self._frames: dict[Cells, Any] = {}
        self._row_sums: dict[Cells, Any] = {}
        for array in self._values.values():
            if isinstance(array, np.ndarray):
                array.setflags(write=False)

    @property
    def rows(self) -> int:
        return self._frame.rows

    def priors(self) -> Mapping[Hashable, Prior]:
        return {name: self._priors[name] for name in self.about.columns}

    def column_facts(self) -> list[ColumnFacts]:
        return [ColumnFacts(prior.column.cardinality, prior.entropy) for prior in self.priors().values()]

    def where(self) -> str:
        return f"device {self.about.device}"

    def frame(self, cells: Cells) -> Any:
        frame = self._frames.get(cells)
        if frame is None:
            frame = self._frame.wrap(self.array(cells), self.about.columns)
            if len(cells.outputs) == 1:
                self._frames[cells] = frame
        return self._frame.view(frame)

    def array(self, cells: Cells) -> Any:
        if self._frame.from_file:
            for output in cells.outputs:
                if hasattr(self._values[output], "get"):
                    self._values[output] = on_host(self._values[output])
                    self._values[output].setflags(write=False)
        return self._scores(cells)

    def _scores(self, cells: Cells) -> Any:
        """Where they lie."""
        with self._frame.active():
            scores = cells.of(self._values)
        if isinstance(scores, np.ndarray):
            scores.setflags(write=False)
        return scores

    def row_sums(self, cells: Cells, name: str) -> Any:
        return self._frame.series(self._sums_of_rows(cells), name)

    def _sums_of_rows(self, cells: Cells) -> Any:
        if cells not in self._row_sums:
            with self._frame.active():
                self._row_sums[cells] = self._scores(cells).sum(axis=0, dtype=np.float64)
        return self._row_sums[cells]

    def find(self, query: ScoreQuery) -> QueryResult:
        scores = {cells: self._scores(cells) for cells in query.cells}
        of_columns: list[list[float]] = []
        of_rows: list[float] = []
        top: list[Cell] = []
        # A device has its own threads, and is that of the calling one.
        with self._frame.active(), Workers(None if self._frame.device_frames() is None else 1) as workers:
            figures = Figures.of({name: scores[cells] for name, cells in query.figures.items()}, workers)
            if query.gains is not None and query.of_columns:
                of_columns = workers.run(_percentiles, [(gains, query.of_columns) for gains in scores[query.gains]])
            if query.gains is not None and query.of_rows:
                of_rows = _percentiles(self._sums_of_rows(query.gains), query.of_rows)
            if query.by is not None:
                shown = [scores[cells] for cells in query.shown]
                top = riskiest_in(query.by.measure, scores[query.by], shown, query.top)
        return QueryResult(figures, of_columns, of_rows, top)

    def cells(self, query: CellQuery) -> CellSource:
        labels, encoded = index_table(self._frame), self.row_values()
        columns = None if encoded is None else encoded.columns
        layout = CellLayout.of(self.about.columns, query.types, columns, labels)

        def rows(outputs: Sequence[str]) -> Iterator[ScoredRows]:
            values = self.row_values()
            with self._frame.active():
                for start in range(0, self.rows, PIECE_ROWS):
                    stop = min(self.rows, start + PIECE_ROWS)
                    arrays = {output: on_host(self._values[output][:, start:stop]) for output in outputs}
                    yield ScoredRows(start, arrays, None if values is None else values.between(start, stop))

        return LocalCells(query, layout, rows)

    def joined(self, outputs: Mapping[str, Cells]) -> Any:
        names = output_names(list(outputs), self.about.columns, [])
        columns = (column for cells in outputs.values() for column in self.array(cells))
        return self._frame.named(dict(zip(names, columns, strict=True)))

    def to_arrow(self, outputs: Mapping[str, Cells], keep_input: bool) -> pa.Table:
        return _Rows(self._frame, self._arrays(outputs), self.about.columns, keep_input).between(0, self.rows)

    def _arrays(self, outputs: Mapping[str, Cells]) -> dict[str, Any]:
        return {output: self._scores(cells) for output, cells in outputs.items()}

    def write(self, writing: WriteRequest) -> None:
        """See `Backing`.

        Scores on a device go straight from there to Parquet, others part by part through the host.
        """
        arrays, path, overwrite = self._arrays(writing.outputs), writing.path, writing.overwrite
        rows = _Rows(self._frame, arrays, self.about.columns, writing.keep_input)
        library = self._frame.device_frames()
        there = all(hasattr(array, "get") for array in arrays.values())
        if library is not None and there and rows.alone and str(path).lower().endswith(PARQUET.written):
            columns = dict(zip(rows.names, (column for array in arrays.values() for column in array), strict=True))
            metadata = to_metadata(writing.describe(True))
            write_device_columns(library, columns, self.rows, path, writing.done, overwrite, metadata)
            return
        parts = (rows.between(start, stop) for start, stop in row_groups(self.rows))
        write_tables(parts, path, writing.done, overwrite, lambda: to_metadata(writing.describe(True)))


class _Rows:
    """Scores of a table, by output, with what goes beside them into an Arrow table; names: of the score columns.

    The input stands before them where it is kept; behind them the index of a pandas table, as pandas stores it, where
    it is more than row numbers. Raises OutputError where names collide.
    """

    def __init__(self, frame: Frame, arrays: Mapping[str, Any], columns: Sequence[Hashable], keep_input: bool) -> None:
        self._frame = frame
        self._arrays = arrays
        self._source = frame.arrow() if keep_input else None
        self._labels = index_table(frame)
        others = [name for table in (self._source, self._labels) if table for name in table.column_names]
        self.names = output_names(list(arrays), columns, others)

    @property
    def alone(self) -> bool:
        """Whether nothing goes beside the scores."""
        return self._source is None and self._labels is None

    def between(self, start: int, stop: int) -> pa.Table:
        """Some of the rows."""
        size = stop - start
        with self._frame.active():
            arrays = [on_host(values[:, start:stop]) for values in self._arrays.values()]
        columns, names = [pa.array(column) for array in arrays for column in array], self.names
        if self._source is not None:
            beside = self._source.slice(start, size)
            columns, names = [*beside.columns, *columns], [*beside.column_names, *names]
        if self._labels is None:
            return pa.table(columns, names=names)
        beside = self._labels.slice(start, size)
        table = pa.table([*columns, *beside.columns], names=[*names, *beside.column_names])
        return table.replace_schema_metadata(self._labels.schema.metadata)


def index_table(frame: Frame) -> pa.Table | None:
    """The index of a pandas table, as pandas stores it, where it is more than row numbers. Raises OutputError."""
    index = frame.host_index()
    if index is None or (index.equals(pd.RangeIndex(frame.rows)) and index.name is None):
        return None
    return index_columns(index)


def index_columns(index: pd.Index[Any]) -> pa.Table:
    """Labels of rows, as pandas stores them. Raises OutputError."""
    try:
        return pa.Table.from_pandas(pd.DataFrame(index=index, columns=pd.Index([], dtype=object)))
    except (pa.ArrowException, TypeError) as error:
        raise OutputError(
            f"output: the index of the table cannot be stored ({error}). Convert it, to text for instance, or drop "
            "it with reset_index(drop=True)."
        ) from error


def _percentiles(numbers: Any, query: Sequence[float]) -> list[float]:
    return [float(number) for number in on_host(np.percentile(numbers, list(query)))]


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
            return lambda target: on_host(job.codes[job.targets[target]][start:stop])

        return RowValues([self._columns[target] for target in job.targets], between)

    def values(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        with self._frame.active():
            return self._asked(cells).values()

    def explain(self, cells: Sequence[Cell], by: Measure) -> list[dict[str, Any]]:
        job = self._job
        weights = dict(zip(job.targets, self._weights, strict=False))
        with self._frame.active():
            asked = self._asked(cells)
            if self._subsets is None:
                return asked.explain(asked.count(job.codes, job.times))
            return asked.explain_worst(job, self._subsets, lambda _, position: weights[position], by)

    def _asked(self, cells: Sequence[Cell]) -> AskedCells:
        keys = [[int(codes[cell.row]) for codes in self._job.codes] for cell in cells]
        return AskedCells(self._job, self._columns, cells, keys)
