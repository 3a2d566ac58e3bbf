"""The interface between `Scores` and the places that hold scores: memory, files, Dask, each a `Backing`.

A backing answers queries (`ScoreQuery`, `cell_selection.CellQuery`) and writes scores; `Scores` knows no more of it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import pyarrow as pa

from ..attack.priors import AsDict
from ..encoding.column import Column
from ..errors import InputError
from ..measures import Measure
from ..rows.threads import Workers
from ..utils.display import plural
from .cell_selection import CellQuery, Selection
from .riskiest import RiskyCell
from .score_distribution import ColumnAnswer, ColumnQuery, ScoreAnswers
from .score_outputs import CellScore, ScoredAttacker, outputs_of
from .summary import Summary
from .summary_figures import ColumnFacts, Figures

# A function of the scores of some rows, chunk by chunk, and of the threads that it may use; see `Backing.fold`.
CountChunks = Callable[[Iterable[npt.NDArray[Any]], Workers], Any]


@dataclass(frozen=True)
class ScoreQuery:
    """A question about all rows, to be answered exactly in one go.

    figures: by measure, the score of which a summary gives figures.
    of_columns: by score, what is wanted of the distribution in each column.
    gains: the CIG; `of_rows` are percentiles of its sums by row.
    of_rows: percentiles, from 0 to 100.
    top: how many of the riskiest cells are wanted, by the score `by`.
    shown: the scores that these cells get.
    each_value: whether a cell is wanted for each value of a column, and not each cell.
    of_places: among which scored columns the riskiest cells are looked for; None for all.
    """

    figures: Mapping[str, CellScore] = field(default_factory=dict)
    of_columns: Mapping[CellScore, ColumnQuery] = field(default_factory=dict)
    gains: CellScore | None = None
    of_rows: Sequence[float] = ()
    top: int = 0
    by: CellScore | None = None
    shown: Sequence[CellScore] = ()
    each_value: bool = False
    of_places: Sequence[int] | None = None

    @property
    def looked_at(self) -> list[CellScore]:
        """The scores that are needed of all rows."""
        single = [score for score in (self.gains, self.by) if score is not None]
        return list(dict.fromkeys([*self.figures.values(), *self.of_columns, *single]))

    @property
    def outputs(self) -> list[str]:
        """The outputs that hold all scores of the query."""
        return outputs_of([*self.looked_at, *self.shown])


class QueryResult(NamedTuple):
    """The answer to a `ScoreQuery`.

    of_columns: by score, the answer for each column. of_rows: percentiles. top: the riskiest cells, in order.
    """

    figures: Figures
    of_columns: Mapping[CellScore, Sequence[ColumnAnswer]]
    of_rows: list[float]
    top: list[RiskyCell]


class RowValues(NamedTuple):
    """The values of a table that was scored.

    columns: the scored columns, with labels. between: returns the codes of some rows, from one number to another, as a
    function of the place of a scored column; to be called for rows that follow each other, from the first row on.
    """

    columns: Sequence[Column]
    between: Callable[[int, int], Callable[[int], npt.NDArray[Any]]]


class Explainer(ABC):
    """The view of an attacker on single cells, found again in the table that was scored."""

    @abstractmethod
    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """Return the labels of some rows in the table's index; None if it has no index."""

    @abstractmethod
    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """Return ``value``, ``cells`` (how many cells of the column have it) and ``prior`` of each cell."""

    @abstractmethod
    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        """Return ``value``, ``cells``, ``posterior``, ``prior`` and ``cohort_size`` of each cell.

        If the attacker knows any few columns, they are against the attacker who is the worst for the cell by this
        measure, and ``known`` names the columns that this attacker knows.
        """


class RowExplainer(Explainer):
    """An `Explainer` for a table whose rows this process reads."""

    @abstractmethod
    def row_values(self) -> RowValues:
        """Return the values of all rows, to be read from the first row on."""


