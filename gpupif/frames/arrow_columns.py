"""Columns of Arrow that others replace, and what their table says of them."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.plain_values import family
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

    Anything else may hold values: bounds, histograms, areas on a map. Dictionaries hold the values that occur.
    """
    mask = None if kept is None else pa.array(kept)
    arrays, fields, pruned = [], [], False
    for name in names:
        field = table.schema.field(str(name))
        if name in columns:
            array = other_column(columns[name], field.type)
            field = pa.field(field.name, array.type)
        else:
            given = table.column(field.name)
            if mask is not None:
                given, field = given.filter(mask), field.remove_metadata()
            array = without_unused(given)
            pruned = pruned or array is not given
        arrays.append(array)
        fields.append(field)
    changed = set(map(str, columns)) | (set(table.column_names) - set(map(str, names)))
    metadata = table.schema.metadata
    if changed or kept is not None or pruned:
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
            {**one, "metadata": _said_of_column(one.get("metadata"))}
            for one in note["columns"]
            if one.get("field_name", one.get("name")) not in changed and one.get("name") not in changed
        ]
        kept = {name: note[name] for name in KEPT if name in note} | {"index_columns": index, "columns": own}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return {PANDAS: json.dumps(kept).encode()}


def _said_of_column(said: Any) -> Any:
    """Return what pandas noted of a column without how many categories it had."""
    return {key: one for key, one in said.items() if key != "num_categories"} if isinstance(said, dict) else said


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
    """Return a column whose dictionaries, if it has any, hold the values that occur, in the order that they had."""
    kind = column.type
    if not pa.types.is_dictionary(kind):
        return _rebuilt(column) if _holds_dictionaries(kind) else column
    if not len(column):
        return pa.chunked_array([], kind)
    chunk = _one_chunk(column)
    used = np.sort(pc.unique(chunk.indices).drop_null().to_numpy())
    if len(used) == len(chunk.dictionary):
        return column
    number = np.zeros(len(chunk.dictionary), np.int64)
    number[used] = np.arange(len(used))
    values = chunk.dictionary.take(pa.array(used))
    return pa.chunked_array([_coded(pa.array(number).take(chunk.indices), values, kind)])


def with_values(column: pa.ChunkedArray, values: pa.Array) -> pa.ChunkedArray:
    """Return a column with a dictionary of these values; all that occur in it are among them."""
    if not len(column):
        return pa.chunked_array([], column.type)
    chunk = _one_chunk(column)
    return pa.chunked_array([_coded(pc.index_in(chunk.dictionary, values).take(chunk.indices), values, column.type)])


def _one_chunk(column: pa.ChunkedArray) -> pa.DictionaryArray:
    combined = column.unify_dictionaries().combine_chunks()
    return combined.chunk(0) if isinstance(combined, pa.ChunkedArray) else combined


def _coded(numbers: pa.Array, values: pa.Array, kind: pa.DataType) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(numbers.cast(kind.index_type), values, ordered=kind.ordered)


def _holds_dictionaries(kind: pa.DataType) -> bool:
    """Return whether lists or structs of a type have dictionaries in them."""
    inner = [kind.field(place).type for place in range(kind.num_fields)] if pa.types.is_nested(kind) else []
    return any(pa.types.is_dictionary(one) or _holds_dictionaries(one) for one in inner)


def _rebuilt(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return nested values made anew, so that their dictionaries hold what occurs."""
    return pa.chunked_array([pa.array(chunk.to_pylist(), column.type) for chunk in column.chunks], column.type)
