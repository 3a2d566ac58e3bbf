"""Multivariate microaggregation: rows are grouped by several columns at once, and get the means of their group."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels.microaggregation import mdav_groups

from ...errors import InputError
from ...rows.keys import code_type
from ...rows.threads import Workers
from ...utils.validation import check_exist
from ..coded_columns import CodedColumn
from ..field_checks import not_empty, whole
from ..random.swap import NewCodesStep, check_apart, check_memory, class_numbers, have_values
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from ..value_maps.microaggregate import group_means
from ..value_maps.new_values import Numbers, all_numbers, check_finite

# The bytes of memory for each row, and for each of its cells.
ROW_BYTES, CELL_BYTES = 64, 40
# The most rows that are compared with each other. Twice as many rows take four times as long.
MOST_ROWS = 100_000
MDAV, BLOCKS = "mdav", "mdav_blocks"
MEND = "Leave it out, or recode its values first."


@dataclass(frozen=True)
class MicroaggregateTogether(Treatment):
    """Replace the numbers of several columns by their means over groups of k to 2 k - 1 similar rows (MDAV).

    columns: names of the columns of numbers.
    k: the fewest rows of a group.
    within: names of columns. Rows of a group agree on them (strata). A missing value is a value of its own. Default:
        none.
    method: "mdav", exact, for up to 100,000 rows of a stratum. "mdav_blocks" cuts a larger stratum into halves until
        each block has at most 100,000 rows, and finds the groups within each block. Its groups differ from those of
        "mdav". A cut is at the median of the column with the largest range of standardised values. Default "mdav".
    missing: the rule for rows with a missing value in `columns`, required if there are any. They belong to no group.
        "suppress" makes all their values in `columns` missing. "keep" leaves their values as they are, and so shows
        them. Default None.

    The distance of two rows is Euclidean, over standardised columns: each is divided by its standard deviation over all
    complete rows. While 3 k rows or more are left, two groups are formed. The first is the row farthest from the mean
    of these rows, with the k - 1 rows nearest to it. The second is the row farthest from that row, with its k - 1
    nearest. Of 2 k to 3 k - 1 rows, only the first group is formed. The rows that are left are the last group. Of rows
    that are equally far, the earlier row counts as nearer. Equal rows may be in different groups.

    Means of whole numbers are floats, and means of decimal numbers are rounded to their places. If k or more earlier
    rows equal a farthest row, its group is k of these, and the row itself waits for another group.

    Raises InputError if a stratum has fewer than k complete rows, for a text that is no number, and for infinite
    numbers. Also raises it for missing values without a rule, for more than 100,000 rows of a stratum with "mdav", and
    if the columns of all rows do not fit into memory. Raises ColumnTypeError for values that are no numbers.

    Sources: Domingo-Ferrer and Mateo-Sanz (2002), Practical data-oriented microaggregation; Domingo-Ferrer and Torra
    (2005), section 2.1.
    """

    do: ClassVar[str] = "microaggregate_together"

    columns: Annotated[Sequence[Hashable], not_empty]
    k: Annotated[int, whole("rows")]
    within: Sequence[Hashable] = ()
    method: Literal["mdav", "mdav_blocks"] = "mdav"
    missing: Literal["keep", "suppress"] | None = None

    def check(self) -> None:
        super().check()
        check_apart(self.do, self.columns, "within", self.within)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names, rows = self.columns, table.rows
        check_exist(f"{self.do}: within", self.within, table.names)
        needed = ROW_BYTES + CELL_BYTES * len(names)
        check_memory(self.do, rows, needed, "microaggregate")
        coded = table.codes([*names, *self.within], needed)
        own = coded[: len(names)]
        exact = [_finite_numbers(name, column.labels) for name, column in zip(names, own, strict=True)]
        complete = np.flatnonzero(have_values(own))
        lacking = rows - len(complete)
        if lacking and self.missing is None:
            raise InputError(
                f"{self.do}: {lacking:,} rows have a missing value in columns ({', '.join(map(str, names))}), "
                "and no rule. Say missing='suppress', which makes all their values missing, or missing='keep'."
            )
        codes = [column.codes[complete] for column in own]
        points = np.array(
            [_standardised(numbers.floats(), cells) for numbers, cells in zip(exact, codes, strict=True)]
        ).reshape(len(names), len(complete))
        strata = class_numbers([(one.codes, len(one.labels) + 1) for one in coded[len(names) :]], rows)[complete]
        groups = self._groups(points, strata)
        means = [
            _with_means(column, cells, numbers, groups, complete, self.missing == "keep")
            for column, cells, numbers in zip(own, codes, exact, strict=True)
        ]
        record = {"groups": int(groups.max(initial=-1)) + 1, "rows_not_grouped": lacking}
        return NewCodesStep.from_columns(table, names, means, record)

    def _groups(self, points: npt.NDArray[np.float64], strata: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the number of each row's group: int64 (rows,). points: (columns, rows). Raises InputError."""
        order = np.argsort(strata, kind="stable")
        starts = np.flatnonzero(np.append(True, np.diff(strata[order]) != 0)[: len(order)])
        parts = np.split(order, starts[1:]) if len(order) else []
        for part in parts:
            if len(part) < self.k:
                where = f" in each class of {', '.join(map(str, self.within))}" if self.within else ""
                raise InputError(
                    f"{self.do}: k={self.k}: expected at least {self.k} rows without a missing value{where}, got "
                    f"{len(part):,}. Take a smaller k{' or fewer columns in within' if self.within else ''}."
                )
            if len(part) > MOST_ROWS and self.method == MDAV:
                raise InputError(
                    f"{self.do}: method: {MDAV!r} takes up to {MOST_ROWS:,} rows, got {len(part):,}. Say "
                    f"method={BLOCKS!r}, whose groups lie within blocks of that many rows, or give within=."
                )
        blocks = [block for part in parts for block in _blocks(points, part, max(MOST_ROWS, 2 * int(self.k)))]
        with Workers() as workers:
            found = workers.run(lambda block: mdav(points[:, block], int(self.k)), [(block,) for block in blocks])
        groups, before = np.empty(points.shape[1], np.int64), 0
        for block, own in zip(blocks, found, strict=True):
            groups[block] = own + before
            before += int(own.max()) + 1
        return groups


