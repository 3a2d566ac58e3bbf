"""Adapters of all kinds of tables: from a table to its columns, and from scores to a table of the same kind."""
