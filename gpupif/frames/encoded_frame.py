"""Tables that are encoded already."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ..encoding.encoded_source import EncodedSource
from ..io.common import Pick
from .base import Frame


class EncodedFrame(Frame):
    """Columns of an `EncodedSource`; scores come as pandas DataFrames."""

    scores_on = "either"
    from_file = True

    def __init__(self, source: EncodedSource, pick: Pick) -> None:
        names = pick(source.names)
        self._source = source
        self._picked = source.names if names is None else names
        self.names = list(self._picked)
        self.rows = source.about_rows()
        self.index_names = [name for name in source.index_names if name in self._picked]
        self._columns = source.encoded(self._picked)

    def column(self, position: int) -> Any:
        """See `Frame`; encoded."""
        return self._columns[position]

    def arrow(self) -> pa.Table:
        """See `Frame`; of files, these are read."""
        self.check_unchanged()
        table = self._source.table(self._picked)
        self.check_unchanged()
        return table
