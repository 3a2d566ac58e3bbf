"""Columns of Arrow that others replace, and what their table says of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..encoding.plain import family
from ..errors import ColumnTypeError
from ..io.documents import parse_json
from ..rows.keys import code_type
from .categories import categories_of
from .replacement import Replacement

# Of what pandas notes, what says nothing of values, as its attributes may.
PANDAS, KEPT = b"pandas", ("column_indexes", "creator", "pandas_version")


def replaced_table(
    table: pa.Table, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
) -> pa.Table:
    """See `Frame.replaced`; of what a table and replaced columns say of themselves only pandas' note of others stays.

    Anything else may hold values: bounds, histograms, areas on a map.
    """
    mask = None if kept is None else pa.array(kept)
    arrays, fields = [], []
    for name in names:
        field = table.schema.field(str(name))
        if name in columns:
            array = other_column(columns[name], field.type)
            field = pa.field(field.name, array.type)
        else:
            array = table.column(field.name)
            if mask is not None:
                array, field = without_unused(array.filter(mask)), field.remove_metadata()
        arrays.append(array)
        fields.append(field)
    changed = set(map(str, columns)) | (set(table.column_names) - set(map(str, names)))
    metadata = table.schema.metadata
    if changed or kept is not None:
        metadata = kept_metadata(table.schema, changed, kept is None)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata))


def kept_metadata(schema: pa.Schema, changed: set[str], all_rows: bool) -> dict[bytes, bytes] | None:
    """What a schema may say of a table some of whose columns are changed or gone: pandas' note of the other ones.

    all_rows: whether all rows are there, so that an index of pandas that only counts them still does.
    """
    try:
        note = parse_json((schema.metadata or {})[PANDAS])
        index = [one for one in note["index_columns"] if (one not in changed if isinstance(one, str) else all_rows)]
        own = [
            one
            for one in note["columns"]
            if one.get("field_name", one.get("name")) not in changed and one.get("name") not in changed
        ]
        kept = {name: note[name] for name in KEPT if name in note} | {"index_columns": index, "columns": own}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return {PANDAS: json.dumps(kept).encode()}


def other_type(labels: pa.DataType, before: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """The type of a column with other values, that had values of the type `before` and the type `kind`."""
    if pa.types.is_dictionary(kind):
        same = family(labels) == family(kind.value_type)
        return pa.dictionary(pa.int32(), kind.value_type if same else labels)
    if pa.types.is_null(labels) or family(labels) == family(before):
        return kind
    return pa.dictionary(pa.int32(), labels) if family(labels) == "text" else labels


def other_column(column: Replacement, kind: pa.DataType) -> pa.Array:
    """The column as an array; kind: of the one that it replaces."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    target = other_type(column.labels.type, column.before, kind)
    if not pa.types.is_dictionary(target):
        labels = in_type(column.labels, target)
        if pa.types.is_null(labels.type) or not len(labels):
            return pa.nulls(len(column.codes), target)
        return labels.take(pa.array(column.row_places(code_type(len(labels) + 1)), mask=column.missing))
    found = categories_of(column)
    values = in_type(found.values, target.value_type)
    numbers = pa.array(found.numbers.astype(np.int32, copy=False), mask=found.numbers < 0)
    return pa.DictionaryArray.from_arrays(numbers, values)


def in_type(labels: pa.Array, kind: pa.DataType) -> pa.Array:
    """Labels in a type of their family, or, where they do not fit into it, in their own."""
    if labels.type == kind:
        return labels
    try:
        return labels.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid:
        return labels
    except pa.ArrowNotImplementedError as error:
        raise ColumnTypeError("", f"{labels.type} in place of {kind}") from error


def without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of categories with those that occur; any other as it is."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    if not len(column):
        return pa.chunked_array([], kind)
    column = column.unify_dictionaries().combine_chunks()
    chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    codes = chunk.indices.cast(pa.int64()).fill_null(len(chunk.dictionary)).to_numpy(zero_copy_only=False)
    used = np.unique(codes[codes < len(chunk.dictionary)])
    number = np.full(len(chunk.dictionary) + 1, -1)
    number[used] = np.arange(len(used))
    numbers = number[codes]
    indices = pa.array(numbers, mask=numbers < 0).cast(kind.index_type)
    values = chunk.dictionary.take(pa.array(used))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)])
