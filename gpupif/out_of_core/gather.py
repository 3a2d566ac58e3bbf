"""The last stage: scores of all parts put together in the order of the table, and what a summary needs of them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines.part_jobs import part_measures, source_of
from ..io.ipc_batches import disk_errors, write_batch
from ..measures import POPULATION_SIZE, as_risk, find_measure
from ..results.figures import ROW_MEASURES
from ..results.riskiest import highest
from ..results.summary import TOP_CELLS
from ..rows.threads import Workers
from .part_scoring import score_columns
from .passes import Scored
from .shuffle import Gathering

if TYPE_CHECKING:
    import numpy.typing as npt

# Sums are made over so many rows at a time, and then exactly of these sums.
SUMMED_ROWS = 1 << 16


class Cell(NamedTuple):
    """A cell that may be among the riskiest: how risky it is, where it is (target: place), and its scores."""

    risk: float
    row: int
    target: int
    scores: list[Any]


@dataclass
class Facts:
    """What a summary needs of a chunk: by measure and target sums, the highest and lowest value, of sizes that of
    somebody; its riskiest cells.
    """

    sums: dict[str, list[list[float]]]
    highest: dict[str, list[float]]
    lowest: dict[str, list[float]]
    top: list[Cell]

    @classmethod
    def read(cls, file: Path) -> Facts:
        """As `write` left them."""
        facts = json.loads(file.read_text())
        return cls(facts["sums"], facts["highest"], facts["lowest"], [Cell(*cell) for cell in facts["top"]])

    def write(self, file: Path) -> None:
        """Keep them; the file appears whole."""
        beside = file.with_suffix(".tmp")
        with disk_errors(file):
            beside.write_text(json.dumps(self.__dict__))
            beside.replace(file)


class Gatherer:
    """Puts scores together: chunk number to arrays by measure (targets, rows of the chunk).

    weights: of the job's targets. folder: for facts and row information gains by chunk. people: with the sizes of
    cohorts in a population, which come after all other measures. types: by measure, of its scores.
    """

    def __init__(self, scored: Scored, weights: Sequence[float], folder: Path, people: Scored | None = None) -> None:
        self.job = scored.job
        self.folder = folder
        self.weights = weights
        self.types = {measure.name: measure.type_in(self.job.dtype) for measure in self.job.measures}
        if people is not None:
            self.types[POPULATION_SIZE.name] = people.job.measures[0].type_in(self.job.dtype)
        self._scored = scored
        self._people = people
        self.by = "cig" if "cig" in self.types else self.measures[0]
        # So many cells as are wanted are known to be at least so risky.
        self._least = -np.inf

    @property
    def measures(self) -> list[str]:
        """Names of the measures, in order."""
        return list(self.types)

    def chunks(
        self, first: int, last: int, sizes: Sequence[int], row: int, threads: int | None
    ) -> Generator[dict[str, npt.NDArray[Any]]]:
        """The scores of the chunks `first` to `last` - 1; sizes: rows of all chunks.

        What a summary needs is kept of those that begin at `row` or later.
        """
        with Workers(threads) as workers, contextlib.ExitStack() as files:
            several = [
                [
                    files.enter_context(Gathering(pieces, list(score_columns(scored.job, one.targets))))
                    for one, pieces in zip(scored.passes, scored.cuts, strict=True)
                ]
                for scored in (self._scored, self._people)
                if scored is not None
            ]
            start = sum(sizes[:first])
            for number in range(first, last):
                arrays = self._chunk(number, sizes[number], several, workers)
                if start >= row:
                    self._note(number, start, arrays, workers)
                start += sizes[number]
                yield arrays

    def facts(self, number: int) -> Path:
        """Where the facts of a chunk are kept."""
        return self.folder / f"facts-{number:06}.json"

    def gains(self, number: int) -> Path:
        """Where the row information gains of a chunk are kept."""
        return self.folder / f"rig-{number:06}.arrow"

    def _chunk(
        self, number: int, size: int, several: Sequence[Sequence[Gathering]], workers: Workers
    ) -> dict[str, npt.NDArray[Any]]:
        job = self.job
        arrays = {name: np.empty((len(job.targets), size), kind) for name, kind in self.types.items()}
        outs: dict[str, list[tuple[Any, npt.NDArray[Any]]]] = {
            f"{target}:{measure.name}": [] for target in job.targets for measure in part_measures(job)
        }
        for place, target in enumerate(job.targets):
            for measure in job.measures:
                # In the type of the scores as engines have them, so that the product is what theirs is.
                factor: Any = self.weights[place] if measure.weighted else 1 if measure.dtype == "int64" else 1.0
                outs[f"{target}:{source_of(measure)}"].append((factor, arrays[measure.name][place]))
        both = [outs]
        if self._people is not None:
            sizes, (counted,) = arrays[POPULATION_SIZE.name], part_measures(self._people.job)
            both.append({f"{target}:{counted.name}": [(1, sizes[k])] for k, target in enumerate(job.targets)})
        for gatherings, found in zip(several, both, strict=True):
            for gathering in gatherings:
                gathering.fill(number, found, workers)
        return arrays

    def _note(self, number: int, row: int, arrays: dict[str, npt.NDArray[Any]], workers: Workers) -> None:
        """Keep what a summary needs of a chunk that begins at `row`."""
        sums: dict[str, list[list[float]]] = {}
        most: dict[str, list[float]] = {}
        least: dict[str, list[float]] = {}
        for name in arrays:
            if name in ("cig", "csf", *ROW_MEASURES):
                columns = list(arrays[name])
                if name == "csf":
                    # Cells whose value is missing, and no category, have none.
                    columns = [
                        column[column == column] if target in self.job.wildcards else column
                        for target, column in zip(self.job.targets, columns, strict=True)
                    ]
                sums[name] = workers.run(_sums, [(column,) for column in columns])
                most[name] = [float(column.max()) if len(column) else -np.inf for column in columns]
            if name == "class_size":
                some = [column[column > 0] for column in arrays[name]]
                least[name] = [float(column.min()) if len(column) else np.inf for column in some]
        if "cig" in arrays:
            write_batch(self.gains(number), {"rig": arrays["cig"].sum(axis=0, dtype=np.float64)})
        found = riskiest([cell for place in range(len(self.job.targets)) for cell in self._risky(place, row, arrays)])
        if len(found) == TOP_CELLS:
            self._least = max(self._least, found[-1].risk)
        Facts(sums, most, least, found).write(self.facts(number))

    def _risky(self, target: int, row: int, arrays: dict[str, npt.NDArray[Any]]) -> list[Cell]:
        """Cells of a column that may be among the riskiest of the table: as risky as the last of those known so far."""
        column = arrays[self.by][target]
        scored = np.flatnonzero(column == column) if self.job.wildcards else None
        if scored is not None:
            column = column[scored]
            if not len(column):
                return []
        risks = as_risk(find_measure(self.by), column)
        if risks.max() < self._least:
            return []
        found = [(value, place) for value, place in highest(risks, TOP_CELLS) if value >= self._least]
        places = [place if scored is None else int(scored[place]) for _, place in found]
        return [
            Cell(value, row + place, target, [values[target, place].item() for values in arrays.values()])
            for (value, _), place in zip(found, places, strict=True)
        ]


def riskiest(cells: Iterable[Cell]) -> list[Cell]:
    """The riskiest of some cells, the first come first; of equal ones the earlier row, then the earlier column."""
    return sorted(cells, key=lambda cell: (-cell.risk, cell.row, cell.target))[:TOP_CELLS]


def _sums(column: npt.NDArray[Any]) -> list[float]:
    return [
        float(column[start : start + SUMMED_ROWS].sum(dtype=np.float64)) for start in range(0, len(column), SUMMED_ROWS)
    ]


class Rows:
    """Rows of chunks that follow each other, asked for in order. first: the row of the table that they begin with."""

    def __init__(self, chunks: Iterator[dict[str, npt.NDArray[Any]]], first: int) -> None:
        self._chunks = chunks
        self._start = self._stop = first
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def between(self, start: int, stop: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The rows start to stop, piece by piece."""
        while start < stop:
            if start >= self._stop:
                self._arrays = {}
                self._arrays = next(self._chunks)
                self._start = self._stop
                self._stop += next(iter(self._arrays.values())).shape[1]
                continue
            end = min(stop, self._stop)
            place = slice(start - self._start, end - self._start)
            yield {name: array[:, place] for name, array in self._arrays.items()}
            start = end


def ahead(items: Iterator[Any]) -> Generator[Any]:
    """The same items, each made while the one before it is used."""

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
