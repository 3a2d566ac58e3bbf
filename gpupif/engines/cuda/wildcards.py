"""Which rows match where missing values match every value, on the device: one pattern of them asks all.

Seen by an asking pattern, rows of each pattern keep the known columns that neither lacks. They are sorted by what is
left and by value: the values of those that agree are a list. A key that asks finds its list of each pattern by
bisection of whole keys, so that nothing is left to a hash; its cohort is what its lists hold together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.cuda import wildcards as kernels

from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...rows.keys import KeyLayout
from ..memory import link_bytes, match_bytes
from ..wildcards import WildcardColumns, set_scored_column_weight
from .grouping import Grouping, collapse_table
from .rows import DeviceRows, Runs, collapse, find_runs, in_few_bytes, lowest_bit, narrow_words, place_type
from .scores import DeviceScoredColumn, ScoredColumnUploader, describe_cohorts
from .whole_table import TableRun

EVERYTHING = np.array([~np.uint64(0)])
# By what to divide the memory that is planned with where it was too much.
SHRINK = 8


@dataclass(frozen=True)
class PatternRows:
    """Rows on the device, sorted by pattern of missing values, known columns and value.

    keys (words + 1, rows): known columns, and in the last word the pattern above `bits`, and the value below. order:
    where each row stood. starts: of the rows with a key, one more than there are keys; key_of: that of each row.
    offsets: the first key of each pattern and the end of the last, on the host. keep (patterns, words): masks of the
    columns that each pattern does not lack; kept: whether there are any, on the host. by_value: the rows sorted by
    value, stably.
    """

    layout: KeyLayout
    keys: Any
    bits: int
    counts: Any
    order: Any
    starts: Any
    key_of: Any
    offsets: npt.NDArray[np.int64]
    keep: Any
    kept: npt.NDArray[np.bool_]
    by_value: Any

    @property
    def mask(self) -> int:
        """Of the value in the last word."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Lists:
    """What all patterns have for one that asks.

    seen: the keys of all rows as it sees them. offsets: the first list of each pattern and the end of the last; firsts:
    a row of each; starts: its first entry, one more than there are lists. values, counts: of entries; values of a list
    ascend.
    """

    seen: Any
    offsets: Any
    firsts: Any
    starts: Any
    values: Any
    counts: Any


@dataclass(frozen=True)
class Matches:
    """The lists that some keys of one pattern find: links[i * patterns + p] that of the i-th with pattern p, or -1.

    offsets: the first entry of each link, as if they stood one after the other; one more for the end. edges: the same
    by key, on the host.
    """

    links: Any
    offsets: Any
    edges: npt.NDArray[np.int64]


def count_patterns(rows: DeviceRows, asked: WildcardColumns) -> int:
    """Different patterns of missing values."""
    return len(_by_pattern(rows, asked)[0].starts) - 1


def by_pattern(rows: DeviceRows, asked: WildcardColumns, scored_column: int) -> PatternRows:
    """Rows that are distinct over a scored column and what is known, sorted with the scored column as the lowest."""
    library, xp, layout, field = rows.library, rows.library.xp, rows.layout, rows.layout.fields[scored_column]
    runs, patterns = _by_pattern(rows, asked)
    order = runs.order
    bits = max(1, field.mask.bit_length())
    keys = xp.empty((layout.words + 1, rows.rows), "uint64")
    for word, mask in enumerate(layout.masks(asked.columns).tolist()):
        keys[word] = rows.keys[word][order] & mask
    values = (rows.keys[field.word][order] >> field.shift) & field.mask
    keys[-1] = (runs.run_of - 1).astype("uint64") << bits | values
    counts = rows.counts[order]
    known = np.append(np.tile(EVERYTHING, layout.words), np.uint64(0))
    found = find_runs(library, keys, counts, xp.arange(rows.rows), known)
    key_of = found.run_of - 1
    offsets = np.append(library.to_host(key_of[runs.starts[:-1]]), len(found.sizes))
    by_value = library.stable_order(in_few_bytes(values, bits))
    keep = asked.keep(np.ascontiguousarray(patterns.T))
    return PatternRows(
        layout, keys, bits, counts, order, found.starts, key_of, offsets, library.bring(keep), keep > 0, by_value
    )


