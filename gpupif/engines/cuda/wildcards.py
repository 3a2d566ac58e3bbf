"""Matching of rows if missing values match every value, on the device: one asking pattern after the other.

A pattern is the set of known columns that a row lacks. For an asking pattern, the rows of each pattern keep the known
columns that neither pattern lacks. Rows are sorted by these columns and by value. The values of rows that agree are a
list. An asking key finds its list in each pattern by bisection of whole keys, so no hash decides. Its cohort is the
union of its lists.
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
from .rows import DeviceRows, EqualRows, collapse, find_equal_rows, in_few_bytes, lowest_bit, narrow_words, place_type
from .scores import DeviceScoredColumn, ScoredColumnUploader, describe_cohorts
from .whole_table import TableRun

EVERYTHING = np.array([~np.uint64(0)])
# Divisor of the planned memory after it was too large.
SHRINK = 8


@dataclass(frozen=True)
class PatternRows:
    """Rows on the device, sorted by pattern of missing values, known columns and value.

    layout: the layout of the keys.
    keys: (words + 1, rows). The known columns; the last word has the pattern above `bits` bits and the value below.
    bits: the number of bits of a value.
    counts: (rows,) multiplicities.
    order: (rows,) the place of each row before sorting.
    starts: (keys + 1,) the first row of each distinct key, and the end.
    key_of: (rows,) the number of each row's key.
    offsets: (patterns + 1,) the first key of each pattern, and the end; on the host.
    keep: (patterns, words) masks of the columns that the pattern does not lack.
    kept: (patterns, words) whether the mask is not 0; on the host.
    by_value: (rows,) the order of the rows by value, stable.
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
        """The mask of the value in the last word of a key."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Lists:
    """The lists of all patterns for one asking pattern.

    seen: (words + 1, rows) the keys of all rows, masked for the asking pattern.
    offsets: (patterns + 1,) the first list of each pattern, and the end.
    firsts: (lists,) a row of each list.
    starts: (lists + 1,) the first entry of each list, and the end.
    values: (entries,) the values; ascending in each list.
    counts: (entries,) the multiplicities.
    """

    seen: Any
    offsets: Any
    firsts: Any
    starts: Any
    values: Any
    counts: Any


@dataclass(frozen=True)
class Matches:
    """The lists that some keys of the asking pattern find.

    links: (keys * patterns,) the list of key i in pattern p, at i * patterns + p; -1 for none.
    offsets: the first entry of each link, counted over all links, and the end.
    edges: (keys + 1,) the first entry of each key, and the end; on the host.
    """

    links: Any
    offsets: Any
    edges: npt.NDArray[np.int64]


def count_patterns(rows: DeviceRows, asked: WildcardColumns) -> int:
    """Return the number of patterns of missing values."""
    return len(_by_pattern(rows, asked)[0].starts) - 1


def by_pattern(rows: DeviceRows, asked: WildcardColumns, scored_column: int) -> PatternRows:
    """Return rows sorted for matching. rows: distinct over a scored column and the known columns."""
    library, xp, layout, field = rows.library, rows.library.xp, rows.layout, rows.layout.fields[scored_column]
    equal, patterns = _by_pattern(rows, asked)
    order = equal.order
    bits = max(1, field.mask.bit_length())
    keys = xp.empty((layout.words + 1, rows.rows), "uint64")
    for word, mask in enumerate(layout.masks(asked.columns).tolist()):
        keys[word] = rows.keys[word][order] & mask
    values = (rows.keys[field.word][order] >> field.shift) & field.mask
    keys[-1] = (equal.set_of - 1).astype("uint64") << bits | values
    counts = rows.counts[order]
    known = np.append(np.tile(EVERYTHING, layout.words), np.uint64(0))
    of_key = find_equal_rows(library, keys, counts, xp.arange(rows.rows), known)
    key_of = of_key.set_of - 1
    offsets = np.append(library.to_host(key_of[equal.starts[:-1]]), len(of_key.sizes))
    by_value = library.stable_order(in_few_bytes(values, bits))
    keep = asked.keep(np.ascontiguousarray(patterns.T))
    return PatternRows(
        layout, keys, bits, counts, order, of_key.starts, key_of, offsets, library.bring(keep), keep > 0, by_value
    )


def _by_pattern(rows: DeviceRows, asked: WildcardColumns) -> tuple[EqualRows, npt.NDArray[np.uint64]]:
    """Return the rows sorted stably by pattern, in sets, and the patterns (words, patterns)."""
    library, xp = rows.library, rows.library.xp
    flags = xp.zeros((asked.words, rows.rows), "uint64")
    fields, missing = library.bring(asked.fields), library.bring(asked.missing)
    library.launch(kernels.mark_missing, rows.rows, rows.keys, fields, missing, flags)
    order = xp.arange(rows.rows)
    for word in reversed(range(asked.words)):
        order = order[library.stable_order(flags[word][order])]
    equal = find_equal_rows(library, flags, rows.counts, order, np.tile(EVERYTHING, asked.words))
    return equal, library.to_host(xp.take(flags, order[equal.starts[:-1]], axis=1))


def list_answers(library: CupyLibrary, rows: PatternRows, asking: int) -> Lists:
    """Return the lists of all patterns, including the asking pattern, for an asking pattern."""
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
    entries = find_equal_rows(library, seen, rows.counts, order, everything)
    everything[-1] <<= np.uint64(rows.bits)
    lists = find_equal_rows(library, seen, rows.counts, order, everything).starts
    firsts = order[lists[:-1]]
    ends = xp.cumsum(xp.bincount(patterns[firsts].astype("int64"), minlength=len(rows.keep)))
    starts = xp.append(entries.set_of[lists[:-1]] - 1, len(entries.sizes))
    values = seen[-1][order[entries.starts[:-1]]] & rows.mask
    return Lists(seen, xp.append(xp.zeros(1, "int64"), ends), firsts, starts, values, entries.sizes)


def match(library: CupyLibrary, rows: PatternRows, lists: Lists, first: int, last: int) -> Matches:
    """Return the lists that the keys from first to last - 1, of the asking pattern, find."""
    xp, patterns = library.xp, len(rows.keep)
    size = (last - first) * patterns
    links, lengths = xp.empty(size, "int64"), xp.empty(size, "int64")
    asking, sorted_lists = rows.starts[first:last], (lists.offsets, lists.firsts, lists.starts)
    library.launch(kernels.find_lists, size, lists.seen, rows.keep, sorted_lists, asking, links, lengths)
    offsets = xp.append(xp.zeros(1, "int64"), xp.cumsum(lengths))
    return Matches(links, offsets, library.to_host(offsets[::patterns]))


def cohorts_of(
    library: CupyLibrary, rows: PatternRows, lists: Lists, matches: Matches, first: int, last: int
) -> tuple[Any, Any]:
    """Return the cohorts of some matched keys: distinct words, the key above `bits` and the value below; and counts."""
    xp, patterns = library.xp, len(rows.keep)
    before = int(matches.edges[first])
    size = int(matches.edges[last]) - before
    words, counts = xp.empty((1, size), "uint64"), xp.empty(size, "int64")
    # The links of these keys only.
    links = slice(first * patterns, last * patterns)
    offsets = matches.offsets[links.start : links.stop + 1]
    entries = (lists.starts, lists.values, lists.counts)
    which = (matches.links[links], offsets)
    library.launch(kernels.list_cells, size, before, patterns, which, entries, rows.bits, words[0], counts)
    order = library.stable_order(in_few_bytes(words[0], rows.bits + (last - first).bit_length()))
    equal = find_equal_rows(library, words, counts, order, EVERYTHING)
    return words[:, order[equal.starts[:-1]]], equal.sizes


class KeyTooLargeError(DeviceMemoryError):
    """The error if the cohort of a single key does not fit. nbytes: its bytes beside the table; 0: unknown."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


