"""Scores packed for the way back to the chunks: each distinct score once, and for each row the number of its scores.

Most rows are alone in their cohort, and such a row has the same scores as every other such row with the same value. So
most rows of a value have the *usual* scores of the value. Usual scores are sent once for each value, with one bit for
each row that says whether the row has them.

The scores of all other rows are sent in two groups: scores of cohorts and scores of cells. Each distinct combination of
scores in a group is sent once. A row has one number in each group, with as few bits as the numbers need. Scores stay
the same to the last bit, whatever the measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import messages as kernels
from gpupif.kernels import spread

from ..attack.request import ScoreRequest
from ..engines.partition_plan import computed_measure
from ..engines.shared_scores import found_together, put_rows, take_scored_column
from ..measures import Measure
from ..rows.keys import Field, KeyLayout
from .packed_numbers import WORD_BITS, Empty, WordReader, WordWriter, words_for

# About how many rows of a message are looked at to choose the usual scores of values.
VOTES = 1 << 14


@dataclass(frozen=True)
class SentScores:
    """The names of the scores that are sent for each cell, 64 bits each.

    groups: list of lists of names. The scores of one group are numbered together: scores of whole cohorts are one
    group, scores of cells another.
    """

    groups: list[list[str]]

    @classmethod
    def from_request(cls, request: ScoreRequest) -> SentScores:
        """Return the scores to be sent for the outputs of a request."""
        of_cohort = {computed_measure(measure): measure.of_cohort for measure in request.outputs}
        both = ([name for name, kind in of_cohort.items() if kind is wanted] for wanted in (True, False))
        return cls([group for group in both if group])

    def place(self, measure: Measure) -> tuple[int, int]:
        """Return the group, and the place in the group, of the scores that an output is computed from."""
        name = computed_measure(measure)
        return next((group, own.index(name)) for group, own in enumerate(self.groups) if name in own)

    @property
    def number(self) -> int:
        """The number of scores that are sent for each cell."""
        return sum(map(len, self.groups))


class Room:
    """The working memory of `pack_scores`, used for one scored column after the other.

    rows, scores: int. The largest number of rows, and the number of scores of a cell.
    empty: function that allocates arrays, also for the packed words.
    """

    def __init__(self, rows: int, scores: int, empty: Empty = np.empty) -> None:
        self._all, self._some = empty((2, rows * scores), np.uint64)
        self.usual, self.votes, self.others, self.numbers, self.first = empty((5, rows), np.uint32)
        self.slots = empty(1 << slot_bits(rows), np.uint32)
        self.empty = empty

    def all_rows(self, scores: int, rows: int) -> npt.NDArray[np.uint64]:
        """Return an array (scores, rows) for the scores of all rows."""
        array: npt.NDArray[np.uint64] = self._all[: scores * rows].reshape(scores, rows)
        return array

    def some_rows(self, scores: int, rows: int) -> npt.NDArray[np.uint64]:
        """Return an array (scores, rows) for the scores of selected rows; it does not overlap with `all_rows`."""
        array: npt.NDArray[np.uint64] = self._some[: scores * rows].reshape(scores, rows)
        return array


class RowScores:
    """The scores of one scored column in the rows from `start` on.

    marks: array (any number, rows). Two rows have equal marks only if they have equal scores. If all scores share their
    places, the marks are the places; else the marks are the scores themselves, as bits.
    """

    def __init__(self, values: Mapping[str, Any], scored_column: int, start: int, rows: int, room: Room) -> None:
        self._values, self._scored_column, self._room = values, scored_column, room
        self._found = found_together(values, scored_column)
        self.marks: npt.NDArray[Any]
        if self._found is not None:
            self.marks = room.empty((1, rows), self._found.places.dtype)
            spread.look_up(self._found.places, self._found.number[start : start + rows], self.marks[0])
        else:
            self.marks = room.all_rows(len(values), rows)
            for name, own in take_scored_column(values, scored_column, start, start + rows).items():
                self.marks[list(values).index(name)] = own.view(np.uint64)

    def take(self, rows: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint64]:
        """Return the scores (scores, rows) of selected rows, as bits."""
        taken = self._room.some_rows(len(self._values), len(rows))
        if self._found is None:
            return np.take(self.marks, rows, axis=1, out=taken, mode="clip")
        shared = list(self._values.values())
        put_rows(
            self._found._replace(places=self.marks[0], number=rows),
            [scores.taken[self._scored_column] for scores in shared],
            0,
            [own.view(scores.dtype) for own, scores in zip(taken, shared, strict=True)],
        )
        return taken


def slot_bits(rows: int) -> int:
    """Return the base-2 logarithm of the size of the hash table for this number of rows; at most half of it is used."""
    return max(4, (2 * rows).bit_length())


def pack_scores(
    sent: SentScores,
    layout: KeyLayout,
    keys: npt.NDArray[np.uint64],
    scored_columns: Sequence[int],
    values: Mapping[str, Any],
    start: int,
    room: Room,
) -> list[npt.NDArray[np.uint64]]:
    """Return the scores of rows as words.

    keys: array (rows, words). The keys of the rows.
    values: by name arrays (scored columns, rows), or `SharedScores`.
    start: int. The number of the first of these rows in `values`.
    """
    writers = [WordWriter(room.empty) for _ in scored_columns]
    grouped = {name: values[name] for group in sent.groups for name in group}
    for place, (scored_column, writer) in enumerate(zip(scored_columns, writers, strict=True)):
        scores = RowScores(grouped, place, start, len(keys), room)
        _pack_scored_column(writer, sent, keys, _field_of(layout, scored_column, len(keys)), scores, room)
    head = np.array([len(keys), *(writer.size for writer in writers)], np.uint64)
    return [head, *(words for writer in writers for words in writer.arrays)]


def _field_of(layout: KeyLayout, scored_column: int, rows: int) -> Field:
    """Return the field of a scored column in keys; without bits if there may be more values than rows."""
    field = layout.fields[scored_column]
    return field if field.mask < rows else Field(0, 0, 0)


def _pack_scored_column(
    writer: WordWriter,
    sent: SentScores,
    keys: npt.NDArray[np.uint64],
    field: Field,
    scores: RowScores,
    room: Room,
) -> None:
    """Write the scores of one scored column, group by group."""
    rows = len(keys)
    usual, votes = room.usual[: field.mask + 1], room.votes[: field.mask + 1]
    usual[:] = rows
    votes[:] = 0
    kernels.find_usual(keys, *field, scores.marks, max(1, rows // VOTES), usual, votes)
    flags = room.empty(words_for(rows), np.uint64)
    others = room.others[: kernels.find_others(keys, *field, scores.marks, usual, flags, room.others)]
    writer.put(len(others))
    writer.put_array(flags)
    writer.put_array(scores.take(usual[usual < rows]).copy())
    items, start = scores.take(others), 0
    for group in sent.groups:
        _put_others(writer, items[start : start + len(group)], room)
        start += len(group)


def _put_others(writer: WordWriter, items: npt.NDArray[np.uint64], room: Room) -> None:
    """Write the scores of rows without usual scores: the distinct scores, and each row's number among them.

    items: array (scores, rows). The scores, as bits.
    """
    scores, rows = items.shape
    bits = slot_bits(rows)
    slots, numbers = room.slots[: 1 << bits], room.numbers[:rows]
    slots[:] = 0
    first = room.first[: kernels.number_items(items, WORD_BITS - bits, slots, numbers, room.first)]
    width = max(0, len(first) - 1).bit_length()
    if words_for(width * rows) + scores * len(first) < scores * rows:
        writer.put(len(first))
        writer.put_bits(numbers, 0, width)
        writer.put_array(items[:, first])
    else:
        # Numbers would take more words than they save: write the scores of each row.
        writer.put(rows)
        writer.put_array(items.copy())


class GroupScores(NamedTuple):
    """The scores of one scored column in one group of `SentScores`.

    items: array (scores, items), as bits. Distinct scores; a few may occur twice.
    places: array, one for each row. The number of the row's item.
    """

    items: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class PackedScores:
    """The words that `pack_scores` made from the scores of the rows with these keys."""

    sent: SentScores
    layout: KeyLayout
    keys: npt.NDArray[np.uint64]
    scored_columns: Sequence[int]
    words: npt.NDArray[np.uint64]

    @property
    def complete(self) -> bool:
        """True if the words hold the scores of all rows."""
        head = self.words[: 1 + len(self.scored_columns)].tolist()
        return len(head) == 1 + len(self.scored_columns) and [head[0], len(head) + sum(head[1:])] == [
            len(self.keys),
            len(self.words),
        ]

    def unpack(
        self,
        scored_column: int,
        items: Sequence[list[npt.NDArray[np.uint64]]],
        places: Sequence[npt.NDArray[np.uint32]],
        empty: Empty,
    ) -> None:
        """Append the items of a scored column to `items`, and write each row's item number into `places`, by group."""
        rows, before = len(self.keys), 1 + len(self.scored_columns)
        start = before + int(self.words[1 : 1 + self.scored_columns.index(scored_column)].sum())
        words = WordReader(self.words[start:], empty)
        field = _field_of(self.layout, scored_column, rows)
        ranks = np.zeros(field.mask + 1, np.uint32)
        values = kernels.rank_values(self.keys, *field, ranks)
        (others,), flags = words.take(1).tolist(), words.take(words_for(rows))
        usual = words.take(self.sent.number * values).reshape(-1, values)
        numbers, start = empty(others + 1, np.uint32), 0
        for group, table, out in zip(self.sent.groups, items, places, strict=True):
            first = sum(own.shape[1] for own in table)
            (different,) = words.take(1).tolist()
            if different < others:
                words.take_bits(0, (different - 1).bit_length(), numbers[:others])
            else:
                numbers[:others] = np.arange(others)
            table += [usual[start : start + len(group)], words.take(len(group) * different).reshape(len(group), -1)]
            kernels.find_places(self.keys, *field, ranks, flags, numbers, first, first + values, out)
            start += len(group)


def unpack_scored_column(
    sent: SentScores, partitions: Sequence[PackedScores], scored_column: int, empty: Empty = np.empty
) -> list[GroupScores]:
    """Return the scores of one scored column, by group, for the rows of all these partitions in turn.

    empty: function that allocates arrays.
    """
    edges = [0, *accumulate(len(partition.keys) for partition in partitions)]
    items: list[list[npt.NDArray[np.uint64]]] = [[] for _ in sent.groups]
    places = [empty(edges[-1], np.uint32) for _ in sent.groups]
    for partition, (start, stop) in zip(partitions, pairwise(edges), strict=True):
        partition.unpack(scored_column, items, [own[start:stop] for own in places], empty)
    return [GroupScores(np.concatenate(own, axis=1), where) for own, where in zip(items, places, strict=True)]
