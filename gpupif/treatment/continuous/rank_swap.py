"""Rank swapping: values are exchanged among rows whose ranks are close."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpupif.kernels.random_values import swap_ranks

from ...errors import InputError
from ...utils.validation import check_exist, share
from ..coded_columns import CodedColumn
from ..field_checks import not_empty
from ..random.swap import NewCodesStep, check_apart, check_memory, class_numbers
from ..random.units import units_of
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from ..value_maps.new_values import exactly

# The bytes of memory for each row, and for each of its cells.
ROW_BYTES, CELL_BYTES = 80, 8


@dataclass(frozen=True)
class RankSwap(Treatment):
    """Swap each number or date with one whose rank is close, for each column by itself (Moore, 1996).

    columns: names of the columns of numbers or dates.
    reach: the largest difference of the ranks of swapped values, as a share of the rows with a value, from 0 to 1. It
        is rounded down to whole ranks.
    within: names of columns. Rows that swap values agree on them (strata). A missing value is a value of its own.
        Default: none.

    Rows are ranked by their value; of equal values, the earlier row has the lower rank. From the lowest rank on, each
    value that is not swapped yet is swapped with one of those within reach that are not swapped yet. All of them are
    equally likely. A value with none within reach stays; the record counts such values. How often each value occurs
    in a stratum stays exactly the same. Missing values stay missing.

    Raises InputError for a reach below one rank in every stratum, and for a text that is neither date nor number. Also
    raises it if the columns of all rows do not fit into memory. Raises ColumnTypeError for values of other types.

    Source: Moore (1996), Controlled data-swapping techniques for masking public use microdata sets, section 3.
    """

    do: ClassVar[str] = "rank_swap"
    is_random: ClassVar[bool] = True

    columns: Annotated[Sequence[Hashable], not_empty]
    reach: Annotated[float, share]
    within: Sequence[Hashable] = ()

    def check(self) -> None:
        super().check()
        check_apart(self.do, self.columns, "within", self.within)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        names, rows = self.columns, table.rows
        check_exist(f"{self.do}: within", self.within, table.names)
        needed = ROW_BYTES + CELL_BYTES * (len(names) + len(self.within))
        check_memory(self.do, rows, needed, "swap")
        coded = table.codes([*names, *self.within], needed)
        strata = class_numbers([(own.codes, len(own.labels) + 1) for own in coded[len(names) :]], rows)
        swapped, stayed = [], 0
        for name, own in zip(names, coded[: len(names)], strict=True):
            amounts = units_of(name, own.labels, dates=True, numbers=True).amounts
            ranks = np.argsort(np.argsort(amounts, kind="stable"))
            there = np.flatnonzero(own.codes < len(own.labels))
            order = there[np.lexsort((ranks[own.codes[there]], strata[there]))]
            draws = tools.draws(self.do, name).of_rows(0, rows)[order]
            sources, left = self._sources(name, strata[order], draws)
            codes = own.codes.copy()
            codes[order] = own.codes[order[sources]]
            swapped.append(CodedColumn(codes, own.labels))
            stayed += left
        return NewCodesStep.from_columns(table, names, swapped, {"cells_not_swapped": stayed})

    def _sources(
        self, name: Hashable, strata: npt.NDArray[np.int64], draws: npt.NDArray[np.uint64]
    ) -> tuple[npt.NDArray[np.int64], int]:
        """Return the place from which each place gets its value, and the number of places that keep their value.

        strata: the stratum of each place, sorted; values ascend within a stratum. draws: a random number by place.
        """
        starts = np.flatnonzero(np.append(True, strata[1:] != strata[:-1])[: len(strata)])
        sizes = np.diff(np.append(starts, len(strata)))
        reaches = np.array([math.floor(exactly(float(self.reach)) * size) for size in sizes.tolist()], np.int64)
        if len(sizes) and not reaches.any():
            raise InputError(
                f"{self.do}: column {name!r}: reach: {self.reach} of {int(sizes.max()):,} rows, the most of a stratum, "
                "is less than one rank. Take a larger reach, or fewer columns in within."
            )
        sources = np.arange(len(strata))
        for start, size, reach in zip(starts.tolist(), sizes.tolist(), reaches.tolist(), strict=True):
            partners: npt.NDArray[Any] = np.empty(size, np.int64)
            tree = np.empty(size + 1, np.int64)
            swap_ranks(draws[start : start + size], np.int64(reach), tree, partners)
            sources[start : start + size] = start + partners
        return sources, int(np.count_nonzero(sources == np.arange(len(strata))))
