"""Dictionaries of a file of Arrow IPC, in which those of later batches can only have more values than earlier ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from gpupif.kernels.codes import recode


class GrowingDictionaries:
    """Of all columns of categories of a file, the values so far."""

    def __init__(self, schema: pa.Schema) -> None:
        self._number: dict[str, dict[Any, int]] = {
            field.name: {} for field in schema if pa.types.is_dictionary(field.type)
        }

    def grown(self, table: pa.Table) -> pa.Table:
        """The same rows, their values numbered as in those before, new ones behind."""
        for name, number in self._number.items():
            place = table.column_names.index(name)
            column = table.column(place).unify_dictionaries().combine_chunks()
            kind = table.schema.field(place).type
            chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
            own = [number.setdefault(value, len(number)) for value in chunk.dictionary.to_pylist()]
            codes = chunk.indices.cast(pa.int64()).fill_null(len(own)).to_numpy(zero_copy_only=False)
            numbers = np.empty(len(codes), np.int32)
            recode(codes, 0, np.array([*own, -1], np.int64), numbers)
            values = pa.array(list(number), kind.value_type)
            indices = pa.array(numbers, mask=numbers < 0).cast(kind.index_type)
            array = pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
            table = table.set_column(place, table.schema.field(place), array)
        return table
