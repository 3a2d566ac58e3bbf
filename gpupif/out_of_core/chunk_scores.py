"""The last stage: scores of all parts, and of all attackers, put together in the order of the table.

What a summary needs of them is kept meanwhile.
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
        """Keep them; the file appears whole."""
        with disk_errors(file):
            write_private(file, json.dumps({"figures": self.figures.to_stored(), "top": self.top}).encode())


class AttackerScores:
    """Puts scores together: chunk number to arrays by measure (scored columns, rows of the chunk).

    weights: of the job's scored columns. folder: for facts and row information gains by chunk.
    """

    def __init__(self, scoring: TableScoring, fold: str, weights: Sequence[float], folder: Path) -> None:
        self.job = job = scoring.fold_job(fold)
        self.weights = weights
        self.folder = folder
        # The type of the scores of each measure; those of the population come after all others.
        self.types = {measure.name: measure.type_in(job.dtype) for measure in job.measures}
        size_type = scoring.size_type(fold)
        if size_type is not None:
            self.types[POPULATION_SIZE.name] = size_type
        self._scoring = scoring
        self._fold = fold
        # So many cells as are wanted are known to be at least so risky.
        self._least = -np.inf

    @property
    def measures(self) -> list[str]:
        """Names of the measures, in order."""
        return list(self.types)

    @property
    def by(self) -> str:
        """The measure by which cells are risky."""
        return "cig" if "cig" in self.types else self.measures[0]

    def gains(self, number: int) -> Path:
        """Return the file of the row information gains of a chunk."""
        return self.folder / f"rig-{number:06}.arrow"

    def make_folder(self) -> None:
        """Make the place of facts."""
        with disk_errors(self.folder):
            private_folder(self.folder)

    def chunks(self, first: int, last: int, sizes: Sequence[int], row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """The scores of the chunks `first` to `last` - 1; sizes: rows of all chunks.

        What a summary needs is kept of those that begin at `row` or later.
        """
        with Workers() as workers, StoredScores(self._scoring) as scores:
            start = sum(sizes[:first])
            for number in range(first, last):
                arrays = self._chunk(number, sizes[number], scores, workers)
                if start >= row:
                    self._note(number, start, arrays, workers)
                start += sizes[number]
                yield arrays

    def multiple(self, measure: str) -> tuple[str, Sequence[float]] | None:
        """The measure of which this one is a multiple, and the factor by scored column; None where there is none."""
        asked = next((one for one in self.job.measures if one.name == measure), None)
        # Scores of 32 bits are multiplied before they are rounded.
        if asked is None or not asked.weighted or self.types[measure] != "float64":
            return None
        of = computed_measure(asked)
        return (of, self.weights) if of in self.types else None

    def facts(self, number: int) -> Path:
        """Return the file of the facts of a chunk."""
        return self.folder / f"facts-{number:06}.json"

    def figures_and_top(self, chunks: int) -> tuple[Figures, list[RiskyCell]]:
        """Return the figures of all rows, and the riskiest cells, after all of so many chunks were put together."""
        facts = [ChunkFacts.read(self.facts(number)) for number in range(chunks)]
        figures = Figures.together(*(chunk.figures for chunk in facts))
        return figures, riskiest((cell for chunk in facts for cell in chunk.top), TOP_CELLS)

    def _chunk(self, number: int, size: int, scores: StoredScores, workers: Workers) -> dict[str, npt.NDArray[Any]]:
        job, fold = self.job, self._fold
        arrays = {name: np.empty((len(job.scored_columns), size), kind) for name, kind in self.types.items()}
        outs: dict[str, list[tuple[Any, npt.NDArray[Any]]]] = {}
        for slot, scored_column in enumerate(job.scored_columns):
            for measure in job.measures:
                # In the type of the scores as engines have them, so that the product is what theirs is.
                factor: Any = self.weights[slot] if measure.weighted else 1 if measure.dtype == "int64" else 1.0
                name = score_name(scored_column, fold, computed_measure(measure))
                outs.setdefault(name, []).append((factor, arrays[measure.name][slot]))
            if POPULATION_SIZE.name in arrays:
                name = score_name(scored_column, fold, POPULATION_SIZE.name)
                outs.setdefault(name, []).append((1, arrays[POPULATION_SIZE.name][slot]))
        scores.fill(number, outs, workers)
        return arrays

    def _note(self, number: int, row: int, arrays: dict[str, npt.NDArray[Any]], workers: Workers) -> None:
        """Keep what a summary needs of a chunk that begins at `row`."""
        figures = Figures.of({name: arrays[name] for name in SUMMARISED if name in arrays}, workers)
        if "cig" in arrays:
            write_batch(self.gains(number), {"rig": sum_rows(arrays["cig"])})
        shown = list(arrays.values())
        top = riskiest_in(find_measure(self.by), arrays[self.by], shown, TOP_CELLS, row, self._least)
        if len(top) == TOP_CELLS:
            self._least = max(self._least, top[-1].risk)
        ChunkFacts(figures, top).write(self.facts(number))


class RowReader(Generic[Piece]):
    """Reads ranges of rows, in order, from pieces that follow each other.

    first: row of the table that these begin with. size: tells the rows of a piece; cut: takes those of a slice.
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
        """The rows start to stop, piece by piece."""
        while start < stop:
            if self._piece is None or start >= self._stop:
                # Its memory is free before the next one comes.
                self._piece = None
                self._piece = next(self._pieces)
                self._start, self._stop = self._stop, self._stop + self._size(self._piece)
                continue
            end = min(stop, self._stop)
            yield self._cut(self._piece, slice(start - self._start, end - self._start))
            start = end


