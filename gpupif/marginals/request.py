"""The request for counts of sets of columns of a table, checked."""

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

    columns: whose combinations are counted (None: all but row labels and weights). weights: the column of sampling
    weights. argument: what errors call `columns`; named_by: by column what else named it, if anything. missing: as of
    `gpupif.toxic_pairs`. labels: where no columns are named, row labels are counted too. Raises InputError for a word
    that it cannot be.
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
        """The columns that are counted, of a table with columns `names`; raises InputError."""
        if not names:
            raise InputError("table: expected at least one column, got none.")
        check_unique(names)
        check_weights(self.weights, names)
        if self.columns is None:
            labels = () if self.labels or len(index_names) == len(names) else index_names
            every = [name for name in names if name not in labels and (self.weights is None or name != self.weights)]
            if not every:
                raise InputError(f"{self.argument}: expected a column beside that of the weights, got none.")
            return every
        wanted = as_list(self.argument, self.columns)
        if not wanted:
            raise InputError(f"{self.argument}: expected at least one column, got an empty list.")
        check_exist(self.argument, [name for name in wanted if name not in self.named_by], names)
        for name, argument in self.named_by.items():
            check_exist(argument, [name], names)
        return wanted

    def read(self, chosen: Sequence[Hashable]) -> list[Hashable]:
        """Return the columns that are read: those that are counted, then that of the weights if it is none of them."""
        return [*chosen, *([] if self.weights is None or self.weights in chosen else [self.weights])]

    def pick(self, names: Sequence[str]) -> list[str] | None:
        """Return the columns of a file that are read (None: all); raises InputError."""
        return None if self.columns is None else [str(name) for name in self.read(self.chosen(names))]

    def choose(self, source: Source) -> list[Hashable]:
        """Return the columns of a table of files that are read; raises InputError."""
        return self.read(self.chosen(source.names, source.index_names))

    def in_streams(self, table: Any) -> bool:
        """Return whether a table is read in streams."""
        return in_streams(table, self.choose)

    def open_temporary_table(self, table: Any, report: Reporter) -> TemporaryTable:
        """The table in streams; raises InputError, TableReadError, OutputError."""
        return open_temporary_table(table, self.choose, self.missing, report, copies=2)
