"""Swapping: values that rows of one class hand on among themselves."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...rows.keys import code_type
from ...utils.config import resources
from ...utils.memory import shown
from ...utils.validation import as_list, check_exist, share
from ..coded_columns import CodedColumn
from ..steps import Chunk, RowFacts, Step
from ..treatment import Tools, TreatedTable, Treatment

# Bytes for each row at the same time: random numbers, classes, the order of rows, and what sorting takes.
ROW_BYTES = 96


@dataclass(frozen=True)
class Swap(Treatment):
    """Move values of some columns, together, among rows that agree on the columns `within` (Dalenius and Reiss, 1982).

    Each row takes part with probability `share`; in each class of rows, equal on `within` (missing being a value like
    others), those that do pass their values on in one random circle, so that none gets its own back, though it may get
    an equal one. How often each value or combination occurs in a class stays exactly the same. A row that is the only
    one to take part in its class stays as it is; the record counts them. Missing values are swapped like others.

    The columns of the whole table, and 96 bytes for each row, have to fit into memory. Raises InputError where not.
    """

    do: ClassVar[str] = "swap"
    is_random: ClassVar[bool] = True

    columns: Sequence[Hashable]
    within: Sequence[Hashable]
    share: float

    def check(self) -> None:
        columns, within = (as_list(f"{self.do}: {name}", getattr(self, name)) for name in ("columns", "within"))
        if not columns:
            raise InputError(f"{self.do}: columns: expected at least one column, got an empty list.")
        both = [name for name in columns if name in within]
        if both:
            raise InputError(f"{self.do}: column {both[0]!r} is swapped and has to agree as well; leave it out of one.")
        share(f"{self.do}: share", self.share)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        columns, within = as_list("columns", self.columns), as_list("within", self.within)
        check_exist(f"{self.do}: within", within, table.names)
        needed, allowed = ROW_BYTES * table.rows, resources().memory
        if needed > allowed:
            raise InputError(
                f"{self.do}: {table.rows:,} rows need {shown(needed)} of memory, and {shown(allowed)} may "
                "be taken. Give more (gpupif.config(memory_limit=)), or swap on a machine that has it."
            )
        takes_part = tools.draws(self.do, tuple(columns), "takes part").of_rows(0, table.rows)
        taking = np.flatnonzero(takes_part <= np.uint64(min(int(self.share * 2**64), 2**64) - 1))
        del takes_part
        order = tools.draws(self.do, tuple(columns), "order").of_rows(0, table.rows)[taking]
        found = table.codes([*columns, *within])
        classes = class_numbers([(one.codes, len(one.labels) + 1) for one in found[len(columns) :]], table.rows)
        taking = taking[np.lexsort((order, classes[taking]))]
        sources, alone = circles(classes[taking])
        arrays, labels = {}, []
        for number, one in enumerate(found[: len(columns)]):
            codes = one.codes.astype(code_type(len(one.labels) + 1), copy=True)
            codes[taking] = one.codes[taking[sources]]
            arrays[f"swapped {number}"] = codes
            labels.append(one.labels)
        facts = {"rows_swapped": len(taking) - alone, "rows_alone_in_their_class": alone}
        return SwapStep(columns, labels, table.facts_of(arrays), facts)


def class_numbers(columns: Sequence[tuple[npt.NDArray[Any], int]], rows: int) -> npt.NDArray[np.int64]:
    """The same number for rows that agree on all columns, each given as its codes and how many there may be."""
    classes, size = np.zeros(rows, np.int64), 1
    for codes, values in columns:
        if size * values >= 2**62:
            classes, size = _renumbered(classes)
        classes = classes * values + codes
        size *= values
    return classes


def _renumbered(classes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    different, numbers = np.unique(classes, return_inverse=True)
    return numbers.astype(np.int64), len(different)


def circles(classes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """From which place each row gets its values: from the one before it in its class, the first from the last.

    classes: of rows that lie class by class. And how many are alone in theirs.
    """
    heads = np.flatnonzero(np.append(True, classes[1:] != classes[:-1])[: len(classes)])
    tails = np.append(heads[1:], len(classes))[: len(heads)] - 1
    sources = np.arange(len(classes)) - 1
    sources[heads] = tails
    return sources, int(np.count_nonzero(heads == tails))


@dataclass(frozen=True)
class SwapStep(Step):
    """The values that rows have after all were swapped."""

    columns: Sequence[Hashable]
    labels: Sequence[Any]
    facts: RowFacts
    counted: dict[str, int]

    @property
    def writes(self) -> Sequence[Hashable]:
        return self.columns

    def apply(self, chunk: Chunk) -> None:
        arrays = self.facts.read(chunk)
        for number, (name, labels) in enumerate(zip(self.columns, self.labels, strict=True)):
            chunk[name] = CodedColumn(arrays[f"swapped {number}"], labels)

    def record(self) -> dict[str, Any]:
        return dict(self.counted)

    def revealing(self) -> Sequence[str]:
        return ("rows_swapped", "rows_alone_in_their_class")
