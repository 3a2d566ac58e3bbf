"""What was kept of the scores of all parts, see `fold`, put together in the order of the table."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..engines.partition_plan import Pass, computed_measure, part_measures
from ..io.ipc_batches import BatchReader, write_batch
from ..results.base import Cell
from ..results.cell_layout import CellLayout
from ..results.figures import Figures
from ..results.riskiest import riskiest
from ..results.selection import FoundCells, Riskiest
from ..results.summary import TOP_CELLS
from ..utils.progress import Reporter
from .chunks import TableChunks
from .fold import Folding, PartFiles
from .gather import ScoreFacts
from .passes import PartitionedRun
from .shuffle import Partitioned


class FoldedGatherer(ScoreFacts):
    """What was kept of the scores of a table: cells that were asked for, and what a summary needs; see `Gatherer`."""

    def __init__(self, scoring: PartitionedRun, weights: Sequence[float], folder: Path, folding: Folding) -> None:
        super().__init__(scoring.job, weights, folder)
        self._scoring = scoring
        self._query = folding.query
        self._best: list[Cell] = []

    def figures_and_top(self, chunks: int) -> tuple[Figures, list[Cell]]:
        each = [
            Figures.together(*(Figures(**_facts(pieces, part)["figures"]) for part in _parts(pieces)))
            for pieces in self._scoring.cuts
        ]
        places = [place for one in self._scoring.passes for place in sorted(map(self.job.targets.index, one.targets))]
        figures = Figures.beside(*each).of_columns(np.argsort(places).tolist())
        return figures, riskiest(self._best, TOP_CELLS)

    def tables(self, chunks: TableChunks, places: Sequence[int], report: Reporter) -> Iterator[pa.Table]:
        """Tables of the cells; places: of the scored columns among those of the chunks."""
        assert self._query is not None
        columns = [chunks.columns[place] for place in places]
        layout = CellLayout.of([column.name for column in columns], self._query.types, columns)
        found = self.cells(chunks, places, report)
        if self._query.top is not None:
            kept = Riskiest(self._query.top)
            for cells in found:
                kept.add(cells)
            found = iter([kept.found().by_risk()])
        yield from layout.tables(found)

    def cells(self, chunks: TableChunks, places: Sequence[int], report: Reporter) -> Iterator[FoundCells]:
        """The cells of each chunk, in the order of the table; what a summary needs is kept meanwhile."""
        self._best = []
        with contextlib.ExitStack() as files:
            passes = [
                files.enter_context(_PassReader(one, pieces, self._query is not None))
                for one, pieces in zip(self._scoring.passes, self._scoring.cuts, strict=True)
            ]
            start = 0
            for number, size in enumerate(chunks.sizes):
                gains = np.zeros(size)
                found = []
                for one in passes:
                    for piece in one.pieces(number):
                        if len(piece.gains):
                            gains[piece.rows] += piece.gains
                        self._best += [self._cell(best, start + int(piece.rows[place])) for place, best in piece.best]
                        if piece.cells is not None:
                            found.append(piece.cells)
                if "cig" in self.types:
                    write_batch(self.gains(number), {"rig": gains})
                if found and self._query is not None:
                    yield self._found(FoundCells.together(found), start, chunks, places, number)
                start += size
                report.advance(size)

    def _cell(self, best: _BestCell, row: int) -> Cell:
        scores = self._scores([np.array([score]) for score in best.scores], np.array([best.target]))
        return Cell(best.risk, row, best.target, [scores[name][0].item() for name in self.measures])

    def _found(
        self, cells: FoundCells, start: int, chunks: TableChunks, places: Sequence[int], number: int
    ) -> FoundCells:
        """Cells of a chunk that begins at row `start`, of several parts, in order, with their values and scores."""
        query = self._query
        assert query is not None
        cells = cells.take(np.lexsort((cells.targets, cells.rows)))
        scores = self._scores(cells.scores, cells.targets)
        arrays = {output: scores[one.measure.name][None] for output, one in query.shown.items()}
        codes, of_rows = np.empty(len(cells.rows), np.int64), chunks.some_codes(number, places)
        for target in np.unique(cells.targets):
            mine = cells.targets == target
            codes[mine] = of_rows[target][cells.rows[mine]]
        shown = [one.of(arrays)[0] for one in query.shown.values()]
        return FoundCells(cells.rows + start, cells.targets, codes, query.risks(arrays), shown)

    def _scores(self, raw: Sequence[npt.NDArray[Any]], targets: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
        """By measure, scores as they were made in the type and with the weights that they are to have."""
        place_of = {measure.name: place for place, measure in enumerate(part_measures(self.job))}
        weights = np.array(self.weights)
        found = {}
        for measure in self.job.measures:
            values = raw[place_of[computed_measure(measure)]]
            found[measure.name] = (weights[targets] * values if measure.weighted else values).astype(
                self.types[measure.name], copy=False
            )
        return found


class _BestCell(NamedTuple):
    """One of the riskiest cells of a part: its row there, and its scores as they were made."""

    row: int
    target: int
    risk: float
    scores: list[Any]


class _ChunkPiece(NamedTuple):
    """What was kept of the rows of a chunk that lie in one part.

    rows: of the chunk, in the order of the part. gains: sums of their CIG, none where it was not scored. best: the
    riskiest cells of the part that are here, each with its place among these rows.
    """

    rows: npt.NDArray[Any]
    gains: npt.NDArray[np.float64]
    best: list[tuple[int, _BestCell]]
    cells: FoundCells | None


class _PassReader:
    """Reads what was kept of the parts of a pass, chunk by chunk; a context manager. cells: whether cells were."""

    def __init__(self, one: Pass, pieces: Partitioned, cells: bool) -> None:
        self._pieces = pieces
        self._files = contextlib.ExitStack()
        self._parts = _parts(pieces)
        paths = {part: PartFiles.of(pieces.scores(part)) for part in self._parts}
        self._gains = {part: self._files.enter_context(BatchReader(path.gains)) for part, path in paths.items()}
        self._cells = {
            part: self._files.enter_context(BatchReader(path.cells)) for part, path in paths.items() if cells
        }
        self._best = {part: [_best(*facts) for facts in _facts(pieces, part)["best"]] for part in self._parts}
        # Rows of each part in the chunks before.
        self._before = dict.fromkeys(self._parts, 0)

    def __enter__(self) -> _PassReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def pieces(self, chunk: int) -> Iterator[_ChunkPiece]:
        """Those of a chunk; chunks are asked for in order."""
        order, start = self._pieces.order(chunk), 0
        for part in self._parts:
            size, before = self._pieces.sizes[part][chunk], self._before[part]
            if not size:
                continue
            rows = np.arange(start, start + size) if order is None else order[start : start + size]
            best = [(cell.row - before, cell) for cell in self._best[part] if before <= cell.row < before + size]
            (gains,) = self._gains[part].arrays(chunk)
            cells = None
            if part in self._cells:
                places, targets, *scores = self._cells[part].arrays(chunk)
                cells = FoundCells(rows[places], targets, None, None, scores)
            yield _ChunkPiece(rows, gains, best, cells)
            start += size
            self._before[part] += size


def _best(row: int, target: int, risk: float, *scores: Any) -> _BestCell:
    return _BestCell(row, target, risk, list(scores))


def _parts(pieces: Partitioned) -> list[int]:
    """The parts that have rows."""
    return [part for part in range(pieces.parts) if any(pieces.sizes[part])]


def _facts(pieces: Partitioned, part: int) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(PartFiles.of(pieces.scores(part)).facts.read_text())
    return facts