def mdav(points: npt.NDArray[np.float64], k: int) -> npt.NDArray[np.int64]:
    """Return the number of each row's group, from 0: int64 (rows,). points: float64 (columns, rows)."""
    columns, rows = points.shape
    groups = np.empty(rows, np.int64)
    mdav_groups(
        *(np.array(points, order="C"), np.int64(k), np.arange(rows), np.empty(rows), np.empty(columns)),
        *(np.empty(k, np.int64), groups),
    )
    return groups


def _blocks(points: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], most: int) -> list[npt.NDArray[np.int64]]:
    """Return the rows in blocks of at most `most` rows, see `MicroaggregateTogether.method`. Each is in row order."""
    if len(rows) <= most:
        return [rows]
    own = points[:, rows]
    widest = own[int(np.argmax(own.max(axis=1) - own.min(axis=1)))]
    order, half = np.argsort(widest, kind="stable"), len(rows) // 2
    return [block for part in (order[:half], order[half:]) for block in _blocks(points, rows[np.sort(part)], most)]


def _finite_numbers(name: Hashable, labels: pa.Array) -> Numbers:
    """Return the numbers of a column; raises InputError or ColumnTypeError for values that are no finite numbers."""
    if pa.types.is_null(labels.type):
        return Numbers(np.empty(0), None, np.empty(0, np.bool_))
    exact = all_numbers(name, labels, MEND)
    check_finite(name, exact.amounts)
    return exact


def _standardised(numbers: npt.NDArray[np.float64], codes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return each row's number, less the mean, over the standard deviation; zeros for a constant column."""
    if not len(codes):
        return np.zeros(0)
    # Division by a power of two is exact, and keeps squares finite.
    scaled = np.ldexp(numbers, -int(np.frexp(np.abs(numbers).max())[1]))
    counts = np.bincount(codes, minlength=len(numbers))
    mean = math.fsum((scaled * counts).tolist()) / len(codes)
    spread = math.sqrt(math.fsum(((scaled - mean) ** 2 * counts).tolist()) / len(codes))
    found: npt.NDArray[np.float64] = ((scaled - mean) / spread if spread > 0 else np.zeros(len(scaled)))[codes]
    return found


def _with_means(
    column: CodedColumn,
    codes: npt.NDArray[Any],
    exact: Numbers,
    groups: npt.NDArray[np.int64],
    complete: npt.NDArray[np.int64],
    keep: bool,
) -> CodedColumn:
    """Return the column with the means of groups.

    codes, groups: of the complete rows. exact: the number of each label. keep: whether other rows keep their values.
    """
    if not len(complete):
        labels = column.labels if keep else column.labels[:0]
        return CodedColumn(column.codes if keep else np.zeros(len(column.codes), np.uint8), labels)
    amounts = exact.amounts[codes]
    # Ranks in place of amounts, which may be Python's whole numbers.
    order = np.lexsort((np.argsort(np.argsort(exact.amounts, kind="stable"))[codes], groups))
    starts = np.flatnonzero(np.append(True, np.diff(groups[order]) != 0))
    sorted_numbers = Numbers(amounts[order], exact.places, np.ones(len(order), np.bool_))
    means = group_means(sorted_numbers, np.ones(len(order), np.int64), starts, column.labels.type)
    others = column.labels if keep else column.labels[:0]
    if others.type != means.type:
        others = others.cast(means.type, safe=False)
    encoded = pa.concat_arrays([means, others]).dictionary_encode()
    place, labels = encoded.indices.to_numpy(), encoded.dictionary
    new = np.full(len(column.codes), len(labels), code_type(len(labels) + 1))
    if keep:
        new[:] = np.append(place[len(means) :], len(labels))[column.codes]
    new[complete] = place[: len(means)][groups]
    return CodedColumn(new, labels)