def _by_pattern(rows: DeviceRows, asked: WildcardColumns) -> tuple[Runs, npt.NDArray[np.uint64]]:
    """Rows sorted by pattern, stably, as runs; and the patterns (words, patterns)."""
    library, xp = rows.library, rows.library.xp
    flags = xp.zeros((asked.words, rows.rows), "uint64")
    fields, missing = library.bring(asked.fields), library.bring(asked.missing)
    library.launch(kernels.mark_missing, rows.rows, rows.keys, fields, missing, flags)
    order = xp.arange(rows.rows)
    for word in reversed(range(asked.words)):
        order = order[library.stable_order(flags[word][order])]
    runs = find_runs(library, flags, rows.counts, order, np.tile(EVERYTHING, asked.words))
    return runs, library.to_host(xp.take(flags, order[runs.starts[:-1]], axis=1))


def list_answers(library: CupyLibrary, rows: PatternRows, asking: int) -> Lists:
    """The lists of all patterns, the asking one too, for one that asks."""
    xp, words = library.xp, rows.layout.words
    seen = xp.empty(rows.keys.shape, "uint64")
    library.launch(kernels.mask_rows, rows.keys.shape[1], rows.keys, rows.bits, rows.keep, asking, seen)
    order = rows.by_value
    for word in reversed(range(words)):
        if rows.kept[asking, word]:
            part = narrow_words(seen[word][order], lowest_bit(rows.layout, word))
            order = order[library.stable_order(part)]
    patterns = in_few_bytes(rows.keys[-1] >> rows.bits, len(rows.keep).bit_length())
    order = order[library.stable_order(patterns[order])]
    everything = np.tile(EVERYTHING, words + 1)
    entries = find_runs(library, seen, rows.counts, order, everything)
    everything[-1] <<= np.uint64(rows.bits)
    lists = find_runs(library, seen, rows.counts, order, everything).starts
    firsts = order[lists[:-1]]
    ends = xp.cumsum(xp.bincount(patterns[firsts].astype("int64"), minlength=len(rows.keep)))
    starts = xp.append(entries.run_of[lists[:-1]] - 1, len(entries.sizes))
    values = seen[-1][order[entries.starts[:-1]]] & rows.mask
    return Lists(seen, xp.append(xp.zeros(1, "int64"), ends), firsts, starts, values, entries.sizes)


def match(library: CupyLibrary, rows: PatternRows, lists: Lists, first: int, last: int) -> Matches:
    """What the keys first to last - 1, of the pattern that asks, find."""
    xp, patterns = library.xp, len(rows.keep)
    size = (last - first) * patterns
    links, lengths = xp.empty(size, "int64"), xp.empty(size, "int64")
    asking, found = rows.starts[first:last], (lists.offsets, lists.firsts, lists.starts)
    library.launch(kernels.find_lists, size, lists.seen, rows.keep, found, asking, links, lengths)
    offsets = xp.append(xp.zeros(1, "int64"), xp.cumsum(lengths))
    return Matches(links, offsets, library.to_host(offsets[::patterns]))


def cohorts_of(
    library: CupyLibrary, rows: PatternRows, lists: Lists, matches: Matches, first: int, last: int
) -> tuple[Any, Any]:
    """Cohorts of some of the keys that were matched: distinct words, key above `bits` and value below, and counts."""
    xp, patterns = library.xp, len(rows.keep)
    before = int(matches.edges[first])
    size = int(matches.edges[last]) - before
    words, counts = xp.empty((1, size), "uint64"), xp.empty(size, "int64")
    # Of the links of these keys only.
    links = slice(first * patterns, last * patterns)
    offsets = matches.offsets[links.start : links.stop + 1]
    entries = (lists.starts, lists.values, lists.counts)
    which = (matches.links[links], offsets)
    library.launch(kernels.list_cells, size, before, patterns, which, entries, rows.bits, words[0], counts)
    order = library.stable_order(in_few_bytes(words[0], rows.bits + (last - first).bit_length()))
    runs = find_runs(library, words, counts, order, EVERYTHING)
    return words[:, order[runs.starts[:-1]]], runs.sizes


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
    everything, describe = WildcardColumns.known_for(job, layout), ScoredColumnUploader(library, job)
    everything.check_work(scored_columns, count_patterns(distinct, everything), distinct.rows)
    for scored_column in run.scored_columns:
        asked = WildcardColumns.known_for(job, layout, scored_column)
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
        self, library: CupyLibrary, rows: PatternRows, described: DeviceScoredColumn, missing: int, memory: int
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
