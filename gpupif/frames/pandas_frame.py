"""Tables of pandas."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from ..errors import OutputError
from ..rows.threads import Workers
from .base import Frame, category_orders
from .pandas_columns import index_without_unused, other_column, without_unused
from .replacement import Replacement

if TYPE_CHECKING:
    import numpy.typing as npt


class PandasFrame(Frame):
    """A pandas DataFrame."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        return self._table.iloc[:, position]

    def orders(self) -> dict[Hashable, list[Any]]:
        return category_orders(self._table)

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> pd.DataFrame:
        columns = self._table.columns.take([self.names.index(name) for name in names])
        return pd.DataFrame(values.T, index=self.index, columns=columns, copy=False)

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> pd.DataFrame:
        index = index_without_unused(self.index if kept is None else self.index[kept])
        places = [self.names.index(name) for name in names]

        def made(place: int) -> Any:
            name = self.names[place]
            if name in columns:
                return other_column(columns[name], self.column(place))
            column = self.column(place)
            return without_unused(column if kept is None else column[kept])

        with Workers() as workers:
            arrays = workers.run(made, [(place,) for place in places])
        series = {
            number: _indexed(array, index)
            if isinstance(array, pd.Series)
            else pd.Series(array, index=index, copy=False)
            for number, array in enumerate(arrays)
        }
        frame = pd.DataFrame(series, index=index, copy=False)
        frame.columns = self._table.columns.take(places)
        return frame

    def arrow(self) -> pa.Table:
        """See `Frame`; raises OutputError for a column that Arrow cannot hold."""
        columns = []
        for position, name in enumerate(self.names):
            series = self.column(position)
            if isinstance(series.dtype, pd.SparseDtype):
                series = pd.Series(series.to_numpy())
            try:
                columns.append(pa.array(series, from_pandas=True))
            except (pa.ArrowException, TypeError) as error:
                raise OutputError(
                    f"output: column {name!r} of the table, of type {series.dtype}, cannot be stored beside the scores "
                    f"({error}). Convert it, to text for instance, or write the scores alone."
                ) from error
        return pa.table(columns, names=[str(name) for name in self.names])


def _indexed(column: pd.Series[Any], index: pd.Index[Any]) -> pd.Series[Any]:
    """Return a column with another index; no value is copied, as `set_axis` of pandas 2 does."""
    same = column.copy(deep=False)
    same.index = index
    return same
