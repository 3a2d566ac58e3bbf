"""Scores of rows on their way home: those that differ once, and for each row which of them are its own.

A row that is alone in its cohort has the same scores as any other row of its value that is, and most rows are. So for
each column most rows of a value have the value's *usual* scores, which are sent once, with a bit for each row that has
them. Of the others, what is said of cohorts and what is said of their cells are apart: each is sent once for all rows
of which the same is said, and each row has two numbers, in as few bits as they need. Scores stay as they are, to the
last bit, whatever they are scores of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import parcels as kernels
from gpupif.kernels import spread

from ..attack.request import ScoreRequest
from ..engines.partition_plan import computed_measure
from ..engines.shared_scores import found_together, put_rows, take_scored_column
from ..measures import Measure
from ..rows.keys import Field, KeyLayout
from .packed_numbers import WORD_BITS, Empty, WordReader, WordWriter, words_for

# Rows of a message that say which scores are usual: about so many.
VOTES = 1 << 14


@dataclass(frozen=True)
class SentScores:
    """The scores that are sent of each cell, as 64 bits each, by name, in groups that are numbered together.

    Scores of whole cohorts are one group, scores of cells another.
    """

    groups: list[list[str]]

    @classmethod
    def of(cls, request: ScoreRequest) -> SentScores:
        """Return the scores that have to be sent for the outputs of a request."""
        of_cohort = {computed_measure(measure): measure.of_cohort for measure in request.outputs}
        both = ([name for name, kind in of_cohort.items() if kind is wanted] for wanted in (True, False))
        return cls([group for group in both if group])

    def place(self, measure: Measure) -> tuple[int, int]:
        """Return the place of the scores that an output is made from: the group, and the place in it."""
        name = computed_measure(measure)
        return next((group, own.index(name)) for group, own in enumerate(self.groups) if name in own)

    @property
    def number(self) -> int:
        """Return how many scores of a cell are sent."""
        return sum(map(len, self.groups))


class Room:
    """Memory for packing so many scores of at most so many rows, used for one scored column after the other.

    empty: makes it, and the words that come out.
    """

    def __init__(self, rows: int, scores: int, empty: Empty = np.empty) -> None:
        self._all, self._some = empty((2, rows * scores), np.uint64)
        self.usual, self.votes, self.others, self.numbers, self.first = empty((5, rows), np.uint32)
        self.slots = empty(1 << slot_bits(rows), np.uint32)
        self.empty = empty

    def all_rows(self, scores: int, rows: int) -> npt.NDArray[np.uint64]:
        """An array (scores, rows)."""
        array: npt.NDArray[np.uint64] = self._all[: scores * rows].reshape(scores, rows)
        return array

    def some_rows(self, scores: int, rows: int) -> npt.NDArray[np.uint64]:
        """Another."""
        array: npt.NDArray[np.uint64] = self._some[: scores * rows].reshape(scores, rows)
        return array


class RowScores:
    """Scores of one scored column, of so many rows from `start` on.

    marks: (any number, rows), what is the same only for rows that have the same scores: where these stand, if all stand
    together, else all of them.
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
        """The scores (scores, rows) of some of the rows, as bits."""
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
    """Base-2 logarithm of the slots in which items of so many rows are looked up: half of them are used at most."""
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
    """Scores of the rows with these keys, as words. values: by name arrays (scored columns, rows), or `SharedScores`,
    in which these are the rows from `start` on.
    """
    writers = [WordWriter(room.empty) for _ in scored_columns]
    grouped = {name: values[name] for group in sent.groups for name in group}
    for place, (scored_column, writer) in enumerate(zip(scored_columns, writers, strict=True)):
        scores = RowScores(grouped, place, start, len(keys), room)
        _pack_scored_column(writer, sent, keys, _field_of(layout, scored_column, len(keys)), scores, room)
    head = np.array([len(keys), *(writer.size for writer in writers)], np.uint64)
    return [head, *(words for writer in writers for words in writer.arrays)]


def _field_of(layout: KeyLayout, scored_column: int, rows: int) -> Field:
    """Return the field of a scored column in keys; one without bits if there may be more values than rows."""
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
    """Put the scores of one scored column, group by group."""
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
    """Put the items (scores, rows) of rows that have not the usual ones: those that differ, and the number of each
    row's own.
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
        # Each row's own, in their order.
        writer.put(rows)
        writer.put_array(items.copy())


class GroupScores(NamedTuple):
    """Scores of one scored column, of a group of `SentScores`.

    items: (scores, items), as bits, those that differ and perhaps some again; places: which of them each row has.
    """

    items: npt.NDArray[np.uint64]
    places: npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class PackedScores:
    """The words that `pack_scores` made of the scores of rows with these keys."""

    sent: SentScores
    layout: KeyLayout
    keys: npt.NDArray[np.uint64]
    scored_columns: Sequence[int]
    words: npt.NDArray[np.uint64]

    @property
    def complete(self) -> bool:
        """Return whether the words hold the scores of all rows, and nothing is missing."""
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
        """Add the items of a scored column to those of others, and put into `places` which of them each row has; by
        group.
        """
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
    """Return the scores of one scored column from some partitions, by group, for the rows of all these partitions.

    empty: makes their arrays.
    """
    edges = [0, *accumulate(len(partition.keys) for partition in partitions)]
    items: list[list[npt.NDArray[np.uint64]]] = [[] for _ in sent.groups]
    places = [empty(edges[-1], np.uint32) for _ in sent.groups]
    for partition, (start, stop) in zip(partitions, pairwise(edges), strict=True):
        partition.unpack(scored_column, items, [own[start:stop] for own in places], empty)
    return [GroupScores(np.concatenate(own, axis=1), where) for own, where in zip(items, places, strict=True)]
