"""Scores of a part folded while they are made: cells that are asked for, what a summary needs, and nothing else.

All that has to be known of a cell is known in its part where one attacker knows a list of columns. Kept are its cells
that come in question, chunk by chunk; of each row the sum of its CIG; figures, and the riskiest cells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..engines.base import Job
from ..engines.partition_plan import part_measures
from ..io.ipc_batches import BatchWriter, disk_errors
from ..measures import Measure
from ..results.figures import SUMMARISED, Figures
from ..results.outputs import ScoreView
from ..results.selection import PIECE_ROWS, CellQuery, FoundCells, Riskiest, ScoredRows, Selection
from ..results.summary import TOP_CELLS
from ..rows.threads import Workers


@dataclass(frozen=True)
class Folding:
    """What is kept of scores. query: cells, None for none. best: the riskiest, for a summary.

    outputs: the measures that these look at, by output.
    """

    query: CellQuery | None
    best: CellQuery
    outputs: Mapping[str, Measure]

    @classmethod
    def of(cls, query: CellQuery | None, view: ScoreView) -> Folding | None:
        """None where a part does not know what has to be known: weights are of all rows."""
        best = Selection(top=TOP_CELLS).query(view)
        looked = [output for one in (query, best) if one is not None for output in one.looked_at]
        outputs = {output: cells.measure for output, cells in view.outputs().items()}
        if any(outputs[output].weighted for output in looked):
            return None
        return cls(query, best, {output: one for output, one in outputs.items() if not one.weighted})


class PartFiles(NamedTuple):
    """Where what is kept of a part lies."""

    cells: Path
    gains: Path
    facts: Path

    @classmethod
    def of(cls, scores: Path) -> PartFiles:
        """scores: the file that all scores would go to."""
        return cls(scores, scores.with_suffix(".gains"), scores.with_suffix(".json"))


class _Piece(NamedTuple):
    """What is kept of some rows; rows of cells count from the first of the part."""

    figures: Figures
    gains: npt.NDArray[np.float64] | None
    cells: FoundCells | None
    best: FoundCells


class FoldWriter:
    """Takes the scores of a part chunk by chunk, as its scores are written else; a context manager.

    out: the file that all scores would go to. sizes: rows of each chunk of the part.
    """

    def __init__(self, out: Path, folding: Folding, job: Job, targets: Sequence[int], sizes: Sequence[int]) -> None:
        self._files = PartFiles.of(out)
        self._folding = folding
        self._job = job
        self._measures = part_measures(job)
        # In the order of the scored columns, which that of cells follows.
        places = [job.targets.index(target) for target in targets]
        self._order = np.argsort(places)
        self._places = np.sort(places)
        self._sizes = sizes
        self._start = 0
        self._figures: list[Figures] = []
        query = folding.query
        self._kept = None if query is None or query.top is None else Riskiest(query.top)
        self._best = Riskiest(TOP_CELLS)
        types = {measure.name: pa.from_numpy_dtype(measure.type_in("float64")) for measure in self._measures}
        self._cells = None
        if query is not None:
            schema = {"place": pa.int64(), "target": pa.int64(), **types}
            self._cells = BatchWriter(self._files.cells, schema)
        self._gains = BatchWriter(self._files.gains, {"gain": pa.float64()}, threads=True)

    def __enter__(self) -> FoldWriter:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if error[0] is None:
                self._finish()
        finally:
            self._gains.__exit__(*error)
            if self._cells is not None:
                self._cells.__exit__(*error)

    def write(self, columns: Sequence[npt.NDArray[Any]]) -> None:
        """The scores of the part's rows of a chunk, in the order of `score_columns`."""
        size, measures = len(columns[0]), len(self._measures)
        raw = {
            measure.name: [columns[place * measures + number] for place in self._order]
            for number, measure in enumerate(self._measures)
        }
        with Workers() as workers:
            starts = range(0, max(size, 1), PIECE_ROWS)
            pieces = workers.run(self._fold, [(raw, slice(start, min(size, start + PIECE_ROWS))) for start in starts])
        self._figures += [piece.figures for piece in pieces]
        gains = [piece.gains for piece in pieces if piece.gains is not None]
        self._gains.write([np.concatenate(gains or [np.empty(0)])])
        found = [piece.cells for piece in pieces if piece.cells is not None]
        for piece in pieces:
            self._best.add(piece.best)
        if self._kept is not None:
            for cells in found:
                self._kept.add(cells)
        elif found:
            self._write_cells(FoundCells.together(found), self._start)
        self._start += size

    def _fold(self, raw: Mapping[str, Sequence[npt.NDArray[Any]]], rows: slice) -> _Piece:
        folding, dtype = self._folding, self._job.dtype
        arrays = {
            output: np.stack([column[rows] for column in raw[measure.name]]).astype(measure.type_in(dtype), copy=False)
            for output, measure in folding.outputs.items()
        }
        by_measure = {measure.name: arrays[output] for output, measure in folding.outputs.items()}
        with Workers(1) as alone:
            figures = Figures.of({name: by_measure[name] for name in SUMMARISED if name in by_measure}, alone)
        gains = by_measure["cig"].sum(axis=0, dtype=np.float64) if "cig" in by_measure else None
        scored = ScoredRows(self._start + rows.start, arrays, None)
        cells = None
        if folding.query is not None:
            least = None if self._kept is None else self._kept.least
            cells = self._with_scores(folding.query.find(scored, least, shown=False), raw)
        best = self._with_scores(folding.best.find(scored, self._best.least, shown=False), raw)
        return _Piece(figures, gains, cells, best.riskiest(TOP_CELLS))

    def _with_scores(self, cells: FoundCells, raw: Mapping[str, Sequence[npt.NDArray[Any]]]) -> FoundCells:
        """Cells with their scores as they were made, by measure, and with the places of the scored columns."""
        rows = cells.rows - self._start
        scores = [np.empty(len(rows), columns[0].dtype) for columns in raw.values()]
        for target in np.unique(cells.targets):
            mine = cells.targets == target
            for out, columns in zip(scores, raw.values(), strict=True):
                out[mine] = columns[target][rows[mine]]
        return cells._replace(targets=self._places[cells.targets], scores=scores)

    def _write_cells(self, cells: FoundCells, start: int) -> None:
        """Cells of a chunk whose first row in the part is `start`."""
        assert self._cells is not None
        self._cells.write([cells.rows - start, cells.targets, *cells.scores])

    def _finish(self) -> None:
        if self._kept is not None:
            cells, start = self._kept.found(), 0
            for size in self._sizes:
                first, last = np.searchsorted(cells.rows, [start, start + size])
                self._write_cells(cells.take(np.arange(first, last)), start)
                start += size
        figures = Figures.together(*self._figures)
        best = self._best.found()
        risks = [] if best.risks is None else best.risks.tolist()
        scores = [array.tolist() for array in best.scores]
        listed = list(zip(best.rows.tolist(), best.targets.tolist(), risks, *scores, strict=True))
        with disk_errors(self._files.facts):
            self._files.facts.write_text(json.dumps({"figures": figures.as_json(), "best": listed}))
