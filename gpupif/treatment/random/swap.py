"""Swapping: rows of an equivalence class exchange values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from ...errors import InputError
from ...rows.keys import code_type
from ...utils.config import resources
from ...utils.memory import shown
from ...utils.validation import check_exist, share
from ..coded_columns import CodedColumn
from ..field_checks import not_empty
from ..steps import Chunk, RowFacts, Step
from ..treatment import Tools, TreatedTable, Treatment

# The bytes of memory for each row: random numbers, classes, the order of rows, and memory for sorting.
ROW_BYTES = 96


@dataclass(frozen=True)
class Swap(Treatment):
    """Swap values of some columns, together, among rows that agree on the columns `within` (Dalenius and Reiss, 1982).

    columns: names of the columns whose values are swapped together.
    within: names of the columns on which rows agree that swap values. A missing value is a value of its own.
    share: the probability of each row to take part, from 0 to 1.
    household: name of the column that identifies households. Whole households of equal size then swap values, and take
        part as one row does. All rows of a household must agree on `columns` and `within`. Default None: rows swap.

    The rows of an equivalence class that take part pass their values on in a random circle. No such row gets its own
    values back, but it may get equal values. The number of rows with each value, or with each combination of values,
    stays exactly the same in each class. A row that takes part alone in its class keeps its values; the record counts
    such rows. Missing values are swapped, too.

    Raises InputError if the columns of all rows, and 96 bytes for each row, do not fit into memory. Also raises it for
    rows without a household, and for a household with two values in a column.
    """

    do: ClassVar[str] = "swap"
    is_random: ClassVar[bool] = True

    columns: Annotated[Sequence[Hashable], not_empty]
    within: Sequence[Hashable]
    share: Annotated[float, share]
    household: Hashable | None = None

    @property
    def keeps_numbers(self) -> bool:
        return True

    def check(self) -> None:
        super().check()
        if self.household in [*self.columns, *self.within]:
            raise InputError(
                f"{self.do}: household: {self.household!r} is in columns or in within. Leave it out there."
            )
        check_apart(self.do, self.columns, "within", self.within)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        columns = self.columns
        check_exist(f"{self.do}: within", self.within, table.names)
        check_exist(f"{self.do}: household", [] if self.household is None else [self.household], table.names)
        check_memory(self.do, table.rows, ROW_BYTES, "swap")
        coded = table.codes([*columns, *self.within, *([] if self.household is None else [self.household])])
        agreed = coded[: len(columns) + len(self.within)]
        # The first row of each household stands for it. Without households each row is one.
        heads, numbers, alike = np.arange(table.rows), slice(None), []
        if self.household is not None:
            heads, numbers, sizes = self._households(agreed, coded[-1])
            alike.append((sizes, int(sizes.max(initial=0)) + 1))
        takes_part = tools.draws(self.do, tuple(columns), "takes part").of_rows(0, table.rows)[heads]
        taking = np.flatnonzero(takes_part <= np.uint64(max(1, int(self.share * 2**64)) - 1))
        del takes_part
        order = tools.draws(self.do, tuple(columns), "order").of_rows(0, table.rows)[heads[taking]]
        alike += [(own.codes[heads], len(own.labels) + 1) for own in agreed[len(columns) :]]
        classes = class_numbers(alike, len(heads))
        taking = taking[np.lexsort((order, classes[taking]))]
        sources, alone = circles(classes[taking])
        swapped = []
        for own in coded[: len(columns)]:
            codes = own.codes[heads].astype(code_type(len(own.labels) + 1), copy=True)
            codes[taking] = own.codes[heads[taking[sources]]]
            swapped.append(CodedColumn(codes[numbers], own.labels))
        units = "rows" if self.household is None else "households"
        record = {f"{units}_swapped": len(taking) - alone, f"{units}_alone_in_their_class": alone}
        return NewCodesStep.from_columns(table, columns, swapped, record)

    def _households(self, agreed: Sequence[CodedColumn], household: CodedColumn) -> Any:
        """Return the first row of each household, the number of each row's household, and the rows of each household.

        agreed: `columns` and `within`. Raises InputError if a household has two values.
        """
        unknown = int(np.count_nonzero(household.codes == len(household.labels)))
        if unknown:
            raise InputError(
                f"{self.do}: household: column {self.household!r}: expected a household in each row, got {unknown:,} "
                "rows without. Fill them in, or remove these rows first."
            )
        _, heads, numbers, sizes = np.unique(
            household.codes, return_index=True, return_inverse=True, return_counts=True
        )
        for name, own in zip([*self.columns, *self.within], agreed, strict=True):
            other = np.flatnonzero(own.codes != own.codes[heads][numbers])
            if len(other):
                raise InputError(
                    f"{self.do}: column {name!r}: expected one value in all rows of a household, got two in the "
                    f"household of row {other[0]:,} (from 0). Leave the column out, or swap rows: no household."
                )
        return heads, numbers, sizes


def check_memory(do: str, rows: int, row_bytes: int, verb: str) -> None:
    """Raise InputError if a treatment needs more memory than is allowed. row_bytes: bytes for each row."""
    needed, allowed = row_bytes * rows, resources().memory
    if needed > allowed:
        raise InputError(
            f"{do}: {rows:,} rows need {shown(needed)} of memory, and {shown(allowed)} are "
            f"allowed. Allow more (gpupif.config(memory_limit=)), or {verb} on a machine with more memory."
        )


def check_apart(do: str, columns: Sequence[Hashable], argument: str, others: Sequence[Hashable]) -> None:
    """Raise InputError if a column is among `columns` and among the columns of another argument of a treatment."""
    both = [name for name in columns if name in others]
    if both:
        raise InputError(f"{do}: column {both[0]!r} is in columns and in {argument}. Leave it out of one of them.")


def have_values(columns: Sequence[CodedColumn]) -> npt.NDArray[np.bool_]:
    """Return the mask of the rows without a missing value in some columns."""
    return np.asarray(np.logical_and.reduce([own.codes < len(own.labels) for own in columns]))


def class_numbers(columns: Sequence[tuple[npt.NDArray[Any], int]], rows: int) -> npt.NDArray[np.int64]:
    """Return the number of each row's equivalence class: int64 (rows,), equal for rows that agree on all columns.

    columns: pairs of codes (rows,) and the number of possible codes.
    """
    classes, size = np.zeros(rows, np.int64), 1
    for codes, values in columns:
        if size * values >= 2**62:
            classes, size = _renumbered(classes)
        classes = classes * values + codes
        size *= values
    return classes


def _renumbered(classes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    distinct, numbers = np.unique(classes, return_inverse=True)
    return numbers.astype(np.int64), len(distinct)


def circles(classes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the position from which each row gets its values, and the number of rows that are alone in their class.

    A row gets the values of the row before it in its class, and the first row the values of the last.
    classes: class numbers (rows,), sorted.
    """
    heads = np.flatnonzero(np.append(True, classes[1:] != classes[:-1])[: len(classes)])
    tails = np.append(heads[1:], len(classes))[: len(heads)] - 1
    sources = np.arange(len(classes)) - 1
    sources[heads] = tails
    return sources, int(np.count_nonzero(heads == tails))


@dataclass(frozen=True)
class NewCodesStep(Step):
    """The step of a treatment that found the new value of every row, such as `Swap`.

    labels: new labels by column. facts: "codes 0", "codes 1", ..., the new codes of all rows, by column.
    """

    labels: Sequence[Any]
    facts: RowFacts

    @classmethod
    def from_columns(
        cls, table: TreatedTable, names: Sequence[Hashable], columns: Sequence[CodedColumn], record: Mapping[str, int]
    ) -> NewCodesStep:
        """Return the step that writes columns of all rows of a table. record: its facts, which reveal rows."""
        facts = table.facts_of({f"codes {number}": own.codes for number, own in enumerate(columns)})
        return cls([own.labels for own in columns], facts, writes=names, record=record, revealing=list(record))

    def apply(self, chunk: Chunk) -> None:
        arrays = self.facts.read(chunk)
        for number, (name, labels) in enumerate(zip(self.writes, self.labels, strict=True)):
            chunk[name] = CodedColumn(arrays[f"codes {number}"], labels)
