"""The oracle of suppression: how many rows are equal to a row, or match it, from the definition."""

from __future__ import annotations

from itertools import product

MISSING = None


def same(a, b, columns):
    """Whether two rows are equal on some columns, a missing value being a value of its own."""
    return all(a[column] == b[column] for column in columns)


def match(a, b, columns):
    """Whether they match on some columns, a missing value matching every value."""
    return all(a[column] == b[column] or MISSING in (a[column], b[column]) for column in columns)


def smallest(rows, columns, missing="category"):
    """Of all rows the fewest that are equal to one, or match it."""
    agree = match if missing == "wildcard" else same
    return min(sum(agree(a, b, columns) for b in rows) for a in rows)


def holds(rows, criteria, missing="category"):
    """Whether all criteria, (columns, k), hold of some rows."""
    return all(smallest(rows, columns, missing) >= k for columns, k in criteria)


def cells_that_can_be_restored(before, after, criteria, missing="category"):
    """The cells, (row, column), that may have their value again by themselves."""
    found = []
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        for column, value in enumerate(old):
            if value != new[column]:
                rows = [list(row) for row in after]
                rows[i][column] = value
                if holds(rows, criteria, missing):
                    found.append((i, column))
    return found


def fewest_cells(rows, criteria, columns, missing="category"):
    """How many cells of some columns have to be suppressed at least, by trying all."""
    cells = [(i, column) for i in range(len(rows)) for column in columns if rows[i][column] is not MISSING]
    best = len(cells)
    for chosen in product((False, True), repeat=len(cells)):
        if sum(chosen) < best:
            tried = [list(row) for row in rows]
            for (i, column), one in zip(cells, chosen, strict=True):
                if one:
                    tried[i][column] = MISSING
            if holds(tried, criteria, missing):
                best = sum(chosen)
    return best
