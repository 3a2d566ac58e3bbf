"""One attacker in a run from files to files: the table scored, and what a summary says of the scores.

Who knows any few of the columns is two: the worst and the mean over all subsets of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..attack.priors import Prior
from ..engines.part_jobs import weight_of
from ..results.riskiest import describe
from ..results.summary import Summary
from ..results.worst_attacker import find_worst
from .chunks import TableChunks
from .gather import Cell, Facts, Gatherer, riskiest
from .one_place import Fold
from .part_result import Found
from .passes import Scored
from .summary import codes_of_row, riskiest_cells, row_gain_percentiles, summary_columns


class Attack:
    """What is done for one attacker, or one fold of one who knows any few columns.

    scored: the table, for the attacker's job. chunks: its rows. prior_of: by column. people: the population's rows
    beside those of the table, for the sizes of cohorts in it; None where there is no population.
    """

    def __init__(
        self, scored: Scored, chunks: TableChunks, prior_of: Mapping[Hashable, Prior], people: Scored | None = None
    ) -> None:
        self.scored = scored
        self.chunks = chunks
        self.prior_of = prior_of
        self.people = people

    def score(self) -> Gatherer:
        """Score the table in parts; what puts the scores together."""
        scored, job = self.scored, self.scored.job
        found = scored.score()
        if self.people is not None:
            self.people.score()
        weights = [found.weights[target] for target in job.targets] if found.weights else self._weights(found)
        self._gatherer = Gatherer(scored, weights, scored.file("facts"), self.people)
        return self._gatherer

    def _weights(self, found: Found) -> list[float]:
        scored, job = self.scored, self.scored.job
        total = self.chunks.rows if scored.units is None else scored.units.total
        return [
            weight_of(job, total, target, [found.cohorts[target]], [found.distinct[target]]) for target in job.targets
        ]

    def summary(self, seconds: Mapping[str, float]) -> Summary:
        """The summary, when all scores are put together."""
        started = time.perf_counter()
        scored, means, job = self.scored, self.scored.means, self.scored.job
        means.report.stage("summarise", None, "")
        gatherer, chunks = self._gatherer, self.chunks
        facts = [Facts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]
        columns: pd.DataFrame = summary_columns(job, self.prior_of, chunks, facts, gatherer.weights, scored.gains)
        pif = row_gain_percentiles(gatherer, chunks)
        cells = riskiest(cell for chunk in facts for cell in chunk.top)
        top = self._riskiest(cells)
        distinct = scored.distinct_rows()
        means.timed("summarise", started)
        return Summary(
            chunks.rows, distinct, means.engine.device, tuple(gatherer.measures), dict(seconds), columns, pif, top
        )

    def _riskiest(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """`Summary.top`."""
        scored = self.scored
        if isinstance(scored, Fold) and scored.fold:
            return pd.DataFrame.from_records([self._describe(scored, cell) for cell in cells])
        return riskiest_cells(scored.job, self._gatherer.measures, self.chunks, cells, scored.units)

    def _describe(self, fold: Fold, cell: Cell) -> dict[str, Any]:
        """As the scores in memory describe a cell."""
        whole, job = fold.whole, fold.job
        position, key = job.targets[cell.target], codes_of_row(self.chunks, cell.row)
        column, code = self.chunks.columns[position], key[position]
        scores = dict(zip(self._gatherer.measures, cell.scores, strict=True))
        if fold.fold == "mean":
            place = {"row": cell.row, "column": column.name, "value": column.values([code])[0]}
            priors = job.priors[position]
            return place | scores | {"prior": float(priors[code]) if code < len(priors) else math.nan}
        assert whole.subsets is not None
        table = replace(whole.job, codes=whole.table.codes, times=whole.table.times)
        same = np.ones(table.rows, bool)
        for codes, own in zip(table.codes, key, strict=False):
            same &= codes == own
        subsets = whole.subsets.places_of(position)
        weights, by = whole.weights_of(position), self._gatherer.by
        worst = find_worst(table, int(np.argmax(same)), position, subsets, weights, by)
        found = describe(job, position, column, code, scores, worst.equal, worst.size, worst.lacking)
        return {"row": cell.row} | found | {"known": worst.called(whole.subsets.names)}
