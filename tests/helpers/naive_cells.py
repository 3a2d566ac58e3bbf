"""The oracle of cells that are asked for: all scores of a table looked through, one cell after the other."""

from __future__ import annotations

import math

import pandas as pd

from tests.helpers.naive_attack import LOW_IS_RISKY


def cells(table, columns, scores, holds=lambda cell: True, top=None, by=None):
    """The cells of a table, a pandas frame, as a frame.

    columns: that were scored. scores: all of them, a frame with columns <score>_<column>. holds: whether a cell, its
    scores by name, is asked for. top: how many of the riskiest; by: the score that says so, a function of a cell.
    """
    names = list(dict.fromkeys(name.removesuffix(f"_{column}") for name in scores for column in columns if name.endswith(f"_{column}")))
    found = []
    for row in range(len(table)):
        for column in columns:
            cell = {name: scores[f"{name}_{column}"].iloc[row] for name in names}
            if holds(cell):
                value = table[column].iloc[row]
                found.append({"row": row, "column": column, "value": None if pd.isna(value) else str(value)} | cell)
    if top is not None:
        known = [cell for cell in found if not math.isnan(by(cell))]
        found = sorted(known, key=by, reverse=True)[:top]
    return pd.DataFrame(found, columns=["row", "column", "value", *names])
