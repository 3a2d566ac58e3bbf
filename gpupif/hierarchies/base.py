"""What a hierarchy of the values of a column is."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pyarrow as pa


class Hierarchy(ABC):
    """Which values of a column are one group, level by level; a function of the values alone, whatever table has them.

    At level 0 values stand as they are; at level `height` all are one group, ``*``. Levels nest: what is one group at a
    level is one at all above. Missing values are in no group: they stay missing at every level.
    """

    height: int

    @abstractmethod
    def groups(self, values: pa.Array, level: int) -> pa.Array:
        """The names (text) of the groups of some different values, none of them missing, at level 1 to `height`.

        Raises InputError for a value that has no place in the hierarchy, naming it.
        """
