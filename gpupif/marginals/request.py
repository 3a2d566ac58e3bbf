"""The checked request for counts of sets of columns of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..io.base import Source
from ..out_of_core.temporary_table import TemporaryTable, in_streams, open_temporary_table
from ..utils.progress import Reporter
from ..utils.refused_combinations import WILDCARD_ENTROPIES
from ..utils.validation import Columns, as_list, check_exist, check_unique, check_weights, check_word


@dataclass(frozen=True)
class CountRequest:
    """The columns of a table that are counted.

    columns: columns whose combinations are counted. None: all columns except row labels and weights.
    weights: the column of sampling weights. None: none.
    missing: "category" or "error", as in `gpupif.toxic_pairs`.
    argument: the name of `columns` in errors.
    named_by: for columns that another argument names, the name of that argument.
    labels: True if row labels are counted too when `columns` is None.

    Raises InputError if `missing` is another word.
    """

    columns: Columns | None = None
    weights: Hashable = None
    missing: str = "category"
    argument: str = "columns"
    named_by: Mapping[Hashable, str] = field(default_factory=dict, compare=False)
    labels: bool = False

    def __post_init__(self) -> None:
        if self.missing == "wildcard":
            raise WILDCARD_ENTROPIES.refusal()
        check_word("missing", self.missing, ("category", "error"))

    def chosen(self, names: Sequence[Hashable], index_names: Sequence[Hashable] = ()) -> list[Hashable]:
        """Return the columns that are counted. names: of all columns of the table. index_names: of its row labels.

        Raises InputError.
        """
        if not names:
            raise InputError("table: expected at least one column, got none.")
        check_unique(names)
        check_weights(self.weights, names)
        if self.columns is None:
            labels = () if self.labels or len(index_names) == len(names) else index_names
            every = [name for name in names if name not in labels and (self.weights is None or name != self.weights)]
            if not every:
                raise InputError(f"{self.argument}: expected a column beside the column of weights, got none.")
            return every
        wanted = as_list(self.argument, self.columns)
        if not wanted:
            raise InputError(f"{self.argument}: expected at least one column, got an empty list.")
        check_exist(self.argument, [name for name in wanted if name not in self.named_by], names)
        for name, argument in self.named_by.items():
            check_exist(argument, [name], names)
        return wanted

    def read(self, chosen: Sequence[Hashable]) -> list[Hashable]:
        """Return the columns that are read: the chosen columns, and last the column of weights unless it is chosen."""
        return [*chosen, *([] if self.weights is None or self.weights in chosen else [self.weights])]

    def pick(self, names: Sequence[str]) -> list[str] | None:
        """Return the columns of a file that are read; None: all columns. Raises InputError."""
        return None if self.columns is None else [str(name) for name in self.read(self.chosen(names))]

    def choose(self, source: Source) -> list[Hashable]:
        """Return the columns of a table of files that are read. Raises InputError."""
        return self.read(self.chosen(source.names, source.index_names))

    def in_streams(self, table: Any) -> bool:
        """Return whether a table is read in streams."""
        return in_streams(table, self.choose)

    def open_temporary_table(self, table: Any, report: Reporter) -> TemporaryTable:
        """Return the table encoded on disk. Raises InputError, TableReadError, OutputError."""
        return open_temporary_table(table, self.choose, self.missing, report, copies=2)