def score_matching(run: TableRun, memory: int, scored_columns: int, grouping: Grouping) -> int:
    """Score the scored columns of a run, and return the number of distinct rows.

    Raise KeyTooLargeError, and InputError if there are too many patterns of missing values.

    memory: bytes for the keys that are scored at once. scored_columns: the number of columns that all devices score.
    """
    library, job, layout = run.library, run.job, run.results.layout
    distinct, number = collapse_table(library, grouping, job, range(len(job.codes)))
    everything, describe = WildcardColumns.known_for(job, layout), ScoredColumnUploader(library, job)
    everything.check_work(scored_columns, count_patterns(distinct, everything), distinct.rows)
    for scored_column in run.scored_columns:
        asked = WildcardColumns.known_for(job, layout, scored_column)
        with library.stage("group"):
            # Lists are searched by bisection, so rows are sorted with any grouping.
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
        # The next scores need this memory.
        del scores, place
    return distinct.rows


class _Scorer:
    """The scorer of one scored column, for as many keys at once as the memory holds. No result depends on it.

    missing: the code of missing values. scores: (measures, distinct rows), before weighting. losses: see the kernel
        `score_rows`.
    """

    def __init__(
        self, library: CupyLibrary, rows: PatternRows, described: DeviceScoredColumn, missing: int, memory: int
    ) -> None:
        self._library = library
        self._rows = rows
        self._described = described
        self._missing = missing
        self._memory = memory
        # The lists for the asking pattern, and the most cells of cohorts that were made at once.
        self._lists: Lists | None = None
        self._largest = 0
        size = len(rows.counts)
        self.scores = library.xp.empty((len(described.wanted.measures), size))
        self.losses = library.xp.empty(size)

    def score(self, pattern: int) -> None:
        """Score the keys of one pattern. Raise KeyTooLargeError."""
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
        """Score some keys of a pattern, from `first` on, and return the next key.

        Half of the memory is for the lists that they match, half for their cohorts, as many as fit at once.
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
        """Score the rows of the keys from first to last - 1. cohorts: their cohorts, see `cohorts_of`."""
        library, rows, values, wanted = self._library, self._rows, self._described.values, self._described.wanted
        xp, (words,), counts = library.xp, *cohorts
        keys = find_equal_rows(library, *cohorts, xp.arange(len(words)), ~np.array([rows.mask], np.uint64))
        named = words & rows.mask != self._missing
        # The missing value of the scored column has the highest code.
        ends = keys.starts[1:] - 1
        lacking = xp.where(named[ends], 0, counts[ends])
        certain = keys.sizes - lacking
        known = certain > 0
        number = xp.cumsum(known.astype("int64"))
        # A value that no counted row has is not a cell.
        there = named & (counts > 0)
        order = xp.flatnonzero(there)
        before = xp.append(xp.zeros(1, "int64"), xp.cumsum(there.astype("int64")))
        cells_of = before[keys.starts[1:]] - before[keys.starts[:-1]]
        starts = xp.append(xp.zeros(1, "int64"), xp.cumsum(cells_of[known]))
        cohort_of_cell = number[keys.set_of[order] - 1]
        kind = place_type(len(words))
        order, cohort_of_cell = order.astype(kind), cohort_of_cell.astype(kind)
        described = EqualRows(order, starts.astype(kind), cohort_of_cell, certain[known])
        cells, statistic_of = describe_cohorts(library, self._described, described, (words, counts), (0, rows.mask))
        row, end = (int(library.to_host(rows.starts[key : key + 1])[0]) for key in (first, last))
        own = (rows.order[row:end], rows.key_of[row:end], rows.keys[-1][row:end], rows.counts[row:end])
        cohort_of = xp.where(known, number - 1, -1)
        library.launch(
            kernels.score_rows,
            end - row,
            own,
            first,
            rows.mask,
            (cohort_of, keys.sizes, certain, starts),
            values,
            wanted,
            cells,
            statistic_of,
            self.losses[row:end],
            self.scores,
        )
