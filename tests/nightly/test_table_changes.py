"""How the columns of a table differ from those of another run."""

from __future__ import annotations

from gpupif.nightly.table.table_changes import SchemaChange


def test_the_schema_change_lists_new_gone_and_retyped_columns():
    change = SchemaChange.between(
        {"a": "int64", "b": "string", "c": "bool"}, {"c": "double", "d": "string", "a": "int64"}
    )
    assert change == SchemaChange(("d",), ("b",), {"c": ("bool", "double")})
    assert str(change) == "new 'd'; gone 'b'; 'c' was bool, is double"
    assert change


def test_a_column_without_values_has_no_type_to_change():
    assert not SchemaChange.between({"a": "null", "b": "string"}, {"a": "int64", "b": "null"})


def test_another_order_of_columns_is_no_schema_change():
    assert not SchemaChange.between({"a": "int64", "b": "string"}, {"b": "string", "a": "int64"})
