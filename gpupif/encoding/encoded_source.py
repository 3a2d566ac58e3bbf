"""Files whose values are codes already, so that nobody has to read them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import pyarrow as pa

from ..io.base import Source
from .column import Column


class EncodedSource(Source):
    """A table of files, or of another source that is read as a stream, to be encoded."""

    @abstractmethod
    def encoded(self, names: Sequence[str]) -> list[Column]:
        """Return columns with the codes of all rows, in memory."""

    @abstractmethod
    def table(self, names: Sequence[str]) -> pa.Table:
        """Return columns with their values, in the types of the files."""
