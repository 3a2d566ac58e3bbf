"""What a summary says of scores in figures."""

from __future__ import annotations

# Of measures of rows, what is said of a column.
ROW_MEASURES = {"reidentification_risk": ("mean", "max"), "unique": ("mean",), "class_size": ("min",)}
