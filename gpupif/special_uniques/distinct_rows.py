"""The distinct rows of a table that is searched: from its codes in memory, or gathered from its chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import pack

from ..engines.cpu.count_tables import common_type
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers


@dataclass(frozen=True)
class DistinctRows:
    """codes (columns, distinct rows), of one type. times: how often each row occurs. cardinalities: of the columns."""

    codes: npt.NDArray[Any]
    times: npt.NDArray[Any]
    cardinalities: Sequence[int]

    @classmethod
    def from_codes(
        cls, codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], workers: Workers
    ) -> tuple[DistinctRows, npt.NDArray[Any]]:
        """Return the distinct rows of a table, and the number of the distinct row of each row. codes: by column."""
        layout = KeyLayout.of(cardinalities)
        found = distinct_rows(Rows(layout.pack(codes, workers)), len(codes[0]), workers)
        return cls.from_keys(found.rows.keys, np.array(found.rows.counts), cardinalities, workers), found.number

    @classmethod
    def from_keys(
        cls, keys: npt.NDArray[np.uint64], times: npt.NDArray[Any], cardinalities: Sequence[int], workers: Workers
    ) -> DistinctRows:
        """Return the distinct rows with these keys, packed by `KeyLayout`."""
        codes = np.empty((len(cardinalities), len(keys)), common_type(cardinalities))
        fields = KeyLayout.of(cardinalities).fields
        workers.run(
            lambda column: pack.unpack_column(keys[:, fields[column].word], *fields[column][1:], codes[column]),
            [(column,) for column in range(len(codes))],
        )
        return cls(codes, times, cardinalities)

    def __len__(self) -> int:
        return len(self.times)

    @property
    def often(self) -> npt.NDArray[np.uint8]:
        """Return 1 for each single row, 2 for all others."""
        often: npt.NDArray[np.uint8] = np.minimum(self.times, 2).astype(np.uint8)
        return often

    @property
    def single(self) -> npt.NDArray[np.intp]:
        """Return the places of the single rows: distinct rows with multiplicity 1."""
        return np.flatnonzero(self.times == 1)

    @property
    def paired(self) -> npt.NDArray[np.bool_]:
        """Return which rows occur twice."""
        return np.asarray(self.times == 2)


class PartRows(NamedTuple):
    """Distinct rows of a part of a table. keys: of all its columns. times: how often each occurs. places: of each the
    place in the table of a row that is equal to it. units: the sum of the weights of these rows; empty without weights.
    """

    keys: npt.NDArray[np.uint64]
    times: npt.NDArray[Any]
    places: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Return the bytes that it takes."""
        return sum(array.nbytes for array in self)


def merge_parts(parts: Sequence[PartRows], workers: Workers) -> PartRows:
    """Return the distinct rows of several chunks of a table, in their order."""
    keys, times, places, units = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    if not len(times):
        return PartRows(keys, times, places, units)
    total = int(times.sum())
    found = distinct_rows(Rows(keys, times.astype(index_type(total + 1))), total, workers)
    number, different = found.number, len(found.rows.keys)
    # Of rows that are several, any will do.
    place = np.empty(different, np.int64)
    place[number] = places
    sums = np.zeros(different if len(units) else 0, np.int64)
    np.add.at(sums, number[: len(units)], units)
    return PartRows(np.array(found.rows.keys), np.array(found.rows.counts), place, sums)


class RowGatherer:
    """Collects the distinct rows of a table that comes in parts. layout: of the keys of its rows."""

    def __init__(self, layout: KeyLayout) -> None:
        nothing = np.empty(0, np.int64)
        self._merged = PartRows(np.empty((0, layout.words), np.uint64), np.empty(0, np.uint32), nothing, nothing)
        self._waiting: list[PartRows] = []

    @property
    def nbytes(self) -> int:
        """Return the bytes that are held so far."""
        return sum(part.nbytes for part in (self._merged, *self._waiting))

    def add(self, part: PartRows, workers: Workers) -> None:
        """Add a further chunk, after all others."""
        self._waiting.append(part)
        # So that each row is merged a few times only.
        if sum(len(each.times) for each in self._waiting) >= len(self._merged.times):
            self.merge(workers)

    def merge(self, workers: Workers) -> PartRows:
        """Return the distinct rows of all chunks so far."""
        self._merged, self._waiting = merge_parts([self._merged, *self._waiting], workers), []
        return self._merged
