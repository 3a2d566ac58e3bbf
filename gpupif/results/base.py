"""Where scores lie: what `Scores` asks of memory, of files and of Dask, each of which knows no more than this."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy.typing as npt
import pyarrow as pa

from ..attack.priors import AsDict
from ..encoding.column import Column
from ..errors import InputError
from ..measures import Measure
from ..utils.display import plural
from .distribution import ColumnAnswer, ColumnQuery, ScoreAnswers
from .figures import ColumnFacts, Figures
from .outputs import CellScore, ScoredAttacker, outputs_of
from .packed_priors import pack_priors
from .selection import CellQuery
from .summary import Summary


class RiskyCell(NamedTuple):
    """A cell: how risky it is, where it is (scored column: place among the scored columns), and scores of it."""

    risk: float
    row: int
    scored_column: int
    scores: list[Any]


@dataclass(frozen=True)
class ScoreQuery:
    """Figures, percentiles and riskiest cells asked of all rows, to be found exactly in one go.

    figures: by measure, of these scores. of_columns: of scores what is asked of each column. gains: the CIG of which
    `of_rows` are percentiles of the sums by row. top: so many of the riskiest cells, by `by`, each with its scores
    `shown`.
    """

    figures: Mapping[str, CellScore] = field(default_factory=dict)
    of_columns: Mapping[CellScore, ColumnQuery] = field(default_factory=dict)
    gains: CellScore | None = None
    of_rows: Sequence[float] = ()
    top: int = 0
    by: CellScore | None = None
    shown: Sequence[CellScore] = ()

    @property
    def looked_at(self) -> list[CellScore]:
        """The scores that are looked at in all rows."""
        single = (one for one in (self.gains, self.by) if one is not None)
        several = [*self.figures.values(), *self.of_columns, *single]
        return list(dict.fromkeys(several))

    @property
    def scores(self) -> list[CellScore]:
        """All scores that the query is of."""
        return list(dict.fromkeys([*self.looked_at, *self.shown]))

    @property
    def outputs(self) -> list[str]:
        """The outputs that hold them."""
        return outputs_of(self.scores)


class QueryResult(NamedTuple):
    """The answer to a `ScoreQuery`: figures; by score what was asked of each column; percentiles of rows; the riskiest
    cells, in order.
    """

    figures: Figures
    of_columns: Mapping[CellScore, Sequence[ColumnAnswer]]
    of_rows: list[float]
    top: list[RiskyCell]


class RowValues(NamedTuple):
    """The values of a table that was scored. columns: the scored ones, with labels.

    between: gives of the rows from one to another, which follow those that it gave before, what tells the codes of a
    scored column by its place.
    """

    columns: Sequence[Column]
    between: Callable[[int, int], Callable[[int], npt.NDArray[Any]]]


class Explainer(ABC):
    """What an attacker sees of a cell, found anew in the table that was scored."""

    @abstractmethod
    def labels(self, rows: Sequence[int]) -> list[Any] | None:
        """The table's labels of some rows, where it has such."""

    @abstractmethod
    def values(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """Of each cell ``value`` and ``prior``."""

    @abstractmethod
    def explain(self, cells: Sequence[RiskyCell], by: Measure) -> list[dict[str, Any]]:
        """Of each cell ``value``, ``posterior``, ``prior`` and ``cohort_size``; where the attacker knows any few
        columns, against the one who is the worst by a measure, with what is ``known`` then.
        """


class RowExplainer(Explainer):
    """As `Explainer`, of a table whose rows this process reads."""

    @abstractmethod
    def row_values(self) -> RowValues:
        """The values of all rows, read from the first on."""


@dataclass(frozen=True)
class AttackerOutcome:
    """Facts of the scores against one attacker.

    weights: by fold ("worst" and "mean": of an attacker with a list of columns the same), of each scored column.
    distinct_rows: different rows over all columns that were scored or known; None where they were not counted.
    summaries: by fold those that are made already. explainer: None where the table is not at hand. answers: by fold
    those that were found on the way.
    """

    attacker: ScoredAttacker
    weights: Mapping[str, Sequence[float]]
    distinct_rows: int | None
    explainer: RowExplainer | None = None
    summaries: Mapping[str, Summary] = field(default_factory=dict)
    answers: Mapping[str, ScoreAnswers] = field(default_factory=dict)


@dataclass(frozen=True)
class RunDescription:
    """Facts of a run, the same for all attackers.

    columns: the scored ones. measures: of cells, in the order of outputs. dtype: "float64" or "float32". device: that
    scored. seconds: by stage. through_host: see `Scores`. request: what was asked of which table, ready for JSON, see
    `provenance`.
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
    """Metadata of the files of scores.

    facts: of the scored columns; priors: of these, packed, the small ones; rows: of the table; files: of a folder, in
    order of the rows; cells: which were asked for in place of all, see `Selection`. What is not known yet is left out,
    weights and summaries of `outcomes` too.
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
    """Scores to be written and where to: by the prefix of the names of their columns, those against `attackers`.

    describe: what the files are to say of themselves, with summaries if these are asked for. keep_input: put the
    table's columns before the scores. done: hears how many rows went out. options: of a library that writes folders.
    queries: whose answers `answered` may be given once all rows are written, where they are found on the way.
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
    """Raise InputError for an option of a method that only Dask's one takes."""
    if options:
        raise InputError(
            f"{next(iter(options))}: goes with scores of a Dask frame only, whose {method} takes it. Leave it out."
        )


class CellSource(ABC):
    """Cells that were asked for, found where the scores lie.

    columns: names of those of their tables, but for labels of rows. writes_folders: in place of files.
    """

    columns: Sequence[str]
    writes_folders = False

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """All of them, some at a time; at least one table, of no cells perhaps."""

    def count(self) -> int:
        """How many there are."""
        return sum(map(len, self.tables()))

    @abstractmethod
    def write(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        describe: Callable[[bool], ScoresDescription],
        options: Mapping[str, Any],
    ) -> int:
        """Write them, with what files say of themselves, and say how many there are. Raises OutputError.

        options: of a library that writes folders.
        """


class Backing(ABC):
    """Scores of all cells against each of the attackers, wherever they lie.

    about: what was asked. attackers: in order. files: that hold the scores, in order of the rows; path: their file or
    folder; spilled_bytes: of temporary files on the way to them. writes_folders: in place of files.
    """

    path: Path | None = None
    files: Sequence[Path] = ()
    spilled_bytes: int | None = None
    writes_folders = False

    def __init__(self, about: RunDescription, attackers: Sequence[ScoredAttacker]) -> None:
        self.about = about
        self.attackers = list(attackers)
        # Those that are made, by names of attackers and fold.
        self.summaries: dict[tuple[tuple[str, ...], str], Summary] = {}
        self.answers: dict[tuple[tuple[str, ...], str], ScoreAnswers] = {}

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def weights(self, attacker: ScoredAttacker, fold: str) -> Sequence[float]:
        """Of each scored column."""

    @abstractmethod
    def distinct_rows(self, attacker: ScoredAttacker) -> int | None:
        """Different rows over all columns that were scored or known; None where they were not counted."""

    @abstractmethod
    def explainer(self, attacker: ScoredAttacker) -> Explainer | None:
        """What tells what an attacker sees of cells; None where the table is not at hand."""

    @abstractmethod
    def priors(self) -> Mapping[Hashable, AsDict]:
        """By scored column."""

    @abstractmethod
    def column_facts(self) -> list[ColumnFacts]:
        """Of each scored column."""

    def packed_priors(self) -> dict[str, str]:
        """Those that score files keep, see `pack_priors`."""
        values = [fact.distinct_values for fact in self.column_facts()]
        return pack_priors(self.priors(), dict(zip(self.about.columns, values, strict=True)))

    def size(self) -> str:
        """How many rows, or partitions, there are, in words; computes nothing."""
        return f"{self.rows:,} {plural(self.rows, 'row')}"

    @abstractmethod
    def where(self) -> str:
        """Where the scores are, in words."""

    @abstractmethod
    def frame(self, score: CellScore) -> Any:
        """A frame of the kind that came in, with its rows, order and index."""

    @abstractmethod
    def array(self, score: CellScore) -> Any:
        """All of them in memory, (columns, rows)."""

    @abstractmethod
    def row_sums(self, score: CellScore, name: str) -> Any:
        """The sum of each row, as a series of the kind that came in."""

    @abstractmethod
    def find(self, query: ScoreQuery) -> QueryResult:
        """What is wanted of all rows."""

    @abstractmethod
    def cells(self, query: CellQuery) -> CellSource:
        """Cells in place of all scores."""

    @abstractmethod
    def joined(self, outputs: Mapping[str, CellScore]) -> Any:
        """One frame of the kind that came in, columns named <output>_<column>; raises OutputError for equal names."""

    @abstractmethod
    def to_arrow(self, outputs: Mapping[str, CellScore], keep_input: bool) -> pa.Table:
        """As `joined`, of Arrow, in memory. keep_input: put the table's columns before them."""

    @abstractmethod
    def write(self, writing: WriteRequest) -> None:
        """Write scores as `to_arrow` has them, with what files say of themselves. Raises OutputError, InputError."""

    def persist(self, **options: Any) -> Backing:
        """The same scores, computed, and kept where they are: they are already."""
        return self


class OutcomeBacking(Backing):
    """Scores of which all is known beside the scores themselves."""

    def __init__(self, about: RunDescription, outcomes: Sequence[AttackerOutcome]) -> None:
        super().__init__(about, [outcome.attacker for outcome in outcomes])
        self._outcomes = {outcome.attacker.name: outcome for outcome in outcomes}
        for outcome in outcomes:
            names = () if outcome.attacker.name is None else (outcome.attacker.name,)
            for fold, summary in outcome.summaries.items():
                self.summaries[names, fold] = summary
            for fold, answers in outcome.answers.items():
                self.answers[names, fold] = answers

    def weights(self, attacker: ScoredAttacker, fold: str) -> Sequence[float]:
        return self._outcomes[attacker.name].weights[fold]

    def distinct_rows(self, attacker: ScoredAttacker) -> int | None:
        return self._outcomes[attacker.name].distinct_rows

    def explainer(self, attacker: ScoredAttacker) -> Explainer | None:
        return self._outcomes[attacker.name].explainer

    def row_values(self) -> RowValues | None:
        """The values of all rows, read from the first on; None where the table is not at hand."""
        explainer = self._outcomes[self.attackers[0].name].explainer
        return None if explainer is None else explainer.row_values()
