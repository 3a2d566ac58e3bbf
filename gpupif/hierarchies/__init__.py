"""Hierarchies of values: which values of a column are one group, level by level."""
