"""The cells that are requested in place of all: those that meet a condition, and of these the riskiest (`--top`)."""

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
from .cell_condition import Condition, parse_condition
from .riskiest import CellBatch, Riskiest
from .score_outputs import CellScore, ScoreView, outputs_of

# The most cells that one thread searches in one go.
SEARCHED_CELLS = 1 << 15


@dataclass(frozen=True)
class Selection:
    """The arguments of `Scores.cells`, checked. text: of the condition. If all are None, every cell is selected."""

    text: str | None = None
    top: int | None = None
    by: str | None = None
    condition: Condition | None = field(default=None, compare=False)

    @classmethod
    def from_user(cls, where: Any = None, top: Any = None, by: Any = None) -> Selection:
        """Return the selection for arguments of a user. Raises InputError."""
        if top is None and by is not None:
            raise InputError("by: goes with top=. Add that, or leave it out.")
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
        """Return the selection as `of` does; None if no argument is given."""
        selection = cls.from_user(where, top, by)
        return None if selection == cls() else selection

    @property
    def names(self) -> list[str]:
        """The names of scores in the selection."""
        return [*([] if self.condition is None else self.condition.names), *([] if self.by is None else [self.by])]

    def check(self, measures: Sequence[str], outputs: Sequence[str]) -> None:
        """Raise InputError if the selection names a score other than these measures and outputs."""
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
        """Return the query for the selected cells of some scores. Raises InputError if these lack a named score."""
        named = view.by_name()
        self.check([measure.name for measure in view.measures], list(named))
        by = None if self.top is None else named[self.by or view.default.name]
        nothing = {output: np.empty((0, 0), kind) for output, kind in view.types().items()}
        types = {name: score.compute(nothing).dtype.name for name, score in view.outputs().items()}
        return CellQuery(self.condition, self.top, by, named, view.outputs(), types, self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the arguments that `Selection.from_user` takes."""
        return {"where": self.text, "top": self.top, "by": self.by}


class ScoredRows(NamedTuple):
    """The scores of rows that follow each other in the table.

    first: the number of the first row. arrays: scores (scored columns, rows) by output, on the host. codes: returns the
    codes of the scored column at a place among the scored columns; None if the table is not at hand.
    """

    first: int
    arrays: Mapping[str, npt.NDArray[Any]]
    codes: Callable[[int], npt.NDArray[Any]] | None

    def chunks(self) -> Iterator[ScoredRows]:
        """Cut the rows into chunks to be searched; no rows are one chunk."""
        columns, rows = next(iter(self.arrays.values())).shape
        searched = max(1, SEARCHED_CELLS // columns)
        for start in range(0, max(rows, 1), searched):
            yield self._between(slice(start, min(rows, start + searched)))

    def _between(self, rows: slice) -> ScoredRows:
        codes_of, arrays = self.codes, {output: array[:, rows] for output, array in self.arrays.items()}
        codes = None if codes_of is None else lambda scored_column: codes_of(scored_column)[rows]
        return ScoredRows(self.first + rows.start, arrays, codes)


@dataclass(frozen=True)
class CellQuery:
    """A `Selection` from certain scores.

    condition, top: see `Selection`.
    by: the score by which cells are the riskiest; None if all that meet the condition are selected.
    named: the score of each name that may be in a condition.
    shown: the scores of the selected cells, by the name of their column in the result.
    types: of the scores that are shown, by the same name.
    asked: see `Selection.to_dict`.
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
        """The outputs whose scores the query needs."""
        return list(dict.fromkeys([*outputs_of(self.shown.values()), *self.looked_at]))

    @property
    def looked_at(self) -> list[str]:
        """The outputs by whose scores cells are selected."""
        names = [] if self.condition is None else self.condition.names
        return outputs_of([*(self.named[name] for name in names), *([] if self.by is None else [self.by])])

    def search(self, chunks: Iterable[ScoredRows], workers: Workers) -> Iterator[CellBatch]:
        """Return the selected cells: in the order of the table, or, with `top`, all in one batch, the riskiest first.

        chunks: of all rows, in the order of the table.
        """
        cells = self.search_in_order(chunks, workers)
        return cells if self.top is None else (batch.by_risk() for batch in cells)

    def search_in_order(self, chunks: Iterable[ScoredRows], workers: Workers) -> Iterator[CellBatch]:
        """Return the selected cells as `search` does, but always in the order of the table.

        With `top` no more than about twice as many cells are held at once, and the cells of a few chunks.
        """
        kept = None if self.top is None else Riskiest(self.top)
        remaining = iter(chunks)
        while wave := list(islice(remaining, workers.threads)):
            least = None if kept is None else kept.least
            for batch in workers.run(self.find, [(chunk, least) for chunk in wave]):
                if kept is None:
                    yield batch
                else:
                    kept.add(batch)
        if kept is not None:
            yield kept.found()

    def risks(self, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[Any] | None:
        """Return how risky the cells of a single column are; None if the riskiest are not requested."""
        return None if self.by is None else as_risk(self.by.measure, self.by.compute(arrays))[0]

    def find(self, chunk: ScoredRows, least: Any = None, shown: bool = True) -> CellBatch:
        """Return the selected cells of a chunk, in the order of the table.

        least: only riskier cells are wanted, for enough cells before are at least this risky. shown: whether the cells
        get their scores.
        """
        arrays = chunk.arrays
        selected = np.ones(next(iter(arrays.values())).shape, bool)
        if self.condition is not None:
            selected &= self.condition.holds(lambda name: self.named[name].compute(arrays))
        risks = None
        if self.by is not None:
            scores = self.by.compute(arrays)
            risks = as_risk(self.by.measure, scores)
            selected &= (scores == scores) if least is None else (risks > least)
        rows, scored_columns = np.nonzero(selected.T)
        codes = None
        if chunk.codes is not None:
            codes = np.empty(len(rows), np.int64)
            for scored_column in np.unique(scored_columns):
                in_column = scored_columns == scored_column
                codes[in_column] = chunk.codes(scored_column)[rows[in_column]]
        shown_scores = self.shown.values() if shown else []
        selected_scores = {output: arrays[output][scored_columns, rows][None] for output in outputs_of(shown_scores)}
        return CellBatch(
            rows + chunk.first,
            scored_columns,
            codes,
            None if risks is None else risks[scored_columns, rows],
            [score.compute(selected_scores)[0] for score in shown_scores],
        )
