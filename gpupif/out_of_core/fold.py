"""Scores of a part folded while they are made: cells that are asked for, what a summary needs, and nothing else.

All that has to be known of a cell is known in its part where there is one attacker. Weights of columns, which are of
all parts, are found before where cells are chosen by them; the sizes of cohorts in a population come afterwards, for
those that are kept. Kept are cells that come in question, chunk by chunk; of each row the sum of its CIG; figures, and
the riskiest cells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.known_subsets import fold_of
from ..engines.partition_plan import computed_measure
from ..io.file_errors import disk_errors
from ..io.ipc_batches import BatchWriter
from ..measures import POPULATION_SIZE
from ..results.figures import SUMMARISED, Figures
from ..results.outputs import ScoreView
from ..results.selection import SEARCHED_ROWS, CellBatch, CellQuery, Riskiest, ScoredRows, Selection
from ..results.summary import TOP_CELLS
from ..rows.threads import Workers
from ..utils.exact_sums import RowSums
from ..utils.private_folder import write_private


class RawScores(NamedTuple):
    """Scores as parts make them, in float64, before weighting.

    fold: "worst" or "mean", of any few columns; else "".
    """

    fold: str
    measure: str


class Output(NamedTuple):
    """What is made of them. dtype: of the output; weighted: by the column's weight."""

    raw: RawScores
    dtype: str
    weighted: bool

    def of(self, scores: npt.NDArray[Any], weights: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
        """The output of scores as parts make them; weights: of the column of each."""
        return (weights * scores if self.weighted else scores).astype(self.dtype, copy=False)


@dataclass(frozen=True)
class Folding:
    """What is kept of the scores against one attacker.

    query: cells, None for none. best: by fold the riskiest cells, for its summary. outputs: by name, in order. sizes:
    by fold the output that has the sizes of cohorts in a population, which other parts find. weights: of the scored
    columns by fold, as far as they are known.
    """

    query: CellQuery | None
    best: Mapping[str, CellQuery]
    outputs: Mapping[str, Output]
    sizes: Mapping[str, str]
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, query: CellQuery | None, view: ScoreView) -> Folding:
        """view: of the attacker."""
        (attacker,) = view.attackers
        folds = [""] if attacker.subsets is None else list(attacker.folds)
        outputs = {}
        for measure in view.measures:
            if measure.name == POPULATION_SIZE.name:
                continue
            for fold in folds:
                kind = fold_of(measure, fold) if fold else measure
                raw = RawScores(fold, computed_measure(kind))
                outputs[attacker.output(measure.name, fold)] = Output(raw, kind.type_in(view.dtype), kind.weighted)
        best = {fold: Selection(top=TOP_CELLS).query(replace(view, fold=fold or None)) for fold in folds}
        sizes = {fold: attacker.output(POPULATION_SIZE.name, fold) for fold in folds}
        return cls(query, best, outputs, {fold: name for fold, name in sizes.items() if name in view.types()})

    @property
    def by_weights(self) -> bool:
        """Whether cells are chosen by weighted scores, so that weights have to be known before."""
        queries = [*self.best.values(), *([] if self.query is None else [self.query])]
        return any(self.outputs[output].weighted for query in queries for output in query.looked_at)

    def weighted(self, weights: Mapping[str, Sequence[float]]) -> Folding:
        """The same with weights."""
        return replace(self, weights=weights)

    @property
    def files(self) -> int:
        """How many files of a part are read together, see `PartFiles`."""
        return 1 + (self.query is not None) + bool(self.sizes)

    def output(self, fold: str, measure: str) -> str | None:
        """The output that has the scores of a measure as they are; None where there is none."""
        found = (name for name, one in self.outputs.items() if one.raw == (fold, measure) and not one.weighted)
        return next(found, None)


class PartFiles(NamedTuple):
    """Where what is kept of a part lies."""

    cells: Path
    gains: Path
    facts: Path

    @classmethod
    def of(cls, scores: Path) -> PartFiles:
        """scores: the file that all scores would go to."""
        return cls(scores, scores.with_suffix(".gains"), scores.with_suffix(".json"))


class _FoldPiece(NamedTuple):
    """What a summary needs of the scores of a fold."""

    figures: Figures
    gains: RowSums
    best: CellBatch


class _Piece(NamedTuple):
    """What is kept of some rows; rows of cells count from the first of the part. folds: by fold."""

    cells: CellBatch | None
    folds: dict[str, _FoldPiece]


