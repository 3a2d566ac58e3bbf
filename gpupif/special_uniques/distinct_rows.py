"""The distinct rows of a table, gathered from its chunks: in memory, on disk, or on Dask."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import pack

from ..encoding.column import Column
from ..engines.cpu.count_tables import common_type
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import NO_ROWS, Rows, index_type
from ..rows.threads import Workers
from .request import sample_units


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a table.

    codes: array (columns, distinct rows). multiplicities: the multiplicity of each row. cardinalities: of the columns.
    """

    codes: npt.NDArray[Any]
    multiplicities: npt.NDArray[Any]
    cardinalities: Sequence[int]

    @classmethod
    def from_keys(
        cls,
        keys: npt.NDArray[np.uint64],
        multiplicities: npt.NDArray[Any],
        cardinalities: Sequence[int],
        workers: Workers,
    ) -> DistinctRows:
        """Return distinct rows from their keys. keys: packed by `KeyLayout`. multiplicities: of the rows."""
        codes = np.empty((len(cardinalities), len(keys)), common_type(cardinalities))
        fields = KeyLayout.from_cardinalities(cardinalities).fields
        workers.run(
            lambda column: pack.unpack_column(keys[:, fields[column].word], *fields[column][1:], codes[column]),
            [(column,) for column in range(len(codes))],
        )
        return cls(codes, multiplicities, cardinalities)

    def __len__(self) -> int:
        return len(self.multiplicities)

    @property
    def often(self) -> npt.NDArray[np.uint8]:
        """The multiplicity of each row, 2 for all above: 1 for a single row, 2 for all other rows."""
        often: npt.NDArray[np.uint8] = np.minimum(self.multiplicities, 2).astype(np.uint8)
        return often

    @property
    def single(self) -> npt.NDArray[np.intp]:
        """The places of the single rows: distinct rows with multiplicity 1."""
        return np.flatnonzero(self.multiplicities == 1)

    @property
    def paired(self) -> npt.NDArray[np.bool_]:
        """The mask of the rows with multiplicity 2."""
        return np.asarray(self.multiplicities == 2)


class PlacedRows(NamedTuple):
    """Rows of a chunk, or distinct rows of several chunks.

    keys: array (rows, words), packed by `KeyLayout`. multiplicities: the multiplicity of each row. places: for each row
    the place in the table of a row that is equal to it. units: the sum of the sampling weights of these equal rows, in
    units; empty without sampling weights.
    """

    keys: npt.NDArray[np.uint64]
    multiplicities: npt.NDArray[Any]
    places: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in self)


class KeyColumns:
    """The key variables of a table in chunks, and how their rows become keys.

    read: the columns that are read of the table, key variables first, without codes of rows. keys: the number of key
    variables. weights: the name of the column of sampling weights; None without weights.
    """

    def __init__(self, read: Sequence[Column], keys: int, weights: Hashable) -> None:
        self.columns = read[:keys]
        self.cardinalities = [column.cardinality for column in self.columns]
        self.layout = KeyLayout.from_cardinalities(self.cardinalities)
        self._weights = None if weights is None else [column.name for column in read].index(weights)
        self.units = None if self._weights is None else sample_units(read[self._weights])

    def placed_rows(
        self,
        codes: Sequence[npt.NDArray[Any]],
        multiplicities: npt.NDArray[Any],
        places: npt.NDArray[np.int64],
        workers: Workers,
    ) -> PlacedRows:
        """Return rows of a chunk. codes: by column that is read, array (rows). Others: as of `PlacedRows`."""
        units = np.empty(0, np.int64)
        if self.units is not None and self._weights is not None:
            units = self.units.multiplicities(codes[self._weights]) * multiplicities
        return PlacedRows(self.layout.pack(codes[: len(self.columns)], workers), multiplicities, places, units)


def place_of_each(
    number: npt.NDArray[Any], distinct: int, places: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """Return for each distinct row the place of one of the rows that are equal to it.

    number: for each row its distinct row. distinct: the number of distinct rows. places: of all rows, default 0, 1, ...
    """
    place = np.empty(distinct, np.int64)
    place[number] = np.arange(len(number)) if places is None else places
    return place


def merge_rows(chunks: Sequence[PlacedRows], workers: Workers) -> PlacedRows:
    """Return the distinct rows of several chunks of a table."""
    arrays = zip(*chunks, strict=True)
    keys, multiplicities, places, units = (own[0] if len(own) == 1 else np.concatenate(own) for own in arrays)
    if not len(multiplicities):
        return PlacedRows(keys, multiplicities, places, units)
    total = int(multiplicities.sum())
    counts = NO_ROWS if total == len(multiplicities) else multiplicities.astype(index_type(total + 1))
    merged = distinct_rows(Rows(keys, counts), total, workers)
    number, distinct = merged.number, len(merged.rows.keys)
    sums = np.zeros(distinct if len(units) else 0, np.int64)
    np.add.at(sums, number[: len(units)], units)
    place = place_of_each(number, distinct, places)
    return PlacedRows(np.array(merged.rows.keys), np.array(merged.rows.counts), place, sums)
