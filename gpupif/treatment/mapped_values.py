"""The values of a column after a step that looks at values alone, from those before it."""

from __future__ import annotations

import numpy as np

from .base import ColumnValues, PieceColumn, ValueMapStep
from .columns import column_values
from .plain_piece import ValuesPiece


def mapped_values(step: ValueMapStep, values: ColumnValues) -> ColumnValues:
    """What a table's values become: no row has to be looked at."""
    size = len(values.labels)
    piece = ValuesPiece(step.column, PieceColumn(np.arange(size + 1), values.labels))
    step.apply(piece)
    column = piece[step.column]
    counts = np.zeros(len(column.labels) + 1, np.int64)
    np.add.at(counts, column.codes, np.append(values.counts, values.missing))
    return column_values(column.labels, counts[:-1], int(counts[-1]))
