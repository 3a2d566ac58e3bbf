"""The distribution of the scores of a column: percentiles, mean, and how many are above a threshold.

All of it follows from which numbers occur and how often, so that the bits are the same wherever the scores are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ..utils.exact_sums import ExactSum
from ..utils.percentiles import ONCE, NumberChunks, percentiles, percentiles_of_sorted


@dataclass(frozen=True)
class ColumnQuery:
    """A question about the known scores (not NaN) of a column.

    percentiles: from 0 to 100. above: thresholds, of which each is to be told how many scores are above it. mean:
    whether the mean is wanted.
    """

    percentiles: tuple[float, ...] = ()
    above: tuple[float, ...] = ()
    mean: bool = False

    def with_all(self, other: ColumnQuery) -> ColumnQuery:
        """Return a query for what either query wants."""
        return ColumnQuery(
            tuple(dict.fromkeys((*self.percentiles, *other.percentiles))),
            tuple(dict.fromkeys((*self.above, *other.above))),
            self.mean or other.mean,
        )

    @property
    def tallied(self) -> bool:
        """True if the query wants more than percentiles."""
        return self.mean or bool(self.above)


@dataclass(frozen=True)
class ColumnAnswer:
    """The answer to a `ColumnQuery`, by percentile and threshold; without scores percentiles and mean are NaN.

    mean: rounded once; None if it was not wanted.
    """

    percentiles: Mapping[float, float]
    above: Mapping[float, int]
    mean: float | None = None

    def to_stored(self) -> list[Any]:
        """Return the answer ready for JSON that has inf and NaN, for `from_stored`."""
        return [list(self.percentiles.items()), list(self.above.items()), self.mean]

    @classmethod
    def from_stored(cls, document: Sequence[Any]) -> ColumnAnswer:
        """Return the answer from what `to_stored` returned."""
        shares, above, mean = document
        return cls(dict(shares), dict(above), mean)

    def covers(self, query: ColumnQuery) -> bool:
        """Return whether this answers another query, too."""
        shares, above = set(query.percentiles) <= set(self.percentiles), set(query.above) <= set(self.above)
        return shares and above and not (query.mean and self.mean is None)


@dataclass(frozen=True)
class ScoreQuestions:
    """The questions about scores beside their summary; for each attacker, about the worst and the mean scores.

    of_columns: by measure. of_rows: percentiles of the row information gains.
    """

    of_columns: Mapping[str, ColumnQuery] = field(default_factory=dict)
    of_rows: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the questions ready for JSON."""
        return {"columns": {name: asdict(asked) for name, asked in self.of_columns.items()}, "rows": [*self.of_rows]}


@dataclass(frozen=True)
class ScoreAnswers:
    """The answers to `ScoreQuestions` about one score for each cell.

    of_columns: by measure, the answer for each column. of_rows: by percentile.
    """

    of_columns: Mapping[str, Sequence[ColumnAnswer]] = field(default_factory=dict)
    of_rows: Mapping[float, float] = field(default_factory=dict)

    def to_stored(self) -> list[Any]:
        """Return the answers ready for JSON that has inf and NaN, for `from_stored`."""
        columns = {name: [one.to_stored() for one in several] for name, several in self.of_columns.items()}
        return [columns, list(self.of_rows.items())]

    @classmethod
    def from_stored(cls, document: Sequence[Any]) -> ScoreAnswers:
        """Return the answers from what `to_stored` returned."""
        columns, rows = document
        each = {name: [ColumnAnswer.from_stored(one) for one in several] for name, several in columns.items()}
        return cls(each, dict(rows))


class Tally(NamedTuple):
    """The counts of some numbers, without NaN, above each threshold, and their sum if their mean is wanted."""

    above: tuple[int, ...]
    sum: ExactSum = ExactSum()

    @classmethod
    def from_numbers(cls, numbers: Any, multiplicities: Any, query: ColumnQuery) -> Tally:
        """Return the tally of numbers on the host or a device. multiplicities: of the numbers; empty for 1."""

        def count(mask: Any) -> int:
            return int((multiplicities[mask] if len(multiplicities) else mask).sum())

        above = tuple(count(numbers > threshold) for threshold in query.above)
        return cls(above, ExactSum.from_numbers(numbers, multiplicities)) if query.mean else cls(above)

    @classmethod
    def total(cls, parts: Iterable[Tally]) -> Tally:
        """Return the tally of all chunks together."""
        above, sums = zip(*parts, strict=True)
        return cls(tuple(sum(counts) for counts in zip(*above, strict=True)), ExactSum.total(sums))

    def answer(self, query: ColumnQuery, shares: Sequence[float]) -> ColumnAnswer:
        """Return the answer to a query. shares: its percentiles."""
        return ColumnAnswer(
            dict(zip(query.percentiles, shares, strict=True)),
            dict(zip(query.above, self.above, strict=True)),
            self.sum.mean if query.mean else None,
        )


def answer_column(chunks: NumberChunks, query: ColumnQuery) -> ColumnAnswer:
    """Return the answer to a query about numbers, which are read at most five times. chunks: see `percentiles`."""
    nothing = Tally((0,) * len(query.above))
    tally = Tally.total([nothing, *(Tally.from_numbers(*one, query) for one in chunks())]) if query.tallied else nothing
    return tally.answer(query, percentiles(chunks, query.percentiles) if query.percentiles else [])


def answer_on_device(numbers: Any, query: ColumnQuery) -> ColumnAnswer:
    """Return the answer to a query about numbers on a device."""
    known = numbers[numbers == numbers]
    known.sort()
    return Tally.from_numbers(known, ONCE, query).answer(query, percentiles_of_sorted(known, query.percentiles))
