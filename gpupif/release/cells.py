"""The cells of a table of counts or sums: rows counted wherever they are, then a small table with all its totals."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.weights import whole_units
from ..encoding.column import Column, amounts, value_order
from ..encoding.plain_values import refuse_intervals, texts
from ..engines.base import Counter
from ..errors import ColumnTypeError, InputError
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetRequest, Total
from ..treatment.random.draws import Draws
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import table_value

# The most cells of a table, totals included: the table is held in memory, and printed by people.
MOST_CELLS = 1_000_000
# The most decimal places of numbers whose sums are given with as many: 0.1 + 0.2 is 0.3.
MOST_PLACES = 9
Whole = npt.NDArray[np.int64]


class CellRequest(NamedTuple):
    """The columns that make a table.

    by: the columns whose combinations are cells. amount: the column whose values are summed: a value, or sampling
    weights; None for counts. argument: what errors call `amount`. record: the columns from which a row's key is made;
    None for all columns. draws: the secret stream of row keys; None for no keys. largest: how many of the largest
    contributions to each cell are needed. missing: "category" or "error". totals: whether totals are cells.
    """

    by: Sequence[Hashable]
    amount: Hashable = None
    argument: str = "value"
    record: Sequence[Hashable] | None = ()
    draws: Draws | None = None
    largest: int = 0
    missing: str = "category"
    totals: bool = True

    @classmethod
    def from_arguments(
        cls, by: Sequence[Hashable], value: Hashable, weights: Hashable, method: str, record_id: Any, missing: str
    ) -> CellRequest:
        """Return the request of `gpupif.tables` with these arguments, without keys, and with totals."""
        amount, argument = (weights, "weights") if value is None else (value, "value")
        return cls(by, amount, argument, record_id if method == "cell-key" else (), missing=missing)

    def columns(self) -> CountRequest:
        """Return the columns that are read."""
        amount = {} if self.amount is None else {self.amount: self.argument}
        record = dict.fromkeys(self.record or (), "record_id")
        others = {name: argument for name, argument in (amount | record).items() if name not in self.by}
        named = None if self.record is None else [*self.by, *others]
        return CountRequest(named, None, self.missing, "by", others)


@dataclass(frozen=True)
class Cells:
    """The cells of a table. Arrays have an axis for each column of `by`; with totals, the last place is the total.

    by: names of the columns. labels: the texts of the values of each column, in the order of the values, without the
    total; None for a missing value. totals: whether there are totals. unit: the amount of one unit. places: the decimal
    places of the amounts; None if they have too many. rows: the rows of each cell. units: the sum of each cell in
    units; None for counts. keys: uint64, the sum of row keys modulo 2^64; None without keys. largest: the largest
    contributions to each cell, in units, ascending, along one more axis; None if none were asked for.
    """

    by: Sequence[Hashable]
    labels: Sequence[Sequence[str | None]]
    totals: bool
    unit: float
    places: int | None
    rows: Whole
    units: Whole | None = None
    keys: npt.NDArray[np.uint64] | None = None
    largest: Whole | None = None

    @property
    def figures(self) -> npt.NDArray[Any]:
        """The figure of each cell: its rows in int64, or its sum in float64, with the decimal places of the amounts."""
        if self.units is None:
            return self.rows
        sums = self.units * self.unit
        # Beyond 2^53 floats have no such place.
        if self.places is None or sums.max() * 10**self.places >= 2**53:
            return sums
        return sums.round(self.places)

    def texts(self) -> list[str]:
        """Return a text that names each cell by its values alone, equal in every table that has the cell.

        The total of a column is as if the column was not there: the cell of a total has the text that it has in the
        smaller table.
        """
        coded = [
            [f"{_measured(str(name))}={_measured(label)}" for label in own] + [""] * self.totals
            for name, own in zip(self.by, self.labels, strict=True)
        ]
        order = sorted(range(len(self.by)), key=lambda place: str(self.by[place]))
        return [";".join(text for place in order if (text := cell[place])) for cell in product(*coded)]


def mask_totals(shape: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return a mask of the cells that are totals, flat: those in the last place along an axis of a table."""
    places = np.unravel_index(np.arange(math.prod(shape)), shape)
    mask: npt.NDArray[np.bool_] = np.any([own == size - 1 for own, size in zip(places, shape, strict=True)], axis=0)
    return mask