@dataclass(frozen=True)
class AttackerOutcome:
    """The facts about the scores against one attacker, without the scores.

    By aggregate is by "worst" and "mean"; for an attacker with a list of columns both are the same.

    weights: by aggregate, the weight of each scored column (for wCIG).
    distinct_rows: number of distinct rows over all columns that were scored or known; None if they were not counted.
    explainer: None if the table is not at hand.
    summaries: by aggregate, the summaries that are made already.
    answers: by aggregate, the answers that were found along the way.
    """

    attacker: ScoredAttacker
    weights: Mapping[str, Sequence[float]]
    distinct_rows: int | None
    explainer: RowExplainer | None = None
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    answers: Mapping[str, ScoreAnswers] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDescription:
    """The facts about a run that are the same for all attackers.

    columns: names of the scored columns.
    measures: in the order of the outputs.
    dtype: type of the scores, "float64" or "float32".
    device: the device that scored.
    seconds: wall time by stage.
    through_host: see `Scores.through_host`.
    request: what was requested of which table, ready for JSON, see `provenance`.
    """

    columns: Sequence[Hashable]
    measures: Sequence[Measure]
    dtype: str
    device: str
    seconds: dict[str, float]
    through_host: str = ""
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoresDescription:
    """The metadata of files of scores. What is not known yet is left out, also in `outcomes`.

    about, outcomes: the run, and the facts about the scores against each attacker.
    facts: one item for each scored column.
    priors: by scored column, its prior, packed; only the small ones.
    rows: number of rows of the table.
    files: names of the files of a folder, in order of the rows.
    cells: the selection, if the files hold some cells in place of all scores, see `Selection.to_dict`.
    """

    about: RunDescription
    outcomes: Sequence[AttackerOutcome]
    facts: Sequence[ColumnFacts] = ()
    priors: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    files: Sequence[str] = ()
    cells: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class WriteRequest:
    """An order to write scores.

    outputs: the scores, by the prefix of the names of their columns.
    attackers: the attackers whose scores are written.
    describe: returns the description for the files, with summaries if these are wanted.
    keep_input: put the table's columns before the scores.
    done: called with the number of rows that were written since the last call.
    options: of the library that writes folders.
    queries: questions to be answered while the scores are written, if the description comes last in the file.
    answered: called with the answers to all of these once all rows are written.
    """

    outputs: Mapping[str, CellScore]
    attackers: Sequence[ScoredAttacker]
    describe: Callable[[bool], ScoresDescription]
    path: str | os.PathLike[str]
    keep_input: bool
    overwrite: bool
    done: Callable[[int], None] = lambda rows: None
    options: Mapping[str, Any] = field(default_factory=dict)
    queries: Sequence[ScoreQuery] = ()
    answered: Callable[[Sequence[QueryResult]], None] = lambda results: None


def refuse_options(options: Mapping[str, Any], method: str) -> None:
    """Raise InputError if there is an option, for a method that takes options only for scores of a Dask frame."""
    if options:
        raise InputError(
            f"{next(iter(options))}: goes with scores of a Dask frame only, whose {method} takes it. Leave it out."
        )


class CellSource(ABC):
    """The cells of a query, found on demand.

    columns: names of the columns of the tables, without those of the index.
    selection: the selection that the cells come from, if it is not the one that was requested.
    writes_folders: the source writes its cells itself, to a folder of files.
    """

    columns: Sequence[str]
    selection: Selection | None = None
    writes_folders = False

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """Return all cells, some at a time; at least one table, perhaps without cells."""

    def count(self) -> int:
        """Return how many cells there are."""
        return sum(map(len, self.tables()))

    def write(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        describe: Callable[[bool], ScoresDescription],
        options: Mapping[str, Any],
    ) -> int:
        """Write the cells to a folder, if the source `writes_folders`, and return how many there are.

        describe, options: see `WriteRequest`. Raises OutputError.
        """
        raise NotImplementedError


