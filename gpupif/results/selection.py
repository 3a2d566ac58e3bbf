"""Cells that are asked for in place of all: those where a condition holds, and of these the riskiest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError, did_you_mean
from ..measures import as_risk, is_measure
from ..rows.threads import Workers
from ..utils.display import plural
from ..utils.validation import brief, whole_number
from .condition import Condition, parse_condition
from .outputs import CellScore, ScoreView, outputs_of

# Rows in which cells are looked for in one go.
SEARCHED_ROWS = 1 << 16


@dataclass(frozen=True)
class Selection:
    """What is asked for, see `Scores.cells`; text: of the condition. All of them None: every cell."""

    text: str | None = None
    top: int | None = None
    by: str | None = None
    condition: Condition | None = field(default=None, compare=False)

    @classmethod
    def of(cls, where: Any = None, top: Any = None, by: Any = None) -> Selection:
        """From arguments as they come; raises InputError."""
        if top is None and by is not None:
            raise InputError("by: says by what cells are the riskiest, of which top= says how many. Add that.")
        if by is not None and not isinstance(by, str):
            raise InputError(f"by: expected the name of a measure, got {brief(by)}.")
        condition = None if where is None else parse_condition(where)
        return cls(where, None if top is None else whole_number("top", top, "cells"), by, condition)

    def __str__(self) -> str:
        cells = "cells" if self.top is None else f"{self.top:,} riskiest {plural(self.top, 'cell')}"
        by = "" if self.by is None else f" by {self.by}"
        return f"the {cells}{by}{'' if self.text is None else f' where {self.text}'}"

    @classmethod
    def if_any(cls, where: Any = None, top: Any = None, by: Any = None) -> Selection | None:
        """As `of`; None where nothing is asked for."""
        selection = cls.of(where, top, by)
        return None if selection == cls() else selection

    @property
    def names(self) -> list[str]:
        """The scores that are named."""
        return [*([] if self.condition is None else self.condition.names), *([] if self.by is None else [self.by])]

    def check(self, measures: Sequence[str], outputs: Sequence[str]) -> None:
        """Raise InputError for a name that is none of these, of what is scored."""
        names = [("where", name) for name in ([] if self.condition is None else self.condition.names)]
        names += [] if self.by is None else [("by", self.by)]
        there = list(dict.fromkeys([*measures, *outputs]))
        for argument, name in names:
            if name in there:
                continue
            if is_measure(name):
                raise InputError(
                    f"{argument}: {name!r} is not scored (scored: {', '.join(measures)}). Add it with measures=."
                )
            raise InputError(
                f"{argument}: expected the name of a score ({', '.join(there)}), got {name!r}."
                f"{did_you_mean(name, there)}"
            )

    def query(self, view: ScoreView) -> CellQuery:
        """What that is of these scores; raises InputError where they have no such."""
        named = view.by_name()
        self.check([measure.name for measure in view.measures], list(named))
        by = None if self.top is None else named[self.by or view.default.name]
        nothing = {output: np.empty((0, 0), kind) for output, kind in view.types().items()}
        types = {name: score.of(nothing).dtype.name for name, score in view.outputs().items()}
        return CellQuery(self.condition, self.top, by, named, view.outputs(), types, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """As `Selection.of` takes it."""
        return {"where": self.text, "top": self.top, "by": self.by}


class CellBatch(NamedTuple):
    """Cells, in the order of rows and then columns, or of risk.

    scored columns: places among the scored columns. codes: of their values; None where the table is not at hand.
    risks: by which they are the riskiest; None where that is not asked. scores: of each column of scores.
    """

    rows: npt.NDArray[np.int64]
    scored_columns: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int64] | None
    risks: npt.NDArray[Any] | None
    scores: list[npt.NDArray[Any]]

    def take(self, places: npt.NDArray[np.intp] | slice) -> CellBatch:
        """Some of them."""
        codes, risks = (None if one is None else one[places] for one in (self.codes, self.risks))
        return CellBatch(
            self.rows[places], self.scored_columns[places], codes, risks, [one[places] for one in self.scores]
        )

    @classmethod
    def together(cls, parts: Sequence[CellBatch]) -> CellBatch:
        """Those of pieces of a table that follow each other."""
        if len(parts) == 1:
            return parts[0]
        rows, scored_columns, codes, risks, scores = zip(*parts, strict=True)
        return cls(
            np.concatenate(rows),
            np.concatenate(scored_columns),
            None if codes[0] is None else np.concatenate(codes),
            None if risks[0] is None else np.concatenate(risks),
            [np.concatenate(several) for several in zip(*scores, strict=True)],
        )

    def riskiest(self, n: int) -> CellBatch:
        """The n riskiest, in the order of the table; of equal ones the first."""
        risks = self.risks
        assert risks is not None
        if len(risks) <= n:
            return self
        least = np.partition(risks, len(risks) - n)[len(risks) - n]
        kept = risks > least
        kept[np.flatnonzero(risks == least)[: n - np.count_nonzero(kept)]] = True
        return self.take(np.flatnonzero(kept))

    def by_risk(self) -> CellBatch:
        """The riskiest first; of equal ones the first."""
        assert self.risks is not None
        # The lowest risk of whole numbers has no negative.
        return self.take(np.argsort(~self.risks if self.risks.dtype.kind == "i" else -self.risks, kind="stable"))


class ScoredRows(NamedTuple):
    """Scores of rows that follow each other, from `first` on: by output, arrays (columns, rows) of the host.

    codes: tells those of a scored column, by its place; None where the table is not at hand.
    """

    first: int
    arrays: Mapping[str, npt.NDArray[Any]]
    codes: Callable[[int], npt.NDArray[Any]] | None

    def pieces(self) -> Iterator[ScoredRows]:
        """The same rows, fewer at a time; of no rows one."""
        rows = next(iter(self.arrays.values())).shape[1]
        for start in range(0, max(rows, 1), SEARCHED_ROWS):
            yield self._between(slice(start, min(rows, start + SEARCHED_ROWS)))

    def _between(self, rows: slice) -> ScoredRows:
        of, arrays = self.codes, {output: array[:, rows] for output, array in self.arrays.items()}
        return ScoredRows(
            self.first + rows.start, arrays, None if of is None else lambda scored_column: of(scored_column)[rows]
        )


class Riskiest:
    """The n riskiest of cells that come in the order of the table; no more than twice as many are kept.

    least: None, or, where so many are there, such a risk that only riskier cells come in question.
    """

    def __init__(self, n: int) -> None:
        self.least: Any = None
        self._n = n
        self._waiting: list[CellBatch] = []

    def add(self, cells: CellBatch) -> None:
        """Cells that come after all that were added."""
        self._waiting.append(cells)
        if sum(len(one.rows) for one in self._waiting) >= 2 * self._n:
            found = self.found()
            assert found.risks is not None
            self._waiting, self.least = [found], found.risks.min()

    def found(self) -> CellBatch:
        """The riskiest, in the order of the table."""
        return CellBatch.together(self._waiting).riskiest(self._n)


@dataclass(frozen=True)
class CellQuery:
    """A `Selection` of scores. named: what its names are; shown: what is said of the cells, by the name of the column.

    by: None where not the riskiest are asked for. types: of what is shown. asked: as `Selection.to_dict` has it.
    """

    condition: Condition | None
    top: int | None
    by: CellScore | None
    named: Mapping[str, CellScore]
    shown: Mapping[str, CellScore]
    types: Mapping[str, str]
    asked: Mapping[str, Any]

    @property
    def outputs(self) -> list[str]:
        """The outputs that are looked at."""
        return list(dict.fromkeys([*outputs_of(self.shown.values()), *self.looked_at]))

    def search(self, pieces: Iterable[ScoredRows], workers: Workers) -> Iterator[CellBatch]:
        """The cells, found in pieces of a table that follow each other: in order, the riskiest of all in one go."""
        found = self.search_in_order(pieces, workers)
        return found if self.top is None else (cells.by_risk() for cells in found)

    def search_in_order(self, pieces: Iterable[ScoredRows], workers: Workers) -> Iterator[CellBatch]:
        """As `search`, but the riskiest too in the order of the table.

        Of these no more cells are kept than twice as many as are asked for, and those of a few pieces.
        """
        kept = None if self.top is None else Riskiest(self.top)
        each = iter(pieces)
        while wave := list(islice(each, workers.threads)):
            least = None if kept is None else kept.least
            for found in workers.run(self.find, [(piece, least) for piece in wave]):
                if kept is None:
                    yield found
                else:
                    kept.add(found)
        if kept is not None:
            yield kept.found()

    @property
    def looked_at(self) -> list[str]:
        """The outputs by which cells are chosen."""
        names = [] if self.condition is None else self.condition.names
        return outputs_of([*(self.named[name] for name in names), *([] if self.by is None else [self.by])])

    def risks(self, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any] | None:
        """How risky some cells are, a single row of them; None where that is not asked."""
        return None if self.by is None else as_risk(self.by.measure, self.by.of(arrays))[0]

    def find(self, piece: ScoredRows, least: Any = None, shown: bool = True) -> CellBatch:
        """Those of a piece, in the order of the table.

        least: none that is not riskier comes in question, for so many as are asked for are in the rows before. shown:
        whether they get scores.
        """
        arrays = piece.arrays
        first = next(iter(arrays.values()))
        held = np.ones(first.shape, bool)
        if self.condition is not None:
            held &= self.condition.holds(lambda name: self.named[name].of(arrays))
        risks = None
        if self.by is not None:
            scores = self.by.of(arrays)
            risks = as_risk(self.by.measure, scores)
            held &= (scores == scores) if least is None else (risks > least)
        rows, scored_columns = np.nonzero(held.T)
        codes = None
        if piece.codes is not None:
            codes = np.empty(len(rows), np.int64)
            for scored_column in np.unique(scored_columns):
                mine = scored_columns == scored_column
                codes[mine] = piece.codes(scored_column)[rows[mine]]
        several = self.shown.values() if shown else []
        some = {output: arrays[output][scored_columns, rows][None] for output in outputs_of(several)}
        scores = [score.of(some)[0] for score in several]
        return CellBatch(
            rows + piece.first, scored_columns, codes, None if risks is None else risks[scored_columns, rows], scores
        )