def prefetched(items: Iterator[Any]) -> Generator[Any]:
    """The same items, each made in a thread while the one before it is used."""

    def make() -> Any:
        return next(items, None)

    # What `gpupif.config` says here holds in the thread, too.
    here = copy_context()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(here.run, make)
        while (item := coming.result()) is not None:
            coming = pool.submit(here.run, make)
            yield item
            del item


class JointScores:
    """The attacker_scores of all attackers, in order, by fold."""

    def __init__(self, attacker_scores: Sequence[tuple[ScoredAttacker, Mapping[str, AttackerScores]]]) -> None:
        self._attacker_scores = {
            (one.name, fold): each for one, folds in attacker_scores for fold, each in folds.items()
        }
        # By output, attackers, folds and measures in the order of the score columns.
        self._order = {
            attacker.output(measure, fold): (attacker.name, fold, measure)
            for attacker, folds in attacker_scores
            for measure in next(iter(folds.values())).measures
            for fold in folds
        }

    def multiples(self) -> dict[str, tuple[str, Sequence[float]]]:
        """Return, by output, of which output it is a multiple, and the factors; see `AttackerScores.multiple`."""
        outputs = {of: output for output, of in self._order.items()}
        found: dict[str, tuple[str, Sequence[float]]] = {}
        for output, (name, fold, measure) in self._order.items():
            multiple = self._attacker_scores[name, fold].multiple(measure)
            if multiple is not None:
                found[output] = outputs[name, fold, multiple[0]], multiple[1]
        return found

    def make_folders(self) -> None:
        """Make the places of facts."""
        for chunk_scores in self._attacker_scores.values():
            chunk_scores.make_folder()

    def nothing(self) -> list[npt.NDArray[Any]]:
        """The score columns, without rows."""
        return [
            np.empty(0, self._attacker_scores[name, fold].types[measure])
            for name, fold, measure in self._order.values()
            for _ in self._attacker_scores[name, fold].job.scored_columns
        ]

    def chunks(self, first: int, last: int, sizes: Sequence[int], row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """See `AttackerScores`; the arrays of all by output, in the order of the score columns."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(chunk_scores.chunks(first, last, sizes, row)))
                for chunk_scores in self._attacker_scores.values()
            ]
            for several in zip(*made, strict=True):
                parts = dict(zip(self._attacker_scores, several, strict=True))
                yield {output: parts[name, fold][measure] for output, (name, fold, measure) in self._order.items()}
