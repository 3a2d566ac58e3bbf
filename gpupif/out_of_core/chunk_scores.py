"""The last stage: the scores of all partitions and attackers, chunk by chunk in the order of the table.

The facts that a summary needs are kept on the way.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..engines.partition_plan import computed_measure
from ..io.documents import parse_json
from ..io.file_errors import disk_errors
from ..io.ipc_batches import write_batch
from ..measures import POPULATION_SIZE, find_measure
from ..results.riskiest import RiskyCell, riskiest, riskiest_in
from ..results.score_outputs import ScoredAttacker
from ..results.summary import TOP_CELLS
from ..results.summary_figures import SUMMARISED, Figures
from ..rows.threads import Workers
from ..utils.exact_sums import sum_rows
from ..utils.private_folder import private_folder, write_private
from .table_scoring import StoredScores, TableScoring, score_name

Piece = TypeVar("Piece")


class ChunkFacts(NamedTuple):
    """Facts of a chunk for the summary: its figures, and the candidates for the riskiest cells."""

    figures: Figures
    top: list[RiskyCell]

    @classmethod
    def read(cls, file: Path) -> ChunkFacts:
        """Return the facts that `write` wrote."""
        facts = parse_json(file.read_text())
        return cls(Figures.from_stored(facts["figures"]), [RiskyCell(*cell) for cell in facts["top"]])

    def write(self, file: Path) -> None:
        """Write the facts to a file, which appears whole or not at all."""
        with disk_errors(file):
            write_private(file, json.dumps({"figures": self.figures.to_stored(), "top": self.top}).encode())


class AttackerScores:
    """The scores against one attacker, chunk by chunk: arrays by measure (scored columns, rows of the chunk).

    scoring: TableScoring. The scored table.
    fold: str. "", or the name of the worst or mean over attackers.
    weights: list of float, one for each scored column.
    folder: Path. The folder for facts and row information gains of chunks.
    """

    def __init__(self, scoring: TableScoring, fold: str, weights: Sequence[float], folder: Path) -> None:
        self.job = job = scoring.fold_job(fold)
        self.weights = weights
        self.folder = folder
        # The type of each measure's scores. Sizes of cohorts in a population are last.
        self.types = {measure.name: measure.type_in(job.dtype) for measure in job.measures}
        size_type = scoring.size_type(fold)
        if size_type is not None:
            self.types[POPULATION_SIZE.name] = size_type
        self._scoring = scoring
        self._fold = fold
        # TOP_CELLS cells are at least this risky, so less risky cells need not be kept.
        self._least = -np.inf

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in order."""
        return list(self.types)

    @property
    def by(self) -> str:
        """The name of the measure that ranks cells by risk."""
        return "cig" if "cig" in self.types else self.measures[0]

    def gains(self, number: int) -> Path:
        """Return the file with the row information gains of a chunk."""
        return self.folder / f"rig-{number:06}.arrow"

    def make_folder(self) -> None:
        """Make the folder for facts."""
        with disk_errors(self.folder):
            private_folder(self.folder)

    def chunks(self, first: int, last: int, sizes: Sequence[int], row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Yield the scores of the chunks `first` to `last` - 1.

        sizes: list of int. The number of rows of all chunks.
        row: int. Facts for the summary are kept of chunks that begin at this row or later.
        """
        with Workers() as workers, StoredScores(self._scoring) as scores:
            start = sum(sizes[:first])
            for number in range(first, last):
                arrays = self._chunk(number, sizes[number], scores, workers)
                if start >= row:
                    self._keep_facts(number, start, arrays, workers)
                start += sizes[number]
                yield arrays

    def multiple(self, measure: str) -> tuple[str, Sequence[float]] | None:
        """Return the measure that this measure is a multiple of, with the factors of the scored columns; else None."""
        asked = next((one for one in self.job.measures if one.name == measure), None)
        # Scores of 32 bits are multiplied before they are rounded, so the product of rounded scores would differ.
        if asked is None or not asked.weighted or self.types[measure] != "float64":
            return None
        of = computed_measure(asked)
        return (of, self.weights) if of in self.types else None

    def facts(self, number: int) -> Path:
        """Return the file with the facts of a chunk."""
        return self.folder / f"facts-{number:06}.json"

    def figures_and_top(self, chunks: int) -> tuple[Figures, list[RiskyCell]]:
        """Return the figures of all rows, and the riskiest cells, from the facts of all chunks.

        chunks: int. The number of chunks.
        """
        facts = [ChunkFacts.read(self.facts(number)) for number in range(chunks)]
        figures = Figures.together(*(chunk.figures for chunk in facts))
        return figures, riskiest((cell for chunk in facts for cell in chunk.top), TOP_CELLS)

    def _chunk(self, number: int, size: int, scores: StoredScores, workers: Workers) -> dict[str, npt.NDArray[Any]]:
        job, fold = self.job, self._fold
        arrays = {name: np.empty((len(job.scored_columns), size), kind) for name, kind in self.types.items()}
        outs: dict[str, list[tuple[Any, npt.NDArray[Any]]]] = {}
        for slot, scored_column in enumerate(job.scored_columns):
            for measure in job.measures:
                # Multiply in the type that engines use, so that the product is the same to the last bit.
                factor: Any = self.weights[slot] if measure.weighted else 1 if measure.dtype == "int64" else 1.0
                name = score_name(scored_column, fold, computed_measure(measure))
                outs.setdefault(name, []).append((factor, arrays[measure.name][slot]))
            if POPULATION_SIZE.name in arrays:
                name = score_name(scored_column, fold, POPULATION_SIZE.name)
                outs.setdefault(name, []).append((1, arrays[POPULATION_SIZE.name][slot]))
        scores.fill(number, outs, workers)
        return arrays

    def _keep_facts(self, number: int, row: int, arrays: dict[str, npt.NDArray[Any]], workers: Workers) -> None:
        """Write the facts for the summary of a chunk that begins at `row`."""
        figures = Figures.of({name: arrays[name] for name in SUMMARISED if name in arrays}, workers)
        if "cig" in arrays:
            write_batch(self.gains(number), {"rig": sum_rows(arrays["cig"])})
        shown = list(arrays.values())
        top = riskiest_in(find_measure(self.by), arrays[self.by], shown, TOP_CELLS, row, self._least)
        if len(top) == TOP_CELLS:
            self._least = max(self._least, top[-1].risk)
        ChunkFacts(figures, top).write(self.facts(number))


class RowReader(Generic[Piece]):
    """The reader of ranges of rows, in order, from chunks that follow each other.

    pieces: iterator of chunks.
    first: int. The first row of the first chunk.
    size: function that returns the number of rows of a chunk.
    cut: function that returns a slice of a chunk.
    """

    def __init__(
        self, pieces: Iterator[Piece], first: int, size: Callable[[Piece], int], cut: Callable[[Piece, slice], Piece]
    ) -> None:
        self._pieces = pieces
        self._start = self._stop = first
        self._piece: Piece | None = None
        self._size = size
        self._cut = cut

    def between(self, start: int, stop: int) -> Iterator[Piece]:
        """Yield the rows `start` to `stop` - 1, chunk by chunk."""
        while start < stop:
            if self._piece is None or start >= self._stop:
                # Free the memory of a chunk before the next chunk is made.
                self._piece = None
                self._piece = next(self._pieces)
                self._start, self._stop = self._stop, self._stop + self._size(self._piece)
                continue
            end = min(stop, self._stop)
            yield self._cut(self._piece, slice(start - self._start, end - self._start))
            start = end


def prefetched(items: Iterator[Any]) -> Generator[Any]:
    """Yield the same items; a thread makes the next item while the caller uses the current one."""

    def make() -> Any:
        return next(items, None)

    # The thread has to see the settings of `gpupif.config` too.
    here = copy_context()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(here.run, make)
        while (item := coming.result()) is not None:
            coming = pool.submit(here.run, make)
            yield item
            del item


class JointScores:
    """The scores against all attackers, in order, chunk by chunk.

    attacker_scores: for each attacker its scores, by fold.
    """

    def __init__(self, attacker_scores: Sequence[tuple[ScoredAttacker, Mapping[str, AttackerScores]]]) -> None:
        self._by_attacker = {(one.name, fold): each for one, folds in attacker_scores for fold, each in folds.items()}
        # The attacker, fold and measure of each output, in the order of the score columns.
        self._order = {
            attacker.output(measure, fold): (attacker.name, fold, measure)
            for attacker, folds in attacker_scores
            for measure in next(iter(folds.values())).measures
            for fold in folds
        }

    def multiples(self) -> dict[str, tuple[str, Sequence[float]]]:
        """Return, by output, the output and the factors that give it; see `AttackerScores.multiple`."""
        outputs = {of: output for output, of in self._order.items()}
        found: dict[str, tuple[str, Sequence[float]]] = {}
        for output, (name, fold, measure) in self._order.items():
            multiple = self._by_attacker[name, fold].multiple(measure)
            if multiple is not None:
                found[output] = outputs[name, fold, multiple[0]], multiple[1]
        return found

    def make_folders(self) -> None:
        """Make the folders for facts."""
        for chunk_scores in self._by_attacker.values():
            chunk_scores.make_folder()

    def nothing(self) -> list[npt.NDArray[Any]]:
        """Return the score columns, without rows."""
        return [
            np.empty(0, self._by_attacker[name, fold].types[measure])
            for name, fold, measure in self._order.values()
            for _ in self._by_attacker[name, fold].job.scored_columns
        ]

    def chunks(self, first: int, last: int, sizes: Sequence[int], row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Yield the scores of chunks by output, in the order of the score columns; see `AttackerScores.chunks`."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(chunk_scores.chunks(first, last, sizes, row)))
                for chunk_scores in self._by_attacker.values()
            ]
            for several in zip(*made, strict=True):
                parts = dict(zip(self._by_attacker, several, strict=True))
                yield {output: parts[name, fold][measure] for output, (name, fold, measure) in self._order.items()}
