"""Tables of pyarrow, and those of files read to Arrow."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..encoding.encode import check_arrow
from ..errors import InputError
from ..io.common import decode, pandas_index_names
from .arrow_columns import replaced_table
from .base import Frame
from .replacement import Replacement

if TYPE_CHECKING:
    import numpy.typing as npt


class ArrowFrame(Frame):
    """A pyarrow Table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names = list(table.column_names)
        self.rows = table.num_rows
        try:
            self.index_names = pandas_index_names(table.schema)
        except pa.ArrowInvalid as error:
            raise InputError(f"table: {error}. Drop it with table.replace_schema_metadata(None).") from error

    def column(self, position: int) -> Any:
        """See `Frame`; raises InputError for data that do not hold together."""
        column = self._table.column(position)
        check_arrow(self.names[position], column)
        return column

    def orders(self) -> dict[Hashable, list[Any]]:
        found: dict[Hashable, list[Any]] = {}
        for field in self._table.schema:
            if pa.types.is_dictionary(field.type) and field.type.ordered:
                chunks = self._table.column(field.name).chunks
                if chunks and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks):
                    found[field.name] = chunks[0].dictionary.to_pylist()
        return found

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        return arrow_table(values, names)

    def view(self, scores: Any) -> Any:
        """See `Frame`; tables of pyarrow are never changed."""
        return scores

    def series(self, values: Any, name: str) -> Any:
        return pa.array(values)

    def named(self, columns: Mapping[str, Any]) -> Any:
        return pa.table(dict(columns))

    def arrow(self) -> pa.Table:
        """See `Frame`; raises InputError for data that do not hold together."""
        for position in range(len(self.names)):
            self.column(position)
        return decode(self._table)

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> pa.Table:
        return replaced_table(self._table, names, columns, kept)


class FileFrame(Frame):
    """Files read to Arrow, by `read_table` or in streams; scores come as pandas DataFrames."""

    scores_on = "either"
    from_file = True

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.names = list(table.column_names)
        self.rows = table.num_rows
        self.index_names = pandas_index_names(table.schema)

    def column(self, position: int) -> Any:
        return self._table.column(position)

    def arrow(self) -> pa.Table:
        return decode(self._table)


def arrow_table(values: npt.NDArray[Any], names: Sequence[Hashable]) -> pa.Table:
    """Arrow table over the rows of a (columns, rows) array, without a copy."""
    return pa.table({str(name): pa.array(column) for name, column in zip(names, values, strict=True)})
