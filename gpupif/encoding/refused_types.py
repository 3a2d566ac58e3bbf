"""Types that are refused: values of nested types, in memory or in Parquet and other files, are no categories."""

from __future__ import annotations

from collections.abc import Hashable

import pyarrow as pa

from ..errors import ColumnTypeError


def refuse_nested(name: Hashable, kind: pa.DataType) -> None:
    """Raise ColumnTypeError for lists, structs, maps and unions: Arrow cannot tell which of their values are equal."""
    if pa.types.is_nested(kind) or pa.types.is_union(kind):
        raise ColumnTypeError(name, kind)
