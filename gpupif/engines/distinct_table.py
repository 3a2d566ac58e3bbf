"""The distinct rows of a table, found once for several attackers, whose scores are copied to all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.spread import look_up

from ..rows.distinct import distinct_rows, sum_multiplicities
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .attacker_scoring import score_attacker
from .base import SILENT, AnyKnownResult, Engine, EngineResult, Job, KnownSubset, Progress

# The largest share of distinct rows among all rows at which this saves time.
WORTH = 0.5


@dataclass(frozen=True)
class DistinctTable:
    """The distinct rows of a table over some columns.

    codes: by column, (distinct rows,).
    multiplicities: (distinct rows,). The multiplicity of each distinct row, or with sampling weights its units of
    people. row_counts: (distinct rows,). The rows of the table with each distinct row.
    number: (rows of the table,). The number of each row's distinct row.
    """

    codes: Sequence[npt.NDArray[Any]]
    multiplicities: npt.NDArray[np.int64]
    row_counts: npt.NDArray[np.int64]
    number: npt.NDArray[Any]

    @classmethod
    def from_codes(
        cls, codes: Sequence[Any], cardinalities: Sequence[int], multiplicities: npt.NDArray[np.int64] | None
    ) -> DistinctTable | None:
        """Return the distinct rows of a table with these codes, or None if more than `WORTH` of its rows are distinct.

        multiplicities: (rows,) multiplicities; None: 1 each.
        """
        layout = KeyLayout.from_cardinalities(cardinalities)
        with Workers() as workers:
            keys = layout.pack([on_host(column) for column in codes], workers)
            once = np.ones(len(keys), np.int64)
            counts = once if multiplicities is None else multiplicities
            distinct = distinct_rows(Rows(keys, counts), int(counts.sum()), workers)
        if len(distinct.rows.keys) > WORTH * len(keys):
            return None
        counts = distinct.rows.counts.astype(np.int64)
        rows = counts if multiplicities is None else sum_multiplicities(distinct.number, once, len(counts))
        return cls(layout.unpack(distinct.rows.keys), counts, rows, distinct.number)

    def score(
        self, engine: Engine, job: Job, columns: Sequence[int], sets: Sequence[KnownSubset] | None, progress: Progress
    ) -> EngineResult | AnyKnownResult:
        """Score a job on the whole table, as `score_attacker` does. columns: places of the job's columns in `codes`."""
        codes = [self.codes[column] for column in columns]
        small = replace(
            job, codes=codes, multiplicities=self.multiplicities, row_counts=self.row_counts, scores_on="host"
        )
        result = score_attacker(engine, small, sets, SILENT)
        cells = len(job.scored_columns) if sets is None else sum(len(one.scored_columns) for one in sets)
        progress.advance(len(self.number) * cells)
        if isinstance(result, AnyKnownResult):
            return replace(result, worst=self._of_all_rows(result.worst), mean=self._of_all_rows(result.mean))
        return replace(result, values=self._of_all_rows(result.values))

    def _of_all_rows(self, values: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Return scores (scored columns, rows of the table) by measure, from the scores of distinct rows."""
        number, spread = self.number, {}
        with Workers() as workers:
            for name, scores in values.items():
                out = spread[name] = np.empty((len(scores), len(number)), scores.dtype)
                tasks = [(slot, *edges) for slot in range(len(scores)) for edges in workers.ranges(len(number))]
                workers.run(
                    lambda slot, a, b, scores=scores, out=out: look_up(scores[slot], number[a:b], out[slot, a:b]), tasks
                )
        return spread