def count_cells(table: Any, request: CellRequest) -> Cells:
    """Count the cells of a table of any kind, or of a path.

    Raises InputError, also for more than `MOST_CELLS` cells, TableReadError, OutputError, DeviceError.
    """
    with Reporter() as report, announce_compilation(), open_counts(table, request.columns(), report) as counts:
        names = list(counts.names)
        places = [names.index(name) for name in request.by]
        others = [place for place in range(len(names)) if place not in places]
        make = partial(_SumRows, names, request)
        record = [names.index(name) for name in request.record or ()]
        sets = [SetRequest([*places, *others], places)]
        # With all of `by` in the record, the combinations above are those of the record.
        sets += [SetRequest(record)] if record and not set(places) <= set(record) else []
        result = counts.count(sets, make)
    if record and (shared := sum(own for *_, own in result.found[-1])):
        raise InputError(
            f"record_id: expected columns that identify a row, got {shared:,} rows that share theirs with another row: "
            "their noise would be alike. Name more columns, or leave record_id out for the whole row."
        )
    columns = [result.columns[place] for place in places]
    shape = [column.cardinality for column in columns]
    check_shape([size + request.totals for size in shape])
    unit, digits = (1.0, 0) if request.amount is None else _units(request, names, result.columns)[1:]
    labels, order = [_ascending(column) for column in columns], [value_order(column) for column in columns]
    arrays: dict[str, npt.NDArray[Any]] = {}
    for by_codes, all_sums, _ in result.found[0]:
        index = tuple(own[codes] for own, codes in zip(order, by_codes, strict=True))
        for name, sums in all_sums.items():
            array = arrays.setdefault(name, np.zeros((*shape, *sums.shape[1:]), sums.dtype))
            array[index] = sums
    if request.totals:
        for axis in range(len(shape)):
            arrays = {name: _with_total(name, array, axis) for name, array in arrays.items()}
    return Cells(request.by, labels, request.totals, unit, digits, **arrays)


def check_shape(shape: Sequence[int]) -> None:
    """Raise InputError for a table of too many cells. shape: totals included."""
    if math.prod(shape) > MOST_CELLS:
        raise InputError(
            f"by: expected at most {MOST_CELLS:,} cells with totals, got {' x '.join(f'{size:,}' for size in shape)}. "
            "Name fewer columns, or make them coarser first."
        )


