"""Tables of pyarrow, and columns of Arrow that replace other columns."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..encoding.encode import check_arrow
from ..encoding.plain_values import family
from ..errors import ColumnTypeError, InputError
from ..io.base import decode, pandas_index_names
from ..io.documents import parse_json
from ..rows.keys import code_type
from .base import Frame
from .replacement import Replacement, categories_of

# The key of pandas' note in a schema, and the entries of the note that are kept. Other entries may hold values.
PANDAS, KEPT = b"pandas", ("column_indexes", "creator", "pandas_version")


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
        """See `Frame`; raises InputError for damaged data."""
        column = self._table.column(position)
        check_arrow(self.names[position], column)
        return column

    def orders(self) -> dict[Hashable, list[Any]]:
        orders: dict[Hashable, list[Any]] = {}
        for field in self._table.schema:
            if pa.types.is_dictionary(field.type) and field.type.ordered:
                chunks = self._table.column(field.name).chunks
                if chunks and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks):
                    orders[field.name] = chunks[0].dictionary.to_pylist()
        return orders

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
        """See `Frame`; raises InputError for damaged data."""
        for position in range(len(self.names)):
            self.column(position)
        return decode(self._table)

    def replaced(
        self, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
    ) -> pa.Table:
        return replaced_table(self._table, names, columns, kept)


def arrow_table(values: npt.NDArray[Any], names: Sequence[Hashable]) -> pa.Table:
    """Return a table whose columns are the rows of an array (columns, rows), without a copy."""
    return pa.table({str(name): pa.array(column) for name, column in zip(names, values, strict=True)})


def replaced_table(
    table: pa.Table, names: Sequence[Hashable], columns: Mapping[Hashable, Replacement], kept: Any | None = None
) -> pa.Table:
    """Return a table in which some columns are replaced, see `Frame.replaced`.

    Metadata of the table and of replaced columns are removed, except pandas' note of the other columns. Metadata may
    hold values of persons: bounds, histograms, areas on a map. Dictionaries keep only the values that occur.
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
    """Return pandas' note without the columns that are changed or removed; None if there is no note.

    all_rows: whether the table still has all rows. Only then an index of pandas that counts rows is still right.
    """
    try:
        note = parse_json((schema.metadata or {})[PANDAS])
        index = [
            level for level in note["index_columns"] if (level not in changed if isinstance(level, str) else all_rows)
        ]
        columns = [
            {**column, "metadata": _without_category_count(column.get("metadata"))}
            for column in note["columns"]
            if column.get("field_name", column.get("name")) not in changed and column.get("name") not in changed
        ]
        kept = {name: note[name] for name in KEPT if name in note} | {"index_columns": index, "columns": columns}
    except (KeyError, ValueError, TypeError, AttributeError):
        return None
    return {PANDAS: json.dumps(kept).encode()}


def _without_category_count(note: Any) -> Any:
    """Return pandas' note of a column without the number of its categories."""
    return {key: value for key, value in note.items() if key != "num_categories"} if isinstance(note, dict) else note


def other_type(labels: pa.DataType, before: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """Return the type of a column whose labels replace other values.

    labels: the type of the new labels. before: the type of the old values. kind: the type of the old column.
    """
    if pa.types.is_dictionary(kind):
        same = family(labels) == family(kind.value_type)
        return pa.dictionary(pa.int32(), kind.value_type if same else labels)
    if pa.types.is_null(labels) or family(labels) == family(before):
        return kind
    return pa.dictionary(pa.int32(), labels) if family(labels) == "text" else labels


def other_column(column: Replacement, kind: pa.DataType) -> pa.Array:
    """Return the column as an array. kind: the type of the column that it replaces."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    target = other_type(column.labels.type, column.before, kind)
    if not pa.types.is_dictionary(target):
        labels = in_type(column.labels, target)
        if pa.types.is_null(labels.type) or not len(labels):
            return pa.nulls(len(column.codes), target)
        return labels.take(pa.array(column.row_places(code_type(len(labels) + 1)), mask=column.missing))
    categories = categories_of(column)
    values = in_type(categories.values, target.value_type)
    numbers = pa.array(categories.numbers.astype(np.int32, copy=False), mask=categories.numbers < 0)
    return pa.DictionaryArray.from_arrays(numbers, values)


def in_type(labels: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return labels in a type of their family, or in their own type if they do not fit into it."""
    if labels.type == kind:
        return labels
    try:
        return labels.cast(kind, safe=not pa.types.is_floating(kind))
    except pa.ArrowInvalid:
        return labels
    except pa.ArrowNotImplementedError as error:
        raise ColumnTypeError("", f"{labels.type} in place of {kind}") from error


def without_unused(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dictionaries hold only values that occur, in their old order.

    A column without dictionaries is returned as it is.
    """
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
    """Return a dictionary column with another dictionary. values: the new dictionary, with all values that occur."""
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
    return any(pa.types.is_dictionary(field) or _holds_dictionaries(field) for field in inner)


def _rebuilt(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a copy of nested values whose dictionaries hold only values that occur."""
    return pa.chunked_array([pa.array(chunk.to_pylist(), column.type) for chunk in column.chunks], column.type)
