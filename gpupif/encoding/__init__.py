"""Columns as codes: every value a number, exactly, whatever its type."""
