"""The oracle of cells that are asked for: all scores of a table looked through, one cell after the other."""

from __future__ import annotations

import math

import pandas as pd


def asked_cells(table, columns, scores, holds=None, top=None, risk=None):
    """The cells of a table, a pandas frame, that are asked for, as a frame.

    columns: that were scored. scores: all of them, columns named <score>_<column>. holds: whether a cell, its scores by
    name, is asked for; None: each is. top: how many of the riskiest; risk: of a cell.
    """
    names = [name.removesuffix(f"_{columns[0]}") for name in scores if name.endswith(f"_{columns[0]}")]
    found = []
    for row in range(len(table)):
        for column in columns:
            cell = {name: scores[f"{name}_{column}"].iloc[row] for name in names}
            if holds is None or holds(cell):
                value = table[column].iloc[row]
                found.append({"row": row, "column": column, "value": None if pd.isna(value) else str(value)} | cell)
    if top is not None:
        # Of equal ones the earlier row, then the earlier column.
        found = sorted((cell for cell in found if not math.isnan(risk(cell))), key=risk, reverse=True)[:top]
    return pd.DataFrame(found, columns=["row", "column", "value", *names])
