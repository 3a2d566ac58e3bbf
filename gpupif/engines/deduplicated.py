"""Equal rows collapsed once for several jobs on the same table; their scores brought back to all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.spread import look_up

from ..rows.distinct import distinct_rows, sum_times
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .base import SILENT, AnyKnownResult, Engine, EngineResult, Job, KnownSubset, Progress
from .known_subsets import score_attacker

# Of the rows so many at most are different where it is worth it.
WORTH = 0.5


@dataclass(frozen=True)
class DeduplicatedTable:
    """The distinct rows of a table over some columns. codes: by column; times: what each stands for, as `Job.times`;
    row_counts: how many rows each is.

    number: for each row of the table, which of them it is.
    """

    codes: Sequence[npt.NDArray[Any]]
    times: npt.NDArray[np.int64]
    row_counts: npt.NDArray[np.int64]
    number: npt.NDArray[Any]

    @classmethod
    def of(
        cls, codes: Sequence[Any], cardinalities: Sequence[int], times: npt.NDArray[np.int64] | None
    ) -> DeduplicatedTable | None:
        """Rows with these codes, `times` each (None: once); None where most of them are different."""
        layout = KeyLayout.of(cardinalities)
        with Workers() as workers:
            keys = layout.pack([on_host(column) for column in codes], workers)
            counts = np.ones(len(keys), np.int64) if times is None else times
            found = distinct_rows(Rows(keys, counts), int(counts.sum()), workers)
            if len(found.rows.keys) > WORTH * len(keys):
                return None
            counts = found.rows.counts.astype(np.int64)
            rows = counts if times is None else sum_times(found.number, np.ones(len(keys), np.int64), len(counts))
        return cls(layout.unpack(found.rows.keys), counts, rows, found.number)

    def score(
        self,
        engine: Engine,
        job: Job,
        places: Sequence[int],
        sets: Sequence[KnownSubset] | None,
        progress: Progress,
    ) -> EngineResult | AnyKnownResult:
        """As `score_attacker`, for a job on the whole table, whose columns are those at `places` here."""
        codes = [self.codes[place] for place in places]
        small = replace(job, codes=codes, times=self.times, row_counts=self.row_counts, scores_on="host")
        result = score_attacker(engine, small, sets, SILENT)
        progress.advance(
            len(self.number) * (len(job.scored_columns) if sets is None else sum(len(s.scored_columns) for s in sets))
        )
        if isinstance(result, AnyKnownResult):
            return replace(result, worst=self._spread_all(result.worst), mean=self._spread_all(result.mean))
        return replace(result, values=self._spread_all(result.values))

    def _spread_all(self, values: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        return {name: self._spread(scores) for name, scores in values.items()}

    def _spread(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Scores (scored columns, distinct rows) of all rows."""
        out = np.empty((len(scores), len(self.number)), scores.dtype)
        with Workers() as workers:
            tasks = [
                (scored_column, *edges)
                for scored_column in range(len(scores))
                for edges in workers.ranges(len(self.number))
            ]
            workers.run(lambda k, a, b: look_up(scores[k], self.number[a:b], out[k, a:b]), tasks)
        return out
