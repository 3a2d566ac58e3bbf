"""What was kept of the scores of all parts, see `fold`, put together in the order of the table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..engines.partition_plan import part_measures
from ..io.documents import parse_json
from ..io.ipc_batches import BatchReader, write_batch
from ..measures import POPULATION_SIZE
from ..results.cell_table import CellLayout
from ..results.riskiest import CellBatch, Riskiest, RiskyCell
from ..results.summary_figures import Figures
from ..rows.threads import Workers
from ..utils.exact_sums import RowSums
from ..utils.progress import Reporter
from .attacker_run import AttackerRun
from .chunks import TableChunks
from .fold import Folding, PartFiles, RawScores
from .gather import StoredScores
from .shuffle import Partitioned

# Of cohorts (scored columns, rows).
Sizes = npt.NDArray[Any]


class FoldedGatherer:
    """Scores a table against one attacker, and puts together what is kept of the scores.

    runs: of the attacker, by fold.
    """

    def __init__(self, runs: Mapping[str, AttackerRun], folding: Folding) -> None:
        self._facts = {fold: run.fold(folding) for fold, run in runs.items()}
        # What is kept of all folds lies with the first.
        first = next(iter(runs.values())).scoring
        self._passes = list(zip(first.passes, first.cuts, strict=True))
        self._scored_columns = list(first.job.scored_columns)
        self._folding = folding
        # In the order in which parts keep them.
        each = [RawScores(fold, one.name) for fold, fact in self._facts.items() for one in part_measures(fact.job)]
        self._place_of = {raw: place for place, raw in enumerate(each)}

    def put_together(self, chunks: TableChunks, places: Sequence[int], report: Reporter) -> None:
        """Fill the facts for the summaries, where no cells are asked for; see `tables`."""
        for _ in self.cells(chunks, places, report):
            pass

    def tables(self, chunks: TableChunks, places: Sequence[int], report: Reporter) -> Iterator[pa.Table]:
        """Tables of the cells; places: of the scored columns among those of the chunks."""
        query = self._folding.query
        assert query is not None
        columns = [chunks.columns[place] for place in places]
        layout = CellLayout.of([column.name for column in columns], query.types, columns)
        found = self.cells(chunks, places, report)
        if query.top is not None:
            kept = Riskiest(query.top)
            for cells in found:
                kept.add(cells)
            found = iter([kept.found().by_risk()])
        yield from layout.tables(found)

    def cells(self, chunks: TableChunks, places: Sequence[int], report: Reporter) -> Iterator[CellBatch]:
        """The cells of each chunk, in the order of the table; the facts of the folds are filled meanwhile."""
        self._put_figures_together()
        for fact in self._facts.values():
            fact.make_folder()
        with contextlib.ExitStack() as files, Workers() as workers:
            sizes_in = {
                fold: files.enter_context(StoredScores(fact.population))
                for fold, fact in self._facts.items()
                if fact.population is not None
            }
            passes = [files.enter_context(_PassReader(pieces, self._folding)) for _, pieces in self._passes]
            start = 0
            for number, size in enumerate(chunks.sizes):
                gains = {fold: RowSums.zeros(size) for fold, fact in self._facts.items() if "cig" in fact.types}
                sizes = {
                    fold: stored.sizes(number, size, self._facts[fold].types[POPULATION_SIZE.name], workers)
                    for fold, stored in sizes_in.items()
                }
                found = []
                for piece in (piece for one in passes for piece in one.pieces(number)):
                    for fold, sums in gains.items():
                        sums.add_at(piece.rows, piece.gains[fold])
                    for fold, place, best in piece.best:
                        self._facts[fold].top.append(self._cell(fold, best, int(piece.rows[place]), start, sizes))
                    if piece.cells is not None:
                        found.append(piece.cells)
                for fold, sums in gains.items():
                    write_batch(self._facts[fold].gains(number), {"rig": sums.rounded()})
                if found:
                    yield self._found(CellBatch.together(found), start, chunks.some_codes(number, places), sizes)
                start += size
                report.advance(size)

    def _put_figures_together(self) -> None:
        places = [
            place for one, _ in self._passes for place in sorted(map(self._scored_columns.index, one.scored_columns))
        ]
        order = np.argsort(places).tolist()
        for fold, fact in self._facts.items():
            of_passes = [
                Figures.together(
                    *(Figures.from_stored(_facts(pieces, part)[fold]["figures"]) for part in _parts(pieces))
                )
                for _, pieces in self._passes
            ]
            fact.figures, fact.top = Figures.beside(*of_passes).some(order), []

    def _cell(self, fold: str, best: _PartCell, row: int, start: int, sizes: Mapping[str, Sizes]) -> RiskyCell:
        """One of the riskiest cells, of a row of a chunk that begins at `start`; sizes: see `_found`."""
        scores = self._scores([np.array([score]) for score in best.scores], np.array([best.scored_column]))
        of_fold = [scores[name] for name, output in self._folding.outputs.items() if output.raw.fold == fold]
        shown = [one[0].item() for one in of_fold]
        if fold in sizes:
            shown.append(sizes[fold][best.scored_column, row].item())
        return RiskyCell(best.risk, start + row, best.scored_column, shown)

    def _found(
        self, cells: CellBatch, start: int, of_rows: Sequence[npt.NDArray[Any]], sizes: Mapping[str, Sizes]
    ) -> CellBatch:
        """Cells of a chunk that begins at row `start`, of several parts, in order, with their values and scores.

        of_rows: the codes of the chunk's rows by scored column. sizes: by fold, of the cohorts in a population.
        """
        query = self._folding.query
        assert query is not None
        cells = cells.take(np.lexsort((cells.scored_columns, cells.rows)))
        arrays = {output: scores[None] for output, scores in self._scores(cells.scores, cells.scored_columns).items()}
        for fold, own in sizes.items():
            arrays[self._folding.sizes[fold]] = own[cells.scored_columns, cells.rows][None]
        codes = np.empty(len(cells.rows), np.int64)
        for scored_column in np.unique(cells.scored_columns):
            mine = cells.scored_columns == scored_column
            codes[mine] = of_rows[scored_column][cells.rows[mine]]
        shown = [one.of(arrays)[0] for one in query.shown.values()]
        return CellBatch(cells.rows + start, cells.scored_columns, codes, query.risks(arrays), shown)

    def _scores(
        self, raw: Sequence[npt.NDArray[Any]], scored_columns: npt.NDArray[np.int64]
    ) -> dict[str, npt.NDArray[Any]]:
        """By output, scores as they were made in the type and with the weights that they are to have."""
        found = {}
        for name, output in self._folding.outputs.items():
            weights = np.array(self._facts[output.raw.fold].weights)[scored_columns]
            found[name] = output.of(raw[self._place_of[output.raw]], weights)
        return found


class _PartCell(NamedTuple):
    """One of the riskiest cells of a part: its row there, and its scores as they were made."""

    row: int
    scored_column: int
    risk: float
    scores: list[Any]


class _ChunkPiece(NamedTuple):
    """What was kept of the rows of a chunk that lie in one part.

    rows: of the chunk, in the order of the part. gains: by fold sums of their CIG, none where it was not scored. best:
    the riskiest cells of the part that are here, each with its fold and its place among these rows.
    """

    rows: npt.NDArray[Any]
    gains: dict[str, RowSums]
    best: list[tuple[str, int, _PartCell]]
    cells: CellBatch | None


class _PassReader:
    """Reads what was kept of the parts of a pass, chunk by chunk; a context manager."""

    def __init__(self, pieces: Partitioned, folding: Folding) -> None:
        self._pieces = pieces
        self._folds = list(folding.best)
        self._files = contextlib.ExitStack()
        self._parts = _parts(pieces)
        paths = {part: PartFiles.of(pieces.scores(part)) for part in self._parts}
        self._gains = {part: self._files.enter_context(BatchReader(path.gains)) for part, path in paths.items()}
        kept = {} if folding.query is None else paths
        self._cells = {part: self._files.enter_context(BatchReader(path.cells)) for part, path in kept.items()}
        self._best = {
            part: [
                (fold, _PartCell(row, scored_column, risk, scores))
                for fold, facts in _facts(pieces, part).items()
                for row, scored_column, risk, *scores in facts["best"]
            ]
            for part in self._parts
        }
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
            here = range(before, before + size)
            best = [(fold, cell.row - before, cell) for fold, cell in self._best[part] if cell.row in here]
            halves = iter(self._gains[part].arrays(chunk))
            gains = {fold: RowSums(high, low) for fold, high, low in zip(self._folds, halves, halves, strict=True)}
            cells = None
            if part in self._cells:
                places, scored_columns, *scores = self._cells[part].arrays(chunk)
                cells = CellBatch(rows[places], scored_columns, None, None, scores)
            yield _ChunkPiece(rows, gains, best, cells)
            start += size
            self._before[part] += size


def _parts(pieces: Partitioned) -> list[int]:
    """The parts that have rows."""
    return [part for part in range(pieces.parts) if any(pieces.sizes[part])]


def _facts(pieces: Partitioned, part: int) -> dict[str, Any]:
    """By fold what was kept of a part."""
    facts: dict[str, Any] = parse_json(PartFiles.of(pieces.scores(part)).facts.read_text())
    return facts