def _with_total(name: str, array: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    """Return an array with one more place along an axis: the total, or the largest contributions of all."""
    if name == "largest":
        most = array.shape[-1]
        own = np.moveaxis(array, axis, -2)
        total = np.sort(own.reshape(*own.shape[:-2], -1), axis=-1)[..., -most:]
    else:
        total = array.sum(axis=axis, dtype=array.dtype)
    return np.concatenate([array, np.expand_dims(total, axis)], axis)


def _plain_labels(column: Column) -> pa.Array:
    """Return the labels of a column in a type whose values have different texts. Raises ColumnTypeError for others."""
    try:
        labels = column.labels if isinstance(column.labels, pa.Array) else pa.array(column.labels)
    except (pa.ArrowException, OverflowError):
        kinds = " and ".join(sorted({type(value).__name__ for value in column.values()[: len(column.labels)]})[:3])
        raise ColumnTypeError(
            column.name, kinds, "values of a single plain type", "Convert them to text, or leave the column out."
        ) from None
    refuse_intervals(column.name, labels.type)
    return labels


def _ascending(column: Column) -> list[str | None]:
    """Return the texts of the values of a column, in the order of the values, as `value_order` has it."""
    labels = _plain_labels(column)
    ordered = labels.take(pa.array(np.argsort(value_order(column))[: len(labels)]))
    return [*texts(ordered).to_pylist(), *[None] * column.missing]


def _units(
    request: CellRequest, names: Sequence[Hashable], columns: Sequence[Column]
) -> tuple[Whole, float, int | None]:
    """Return the amount of each code in units, the unit, and decimal places, see `Cells`.

    Whole numbers add up to the same in any order.
    """
    column = columns[names.index(request.amount)]
    numbers = amounts(column)
    wrong = np.flatnonzero(~((numbers >= 0) & (numbers < np.inf)))
    if len(wrong):
        value = column.values([int(wrong[0])])[0]
        came = "a missing value" if value is None else table_value(value)
        raise InputError(
            f"{request.argument}: column {request.amount!r}: expected numbers of 0 or more, got {came}. Fill or drop "
            "such rows; sum gains and losses in tables of their own."
        )
    with np.errstate(over="ignore"):
        is_held = np.isfinite(numbers @ column.counts)
    if not is_held:
        raise InputError(
            f"{request.argument}: column {request.amount!r}: expected numbers whose sum a float can hold, got a sum "
            "beyond 1.8e308. Convert them to a larger unit first."
        )
    order = np.argsort(numbers)
    ordered, exponent = whole_units(numbers[order], column.counts[order])
    if ((ordered == 0) & (numbers[order] > 0)).any():
        raise InputError(
            f"{request.argument}: column {request.amount!r}: expected numbers whose sum is not 2^60 times as large as "
            "one of them. Leave out the rows of the smallest, or correct the largest."
        )
    units = np.empty(len(numbers), np.int64)
    units[order] = ordered
    places = next((own for own in range(MOST_PLACES + 1) if (numbers.round(own) == numbers).all()), None)
    return units, 2.0**-exponent, places


class _SumRows:
    """Sums the rows of each cell in a partition that has all rows of its cells.

    Returns the codes of the cells by column, their sums, named as the fields of `Cells`, and the number of rows that
    share a combination. For a set of fewer columns, the record, it returns only the number.
    """

    def __init__(
        self, names: Sequence[Hashable], request: CellRequest, columns: Sequence[Column], total: Total
    ) -> None:
        self._names, self._request, self._columns = names, request, columns
        self._units = None if request.amount is None else _units(request, names, columns)[0]

    def __call__(
        self, columns: Sequence[int], counter: Counter, place: int
    ) -> tuple[list[npt.NDArray[Any]], dict[str, npt.NDArray[Any]], int]:
        found = counter.combinations(place)
        width = len(self._request.by)
        rows = found.counts.astype(np.int64)
        shared = int(rows[rows > 1].sum())
        if len(columns) < len(self._names):
            return [], {}, shared
        codes = {column: np.asarray(own) for column, own in zip(columns, found.codes, strict=True)}
        by = [codes[column] for column in columns[:width]]
        # Combinations ascend, so that those of a cell follow each other.
        new = np.ones(len(rows), np.bool_)
        if len(rows):
            new[1:] = np.any([own[1:] != own[:-1] for own in by], axis=0)
        starts = np.flatnonzero(new)

        def sums(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.add.reduceat(numbers, starts) if len(starts) else numbers

        result = {"rows": sums(rows)}
        if self._units is not None:
            each = self._units[codes[self._names.index(self._request.amount)]]
            result["units"] = sums(each * rows)
            if self._request.largest:
                result["largest"] = _largest(each, rows, np.cumsum(new) - 1, result["rows"], self._request.largest)
        if self._request.draws is not None:
            result["keys"] = sums(self._row_keys(codes) * rows.astype(np.uint64))
        return [own[starts] for own in by], result, shared

    def _row_keys(self, codes: dict[int, npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
        """Return the key of each combination: random numbers that the secret key makes of the record's values."""
        assert self._request.draws is not None
        record = self._names if self._request.record is None else self._request.record
        parts = []
        for place in sorted((self._names.index(name) for name in record), key=lambda own: str(self._names[own])):
            used, number = np.unique(codes[place], return_inverse=True)
            labels = _plain_labels(self._columns[place])
            found = texts(labels.take(pa.array(used, mask=used >= len(labels)))).to_pylist()
            parts.append(np.array(list(map(_measured, found)), object)[number])
        return self._request.draws.of_values(map("".join, zip(*parts, strict=True)))


def _measured(text: str | None) -> str:
    """Return a text with its length before it, so that joined texts differ if any of them does; "-" for None."""
    return "-" if text is None else f"{len(text)}:{text}"


def _largest(each: Whole, rows: Whole, cell: Whole, cell_rows: Whole, most: int) -> Whole:
    """Return the `most` largest contributions to each cell, ascending, 0 where a cell has fewer rows.

    each, rows, cell: amount, multiplicity and cell of each combination. cell_rows: the rows of each cell.
    """
    order = np.lexsort((each, cell))
    ends = np.cumsum(rows[order])
    last = np.cumsum(cell_rows)
    result = np.zeros((len(cell_rows), most), np.int64)
    for place in range(most):
        there = cell_rows > place
        result[there, most - 1 - place] = each[order][np.searchsorted(ends, last[there] - 1 - place, "right")]
    return result