class Backing(ABC):
    """The scores of all cells against each attacker, in memory, in files or on Dask.

    about, attackers: the run, and the attackers in order.
    path, files: the file or folder that holds the scores, and its files in order of the rows; none elsewhere.
    spilled_bytes: the most bytes that temporary files took; None if there were none.
    writes_folders: scores are written to a folder of files, not to a file.
    whole: the scores of all rows of the table are there.
    summaries, answers: what is known already, by names of the attackers and aggregate.
    """

    path: Path | None = None
    files: Sequence[Path] = ()
    spilled_bytes: int | None = None
    writes_folders = False
    whole = True

    def __init__(self, about: RunDescription, attackers: Sequence[ScoredAttacker]) -> None:
        self.about = about
        self.attackers = list(attackers)
        self.summaries: dict[tuple[tuple[str, ...], str], Summary] = {}
        self.answers: dict[tuple[tuple[str, ...], str], ScoreAnswers] = {}

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of rows."""

    @abstractmethod
    def weights(self, attacker: ScoredAttacker, aggregate: str) -> Sequence[float]:
        """Return the weight of each scored column against an attacker."""

    @abstractmethod
    def distinct_rows(self, attacker: ScoredAttacker) -> int | None:
        """Return the number of distinct rows over all columns that were scored or known; None if not counted."""

    @abstractmethod
    def explainer(self, attacker: ScoredAttacker) -> Explainer | None:
        """Return what tells what an attacker sees of cells; None if the table is not at hand."""

    @abstractmethod
    def priors(self) -> Mapping[Hashable, AsDict]:
        """Return the prior of each scored column."""

    @abstractmethod
    def column_facts(self) -> list[ColumnFacts]:
        """Return the facts about each scored column."""

    @abstractmethod
    def packed_priors(self) -> dict[str, str]:
        """Return the priors that score files keep, see `pack_priors`."""

    def size(self) -> str:
        """Return the number of rows, or of partitions, in words, without computing anything."""
        return f"{self.rows:,} {plural(self.rows, 'row')}"

    @abstractmethod
    def where(self) -> str:
        """Return in words where the scores are."""

    @abstractmethod
    def frame(self, score: CellScore) -> Any:
        """Return a score in a frame of the kind that was scored, with its rows, order and index."""

    @abstractmethod
    def array(self, score: CellScore) -> Any:
        """Return a score of all cells, in memory, as an array (scored columns, rows)."""

    @abstractmethod
    def row_sums(self, score: CellScore, name: str) -> Any:
        """Return the sum of each row as a series of the kind that was scored. name: of the series."""

    @abstractmethod
    def find(self, query: ScoreQuery) -> QueryResult:
        """Return the answer to a query."""

    @abstractmethod
    def fold(self, score: CellScore, count: CountChunks, add: Callable[..., Any]) -> Any:
        """Return what `count` returns for a score of all rows, which memory need not hold at once.

        count: takes chunks of scores (scored columns, rows) on the host, in order, and threads. add: combines what it
        returns for neighbouring parts of the table.
        """

    @abstractmethod
    def cells(self, query: CellQuery) -> CellSource:
        """Return the source of the cells that a query selects."""

    @abstractmethod
    def joined(self, outputs: Mapping[str, CellScore]) -> Any:
        """Return several scores in one frame of the kind that was scored, columns named <output>_<column>.

        Raises OutputError for equal names.
        """

    @abstractmethod
    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        """Return several scores as `joined` does, as an Arrow table in memory.

        keep_input: put the table's columns before them.
        """

    @abstractmethod
    def write(self, writing: WriteRequest) -> None:
        """Write scores as `to_arrow` returns them, with their description. Raises OutputError, InputError."""

    def persist(self, **options: Any) -> Backing:
        """Return the same scores, computed and kept; only scores of a Dask frame are not."""
        return self


class OutcomeBacking(Backing):
    """A backing that knows all facts about its scores beside the scores themselves."""

    def __init__(self, about: RunDescription, outcomes: Sequence[AttackerOutcome]) -> None:
        super().__init__(about, [outcome.attacker for outcome in outcomes])
        self._outcomes = {outcome.attacker.name: outcome for outcome in outcomes}
        for outcome in outcomes:
            names = () if outcome.attacker.name is None else (outcome.attacker.name,)
            self.summaries |= {(names, aggregate): summary for aggregate, summary in outcome.summaries.items()}
            self.answers |= {(names, aggregate): answers for aggregate, answers in outcome.answers.items()}

    def weights(self, attacker: ScoredAttacker, aggregate: str) -> Sequence[float]:
        return self._outcomes[attacker.name].weights[aggregate]

    def distinct_rows(self, attacker: ScoredAttacker) -> int | None:
        return self._outcomes[attacker.name].distinct_rows

    def explainer(self, attacker: ScoredAttacker) -> Explainer | None:
        return self._outcomes[attacker.name].explainer

    def row_values(self) -> RowValues | None:
        """Return the values of all rows, to be read from the first row on; None if the table is not at hand."""
        explainer = self._outcomes[self.attackers[0].name].explainer
        return None if explainer is None else explainer.row_values()
