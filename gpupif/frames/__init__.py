"""Kinds of tables: one adapter each, from a frame to columns and from scores to a frame of the same kind."""
