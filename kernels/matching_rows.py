"""Number of rows that match each row, counted while cells are suppressed and restored; missing values match all values.

Data of the kernels:
codes: (rows, columns). The codes of the values, -1 (`MISSING`) for a missing value.
bits: a set of columns, as the bits of a number.
seen: (criteria). For each criterion, the columns on which rows are compared, as bits.
counts: (criteria, rows). How many rows match each row on the columns of each criterion.
index: (order, starts, holes, lacking), by which rows that may match are looked up in one column. order[column]: all
    rows, sorted by the value that they had at first; rows with value v are at places starts[column, v] to
    starts[column, v + 1] - 1. holes[column]: the lacking[column] rows whose value was suppressed, now or before.
matching: working memory, a number for each row.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel, subroutine

MISSING = -1


@subroutine
def has(bits, column):
    """Return whether a column is in a set of columns."""
    return (bits >> uint64(column)) & uint64(1) == uint64(1)


@subroutine
def without(bits, column):
    """Return a set of columns without one column."""
    return bits & ~(uint64(1) << uint64(column))


@subroutine
def match(codes, a, b, bits):
    """Return whether rows a and b match: on each of the columns they have equal values, or one value is missing."""
    for column in range(codes.shape[1]):
        if has(bits, column):
            x, y = codes[a, column], codes[b, column]
            if x != y and x != MISSING and y != MISSING:
                return False
    return True


@subroutine
def list_matches(codes, row, bits, index, most, matching):
    """Put the other rows that match `row` into `matching`, at most `most` of them. Return how many they are."""
    order, starts, holes, lacking = index
    best, least = -1, len(codes)
    for column in range(codes.shape[1]):
        if has(bits, column) and codes[row, column] != MISSING:
            value = codes[row, column]
            rows = starts[column, value + 1] - starts[column, value] + lacking[column]
            if rows < least:
                best, least = column, rows
    number = 0
    if best < 0:
        for other in range(len(codes)):
            if other != row and number < most and match(codes, row, other, bits):
                matching[number] = other
                number += 1
        return number
    value = codes[row, best]
    for place in range(starts[best, value], starts[best, value + 1]):
        if number == most:
            return number
        other = int64(order[best, place])
        # Rows whose value was suppressed since are listed in `holes`.
        if other != row and codes[other, best] == value and match(codes, row, other, bits):
            matching[number] = other
            number += 1
    for place in range(lacking[best]):
        if number == most:
            return number
        other = int64(holes[best, place])
        if other != row and codes[other, best] == MISSING and match(codes, row, other, bits):
            matching[number] = other
            number += 1
    return number


@subroutine
def differ(codes, a, b, bits):
    """Return whether rows a and b differ in any of the columns; a missing value equals missing values only."""
    different = False
    for column in range(codes.shape[1]):
        different = different or (has(bits, column) and codes[a, column] != codes[b, column])
    return different


@subroutine
def is_complete(codes, row, bits):
    """Return whether a row has a value in each of the columns."""
    complete = True
    for column in range(codes.shape[1]):
        complete = complete and not (has(bits, column) and codes[row, column] == MISSING)
    return complete


@kernel
def add_matches(codes, seen, index, counts, matching):
    """Add to counts[t, row] the rows that match the row without being equal to it on the columns seen[t].

    Before, counts[t, row] is the number of rows that are equal to the row on these columns.
    """
    for t in range(seen.size):
        for row in range(len(codes)):
            if is_complete(codes, row, seen[t]):
                continue
            for j in range(list_matches(codes, row, seen[t], index, len(codes), matching)):
                other = matching[j]
                if differ(codes, row, other, seen[t]):
                    counts[t, row] += 1
                    # An incomplete row is counted when its own turn comes.
                    counts[t, other] += is_complete(codes, other, seen[t])


@kernel
def suppress_where(rows, columns, t, limits, codes, seen, index, counts, matching):
    """Suppress cells of rows that too few rows match on seen[t], if enough rows match without these cells.

    columns: the columns to suppress, as bits. limits: for each criterion, how many rows have to match a row, itself
    included. Return how many cells were suppressed.
    """
    suppressed = 0
    _, _, holes, lacking = index
    for i in range(rows.size):
        row = rows[i]
        if counts[t, row] >= limits[t]:
            continue
        if list_matches(codes, row, seen[t] & ~columns, index, limits[t] - 1, matching) < limits[t] - 1:
            continue
        for column in range(codes.shape[1]):
            if has(columns & seen[t], column) and codes[row, column] != MISSING:
                for s in range(seen.size):
                    if has(seen[s], column):
                        number = list_matches(codes, row, without(seen[s], column), index, len(codes), matching)
                        for j in range(number):
                            value = codes[matching[j], column]
                            if value != MISSING and value != codes[row, column]:
                                counts[s, matching[j]] += 1
                                counts[s, row] += 1
                codes[row, column] = MISSING
                holes[column, lacking[column]] = row
                lacking[column] += 1
                suppressed += 1
    return suppressed


@kernel
def restore_values(cells, limits, codes, seen, index, counts, matching, restored):
    """Restore suppressed cells, in their order; skip a cell if too few rows would match some row.

    cells: (rows, columns, codes). The row, the column and the original value of each cell. restored: whether each cell
    is restored, before and after the call. Return how many cells were restored.
    """
    rows, columns, values = cells
    total = 0
    for i in range(rows.size):
        if restored[i]:
            continue
        row, column, value = rows[i], columns[i], values[i]
        allowed = True
        for apply in range(2):
            for s in range(seen.size):
                if allowed and has(seen[s], column):
                    number = list_matches(codes, row, without(seen[s], column), index, len(codes), matching)
                    lost = 0
                    for j in range(number):
                        other = codes[matching[j], column]
                        if other != MISSING and other != value:
                            lost += 1
                            if apply == 1:
                                counts[s, matching[j]] -= 1
                            elif counts[s, matching[j]] <= limits[s]:
                                allowed = False
                                break
                    if apply == 1:
                        counts[s, row] -= lost
                    elif counts[s, row] - lost < limits[s]:
                        allowed = False
        if allowed:
            codes[row, column] = value
            restored[i] = True
            total += 1
    return total
