"""Files whose values are codes already, so that nobody has to read them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from ..io.base import Source
from .column import Column


class EncodedSource(Source):
    """A table of files, or of what else can be read in streams, that is encoded."""

    @abstractmethod
    def encoded(self, names: Sequence[str]) -> list[Column]:
        """Columns with the codes of all rows, in memory."""

    @abstractmethod
    def table(self, names: Sequence[str]) -> pa.Table:
        """Columns with their values, with the types that the files have."""
