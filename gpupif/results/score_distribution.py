"""What is asked of the scores of a column as numbers: percentiles, their mean, how many are above a threshold.

All of it follows from which numbers occur, and how often, so that it is the same, to the last bit, wherever they lie.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..utils.exact_sums import ExactSum
from ..utils.percentiles import ONCE, Pieces, percentiles, percentiles_of_sorted


@dataclass(frozen=True)
class ColumnQuery:
    """What is asked of the scores of a column that are known (not NaN).

    percentiles: from 0 to 100. above: thresholds; how many scores are above each. mean: whether their mean is.
    """

    percentiles: tuple[float, ...] = ()
    above: tuple[float, ...] = ()
    mean: bool = False

    def with_all(self, other: ColumnQuery) -> ColumnQuery:
        """Both together."""
        return ColumnQuery(
            tuple(dict.fromkeys((*self.percentiles, *other.percentiles))),
            tuple(dict.fromkeys((*self.above, *other.above))),
            self.mean or other.mean,
        )

    @property
    def tallied(self) -> bool:
        """Whether more than percentiles is asked."""
        return self.mean or bool(self.above)


@dataclass(frozen=True)
class ColumnAnswer:
    """The answer to a `ColumnQuery`, by percentile and threshold; of no scores percentiles and mean are NaN.

    mean: rounded once; None where it was not asked.
    """

    percentiles: Mapping[float, float]
    above: Mapping[float, int]
    mean: float | None = None

    def to_stored(self) -> list[Any]:
        """Ready for JSON that has inf and NaN, for `from_stored`."""
        return [list(self.percentiles.items()), list(self.above.items()), self.mean]

    @classmethod
    def from_stored(cls, document: Sequence[Any]) -> ColumnAnswer:
        """From what `to_stored` made."""
        shares, above, mean = document
        return cls(dict(shares), dict(above), mean)

    def covers(self, query: ColumnQuery) -> bool:
        """Whether it answers another query, too."""
        shares, above = set(query.percentiles) <= set(self.percentiles), set(query.above) <= set(self.above)
        return shares and above and not (query.mean and self.mean is None)


@dataclass(frozen=True)
class ScoreQuestions:
    """What is asked of scores beside their summary, against each attacker, of the worst and of the mean scores.

    of_columns: by measure. of_rows: percentiles of the row information gains.
    """

    of_columns: Mapping[str, ColumnQuery] = field(default_factory=dict)
    of_rows: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"columns": {name: asdict(asked) for name, asked in self.of_columns.items()}, "rows": [*self.of_rows]}


@dataclass(frozen=True)
class ScoreAnswers:
    """The answers to `ScoreQuestions`, of one score for each cell: by measure those of each column; by percentile."""

    of_columns: Mapping[str, Sequence[ColumnAnswer]] = field(default_factory=dict)
    of_rows: Mapping[float, float] = field(default_factory=dict)

    def to_stored(self) -> list[Any]:
        """As of `ColumnAnswer`."""
        columns = {name: [one.to_stored() for one in several] for name, several in self.of_columns.items()}
        return [columns, list(self.of_rows.items())]

    @classmethod
    def from_stored(cls, document: Sequence[Any]) -> ScoreAnswers:
        """From what `to_stored` made."""
        columns, rows = document
        each = {name: [ColumnAnswer.from_stored(one) for one in several] for name, several in columns.items()}
        return cls(each, dict(rows))


class Tally(NamedTuple):
    """Of some numbers, but NaN: how many are above each threshold, and their sum where their mean is asked for."""

    above: tuple[int, ...]
    sum: ExactSum = ExactSum()

    @classmethod
    def of(cls, numbers: Any, times: Any, query: ColumnQuery) -> Tally:
        """Of numbers of host or device, each of which occurs so many times (empty: once)."""

        def count(mask: Any) -> int:
            return int((times[mask] if len(times) else mask).sum())

        above = tuple(count(numbers > threshold) for threshold in query.above)
        return cls(above, ExactSum.of(numbers, times)) if query.mean else cls(above)

    @classmethod
    def total(cls, parts: Iterable[Tally]) -> Tally:
        """Of several together."""
        above, sums = zip(*parts, strict=True)
        return cls(tuple(sum(counts) for counts in zip(*above, strict=True)), ExactSum.total(sums))

    def answer(self, query: ColumnQuery, shares: Sequence[float]) -> ColumnAnswer:
        """The answer to a query with its percentiles."""
        return ColumnAnswer(
            dict(zip(query.percentiles, shares, strict=True)),
            dict(zip(query.above, self.above, strict=True)),
            self.sum.mean if query.mean else None,
        )


def answer_column(pieces: Pieces, query: ColumnQuery) -> ColumnAnswer:
    """The answer to a query of numbers, which are read five times at most; pieces: see `percentiles`."""
    nothing = Tally((0,) * len(query.above))
    tally = Tally.total([nothing, *(Tally.of(*one, query) for one in pieces())]) if query.tallied else nothing
    return tally.answer(query, percentiles(pieces, query.percentiles) if query.percentiles else [])


def answer_on_device(numbers: Any, query: ColumnQuery) -> ColumnAnswer:
    """The answer to a query of numbers on a device."""
    known = numbers[numbers == numbers]
    known.sort()
    return Tally.of(known, ONCE, query).answer(query, percentiles_of_sorted(known, query.percentiles))
