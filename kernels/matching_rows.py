"""Rows that match where a missing value matches every value, counted while cells are suppressed and restored.

Rows have codes (rows, columns), -1 where a value is missing. The columns that are compared are the bits of a number.
Rows that may match are looked up by one column: `order` has, by column, all rows by the value that they had at first,
those of value v from starts[column, v] to starts[column, v + 1] - 1; `holes` the rows that lack the column, or did.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.jit import kernel, subroutine

MISSING = -1


@subroutine
def has(bits, column):
    """Whether a column is among the bits."""
    return (bits >> uint64(column)) & uint64(1) == uint64(1)


@subroutine
def without(bits, column):
    """The bits but that of a column."""
    return bits & ~(uint64(1) << uint64(column))


@subroutine
def match(codes, a, b, bits):
    """Whether two rows agree on each of these columns that neither lacks."""
    for column in range(codes.shape[1]):
        if has(bits, column):
            x, y = codes[a, column], codes[b, column]
            if x != y and x != MISSING and y != MISSING:
                return False
    return True


@subroutine
def list_matches(codes, row, bits, index, most, found):
    """Put other rows that match one into `found`, at most so many; returns how many."""
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
                found[number] = other
                number += 1
        return number
    value = codes[row, best]
    for place in range(starts[best, value], starts[best, value + 1]):
        if number == most:
            return number
        other = int64(order[best, place])
        # Those that lack it now are among the others.
        if other != row and codes[other, best] == value and match(codes, row, other, bits):
            found[number] = other
            number += 1
    for place in range(lacking[best]):
        if number == most:
            return number
        other = int64(holes[best, place])
        if other != row and codes[other, best] == MISSING and match(codes, row, other, bits):
            found[number] = other
            number += 1
    return number


@subroutine
def differ(codes, a, b, bits):
    """Whether two rows differ on these columns, or lack others of them."""
    found = False
    for column in range(codes.shape[1]):
        found = found or (has(bits, column) and codes[a, column] != codes[b, column])
    return found


@subroutine
def is_complete(codes, row, bits):
    """Whether a row lacks none of these columns."""
    complete = True
    for column in range(codes.shape[1]):
        complete = complete and not (has(bits, column) and codes[row, column] == MISSING)
    return complete


@kernel
def add_matches(codes, seen, index, counts, found):
    """Add to counts[t, row], the rows that are equal to it on the columns seen[t], those that match it otherwise."""
    for t in range(seen.size):
        for row in range(len(codes)):
            if is_complete(codes, row, seen[t]):
                continue
            for j in range(list_matches(codes, row, seen[t], index, len(codes), found)):
                other = found[j]
                if differ(codes, row, other, seen[t]):
                    counts[t, row] += 1
                    # Of two that lack some each has its turn.
                    counts[t, other] += is_complete(codes, other, seen[t])


@kernel
def suppress_where(rows, columns, t, limits, codes, seen, index, counts, found):
    """Suppress columns of those of some rows that match too few on seen[t], and enough without these columns.

    columns: as bits. limits: by t the fewest rows that are to match. Returns how many cells were suppressed.
    """
    suppressed = 0
    _, _, holes, lacking = index
    for i in range(rows.size):
        row = rows[i]
        if counts[t, row] >= limits[t]:
            continue
        if list_matches(codes, row, seen[t] & ~columns, index, limits[t] - 1, found) < limits[t] - 1:
            continue
        for column in range(codes.shape[1]):
            if has(columns & seen[t], column) and codes[row, column] != MISSING:
                for s in range(seen.size):
                    if has(seen[s], column):
                        number = list_matches(codes, row, without(seen[s], column), index, len(codes), found)
                        for j in range(number):
                            value = codes[found[j], column]
                            if value != MISSING and value != codes[row, column]:
                                counts[s, found[j]] += 1
                                counts[s, row] += 1
                codes[row, column] = MISSING
                holes[column, lacking[column]] = row
                lacking[column] += 1
                suppressed += 1
    return suppressed


@kernel
def restore_values(cells, limits, codes, seen, index, counts, found, restored):
    """Put values back, in the order of the cells, where no row matches too few then; returns how many were.

    cells: (rows, columns, codes) of each.
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
                    number = list_matches(codes, row, without(seen[s], column), index, len(codes), found)
                    lost = 0
                    for j in range(number):
                        other = codes[found[j], column]
                        if other != MISSING and other != value:
                            lost += 1
                            if apply == 1:
                                counts[s, found[j]] -= 1
                            elif counts[s, found[j]] <= limits[s]:
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
