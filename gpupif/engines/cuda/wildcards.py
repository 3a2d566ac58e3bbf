"""Missing values that match every value, on the device: `wildcard_matching` tells how cohorts are found."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpupif.kernels.cuda import wildcards as kernels

from ...gpu.base import DeviceMemoryError, Library
from ..memory import link_bytes, match_bytes
from ..wildcards import WildcardColumns, set_scored_column_weight
from .grouping import Grouping, collapse_table
from .rows import Runs, collapse, find_runs, place_type
from .scores import DeviceScoredColumn, ScoredColumnUploader, describe_cohorts
from .whole_table import TableRun
from .wildcard_matching import Lists, PatternRows, by_pattern, cohorts_of, count_patterns, list_answers, match

# By what to divide the memory that is planned with where it was too much.
SHRINK = 8


class KeyTooLargeError(DeviceMemoryError):
    """The cohort of a single key does not fit, which takes so many bytes beside the table; 0: not known."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def score_matching(run: TableRun, memory: int, scored_columns: int, grouping: Grouping) -> int:
    """Score the scored columns of a run; returns distinct rows.

    memory: bytes to plan with for the keys that are scored at once. scored columns: how many all devices score. Raises
    KeyTooLargeError, and InputError where there are too many patterns of missing values.
    """
    library, job, layout = run.library, run.job, run.results.layout
    distinct, number = collapse_table(library, grouping, job, range(len(job.codes)))
    everything, describe = WildcardColumns.of(job, layout), ScoredColumnUploader(library, job)
    everything.check_work(scored_columns, count_patterns(distinct, everything), distinct.rows)
    for scored_column in run.scored_columns:
        asked = WildcardColumns.of(job, layout, scored_column)
        with library.stage("group"):
            # Lists of values are searched by bisection, so these are sorted, whatever the grouping.
            part, place = collapse(distinct, [scored_column, *asked.columns])
            place = place[number]
            rows = by_pattern(part, asked, scored_column)
        del part
        scorer = _Scorer(library, rows, describe(scored_column), len(job.priors[scored_column]), memory)
        for pattern in range(len(rows.keep)):
            scorer.score(pattern)
        set_scored_column_weight(run.results, scored_column, library.to_host(library.xp.sort(scorer.losses)))
        scores = scorer.scores
        del rows, scorer
        run.put(scored_column, scores, place)
        # Before the next ones are made.
        del scores, place
    return distinct.rows


class _Scorer:
    """Scores one scored column, as many keys at once as there is memory for; no result depends on how many.

    missing: the code of missing values. scores (measures, distinct rows): weighted ones before weighting; losses: see
    the kernel `score_rows`.
    """

    def __init__(
        self, library: Library, rows: PatternRows, described: DeviceScoredColumn, missing: int, memory: int
    ) -> None:
        self._library = library
        self._rows = rows
        self._described = described
        self._missing = missing
        self._memory = memory
        # What the asking pattern is told, and cells of the largest cohorts that were made at once.
        self._lists: Lists | None = None
        self._largest = 0
        size = len(rows.counts)
        self.scores = library.xp.empty((len(described.wanted.measures), size))
        self.losses = library.xp.empty(size)

    def score(self, pattern: int) -> None:
        """Score the keys of one pattern. Raises KeyTooLargeError."""
        self._lists = None
        first, stop = self._rows.offsets[pattern : pattern + 2].tolist()
        while first < stop:
            try:
                with self._library.active():
                    first = self._score_keys(pattern, first, stop)
            except DeviceMemoryError:
                self._lists = None
                self._library.release()
                if not self._memory:
                    raise KeyTooLargeError(self._key_bytes() + self._largest * self._cell_bytes()) from None
                self._memory //= SHRINK

    def _key_bytes(self) -> int:
        return link_bytes(len(self._rows.keep))

    def _cell_bytes(self) -> int:
        return match_bytes(len(self._described.wanted.measures))

    def _score_keys(self, pattern: int, first: int, stop: int) -> int:
        """Score some keys, of those of a pattern from `first` on; returns the next one.

        Half of the memory is for what they match, half for as many of their cohorts as fit there.
        """
        library, rows = self._library, self._rows
        self._largest = 0
        with library.stage("match"):
            lists = self._lists = self._lists or list_answers(library, rows, pattern)
            last = min(stop, first + max(1, self._memory // 2 // self._key_bytes()))
            matches = match(library, rows, lists, first, last)
        edges, most = matches.edges, self._memory // 2 // self._cell_bytes()
        start = 0
        while start < last - first:
            end = max(start + 1, int(np.searchsorted(edges, edges[start] + most, "right")) - 1)
            self._largest = int(edges[end] - edges[start])
            with library.stage("match"):
                cohorts = cohorts_of(library, rows, lists, matches, start, end)
            with library.stage("score"):
                self._score_cohorts(cohorts, first + start, first + end)
            start = end
        return last

    def _score_cohorts(self, cohorts: tuple[Any, Any], first: int, last: int) -> None:
        """Score the rows of the keys first to last - 1, each of which has one of the cohorts; see `cohorts_of`."""
        library, rows, values, wanted = self._library, self._rows, self._described.values, self._described.wanted
        xp, (words,), counts = library.xp, *cohorts
        keys = find_runs(library, *cohorts, xp.arange(len(words)), ~np.array([rows.mask], np.uint64))
        named = words & rows.mask != self._missing
        # Missing values of the scored column are the highest of all.
        ends = keys.starts[1:] - 1
        lacking = xp.where(named[ends], 0, counts[ends])
        certain = keys.sizes - lacking
        known = certain > 0
        number = xp.cumsum(known.astype("int64"))
        # Values that no row has that counts are no cells.
        there = named & (counts > 0)
        order = xp.flatnonzero(there)
        before = xp.append(xp.zeros(1, "int64"), xp.cumsum(there.astype("int64")))
        cells_of = before[keys.starts[1:]] - before[keys.starts[:-1]]
        starts = xp.append(xp.zeros(1, "int64"), xp.cumsum(cells_of[known]))
        run_of_cell = number[keys.run_of[order] - 1]
        order, cell_starts, run_of_cell = (
            array.astype(place_type(len(words))) for array in (order, starts, run_of_cell)
        )
        runs = Runs(order, cell_starts, run_of_cell, certain[known])
        cells, found = describe_cohorts(library, self._described, runs, (words, counts), (0, rows.mask))
        row, end = (int(library.to_host(rows.starts[key : key + 1])[0]) for key in (first, last))
        own = (rows.order[row:end], rows.key_of[row:end], rows.keys[-1][row:end], rows.counts[row:end])
        run_of = xp.where(known, number - 1, -1)
        library.launch(
            kernels.score_rows,
            end - row,
            own,
            first,
            rows.mask,
            (run_of, keys.sizes, certain, starts),
            values,
            wanted,
            cells,
            found,
            self.losses[row:end],
            self.scores,
        )