class FoldWriter:
    """Takes the scores of a part chunk by chunk, as its scores are written else; a context manager.

    out: the file that all scores would go to. kinds: of the scores of a scored column, in their order, and their
    types. sizes: rows of each chunk of the part.
    """

    def __init__(
        self,
        out: Path,
        folding: Folding,
        kinds: Mapping[RawScores, str],
        places: Sequence[int],
        sizes: Sequence[int],
    ) -> None:
        self._files = PartFiles.of(out)
        self._folding = folding
        self._kinds = list(kinds)
        # In the order of the scored columns, which that of cells follows.
        self._order = np.argsort(places)
        self._places = np.sort(places)
        self._sizes = sizes
        self._start = 0
        query = folding.query
        self._kept = None if query is None or query.top is None else Riskiest(query.top)
        self._figures: dict[str, list[Figures]] = {fold: [] for fold in folding.best}
        self._best = {fold: Riskiest(TOP_CELLS) for fold in folding.best}
        types = {f"{number}": pa.from_numpy_dtype(np.dtype(kind)) for number, kind in enumerate(kinds.values())}
        schema = {"place": pa.int64(), "scored_column": pa.int64(), **types}
        self._cells = None if query is None else BatchWriter(self._files.cells, schema)
        halves = [f"{fold} {half}" for fold in folding.best for half in RowSums._fields]
        self._gains = BatchWriter(self._files.gains, dict.fromkeys(halves, pa.float64()), threads=True)

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

    def write(self, scores: Sequence[Any]) -> None:
        """The scores of the part's rows of a chunk: one scored column after the other, of each all kinds."""
        columns, kinds = [np.asarray(column) for column in scores], len(self._kinds)
        size = len(columns[0])
        raw = {
            kind: [columns[place * kinds + number] for place in self._order] for number, kind in enumerate(self._kinds)
        }
        starts = range(0, max(size, 1), SEARCHED_ROWS)
        with Workers() as workers:
            pieces = workers.run(
                self._fold, [(raw, slice(start, min(size, start + SEARCHED_ROWS))) for start in starts]
            )
        for fold, best in self._best.items():
            self._figures[fold] += [piece.folds[fold].figures for piece in pieces]
            for piece in pieces:
                best.add(piece.folds[fold].best)
        gains = [[piece.folds[fold].gains for piece in pieces] for fold in self._best]
        self._gains.write([np.concatenate(half) for several in gains for half in zip(*several, strict=True)])
        found = [piece.cells for piece in pieces if piece.cells is not None]
        if self._kept is not None:
            for cells in found:
                self._kept.add(cells)
        elif found:
            self._write_cells(CellBatch.together(found), self._start)
        self._start += size

    def _fold(self, raw: Mapping[RawScores, Sequence[npt.NDArray[Any]]], rows: slice) -> _Piece:
        folding = self._folding
        arrays = {}
        for name, output in folding.outputs.items():
            weights = folding.weights.get(output.raw.fold)
            if weights is not None or not output.weighted:
                of_columns = np.ones(0) if weights is None else np.array(weights)[self._places, None]
                arrays[name] = output.of(np.stack([column[rows] for column in raw[output.raw]]), of_columns)
        scored = ScoredRows(self._start + rows.start, arrays, None)
        cells = None
        if folding.query is not None:
            least = None if self._kept is None else self._kept.least
            cells = self._with_scores(folding.query.find(scored, least, shown=False), raw)
        folds = {}
        for fold, query in folding.best.items():
            outputs = {measure: folding.output(fold, measure) for measure in SUMMARISED}
            there = {measure: arrays[output] for measure, output in outputs.items() if output is not None}
            with Workers(1) as alone:
                figures = Figures.of(there, alone)
            gains = RowSums.of(there.get("cig", ())) or RowSums.zeros(0)
            best = query.find(scored, self._best[fold].least, shown=False).riskiest(TOP_CELLS)
            folds[fold] = _FoldPiece(figures, gains, self._with_scores(best, raw))
        return _Piece(cells, folds)

    def _with_scores(self, cells: CellBatch, raw: Mapping[RawScores, Sequence[npt.NDArray[Any]]]) -> CellBatch:
        """Cells with their scores as they were made, by kind, and with the places of the scored columns."""
        rows = cells.rows - self._start
        scores = [np.empty(len(rows), columns[0].dtype) for columns in raw.values()]
        for scored_column in np.unique(cells.scored_columns):
            mine = cells.scored_columns == scored_column
            for out, columns in zip(scores, raw.values(), strict=True):
                out[mine] = columns[scored_column][rows[mine]]
        return cells._replace(scored_columns=self._places[cells.scored_columns], scores=scores)

    def _write_cells(self, cells: CellBatch, start: int) -> None:
        """Cells of a chunk whose first row in the part is `start`."""
        assert self._cells is not None
        self._cells.write([cells.rows - start, cells.scored_columns, *cells.scores])

    def _finish(self) -> None:
        if self._kept is not None:
            cells, start = self._kept.found(), 0
            for size in self._sizes:
                first, last = np.searchsorted(cells.rows, [start, start + size])
                self._write_cells(cells.take(np.arange(first, last)), start)
                start += size
        facts = {
            fold: {"figures": Figures.together(*self._figures[fold]).to_stored(), "best": _listed(best.found())}
            for fold, best in self._best.items()
        }
        with disk_errors(self._files.facts):
            write_private(self._files.facts, json.dumps(facts).encode())


def _listed(cells: CellBatch) -> list[Any]:
    """Cells as `_PartCell` has them, ready for JSON."""
    assert cells.risks is not None
    scores = [array.tolist() for array in cells.scores]
    return list(zip(cells.rows.tolist(), cells.scored_columns.tolist(), cells.risks.tolist(), *scores, strict=True))
