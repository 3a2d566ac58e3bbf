"""One attacker in a run from files to files: the table's parts scored, and what a summary says of them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..attack.priors import Prior
from ..engines.part_jobs import weight_of
from ..results.summary import Summary
from .chunks import TableChunks
from .gather import Cell, Facts, Gatherer, riskiest
from .part_result import Found
from .passes import Scored
from .summary import riskiest_cells, row_gain_percentiles, summary_columns

if TYPE_CHECKING:
    import pandas as pd


class Attack:
    """What is done for one attacker.

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
        return riskiest_cells(scored.job, self._gatherer.measures, self.chunks, cells, scored.units)
