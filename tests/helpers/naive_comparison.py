"""The oracle for comparisons: every figure from its definition, row by row."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

from tests.helpers import naive


def entropy(values):
    """H(X) in bits."""
    return naive.entropy(values)


def conditional(values, given):
    """H(X | Y) in bits."""
    return entropy(list(zip(values, given, strict=True))) - entropy(given)


def mutual(one, other):
    """I(X; Y) in bits."""
    return entropy(one) + entropy(other) - entropy(list(zip(one, other, strict=True)))


def variation(one, other):
    """Total variation of the distributions of two lists of as many values."""
    first, second = Counter(one), Counter(other)
    return sum(abs(first[value] - second[value]) for value in first | second) / (2 * len(one))


def ordered_distance(one, other):
    """The earth mover's distance of two lists of numbers, None last, over places, as a share of the longest."""
    values = sorted(set(one) | set(other), key=lambda value: (value is None, value or 0))
    first, second, moved, total = Counter(one), Counter(other), 0, 0
    for value in values[:-1]:
        moved += first[value] - second[value]
        total += abs(moved)
    return total / (len(one) * max(1, len(values) - 1))


def there(before, after, away=()):
    """By row whether a cell is there in both tables; in a column that is empty after all cells count as there."""
    lost = any(value is not None for value in before) and all(value is None for value in after)
    return [
        row not in away and (lost or old is None or new is not None)
        for row, (old, new) in enumerate(zip(before, after, strict=True))
    ]


def some(values, rows):
    """The values of the rows that are marked."""
    return [value for value, marked in zip(values, rows, strict=True) if marked]


def is_function(before, after):
    """Whether each value stands for one value after, in the rows where the cell is there."""
    rows = there(before, after)
    return len(set(zip(some(before, rows), some(after, rows), strict=True))) == len(set(some(before, rows)))


def bits_of_cells(values):
    """By cell the bits -log2 p, where p is the share of its value."""
    counts = Counter(values)
    return [-math.log2(counts[value] / len(values)) for value in values]


def lost_bits(before, after, detail, perturbed, numbers=False):
    """The bits of cells that coarser values, suppressed cells and changed values lose."""
    seen, bits, group_bits = there(before, after), bits_of_cells(before), bits_of_cells(detail)
    if perturbed and not numbers:
        gone = math.fsum(one for one, row in zip(bits, seen, strict=True) if not row)
        return 0.0, gone, sum(seen) * conditional(some(before, seen), some(after, seen))
    coarser = math.fsum(bits) - math.fsum(group_bits)
    gone = math.fsum(one for one, row in zip(group_bits, seen, strict=True) if not row)
    sources = {value: {old for old, new in zip(before, detail, strict=True) if new == value} for value in detail}
    changed = [
        row and old != new and (perturbed or len(sources[own]) == 1)
        for row, old, new, own in zip(seen, before, after, detail, strict=True)
    ]
    return coarser, gone, math.fsum(some(group_bits, changed)) if numbers else 0.0


def nonuniform_loss(before, after, detail, perturbed, away=()):
    """ARX's non-uniform entropy: generalisation of all rows, and the entropy of what was suppressed, in bits."""
    rows = there(before, after, away)
    gone = [not one for one in rows]
    if perturbed:
        lost, suppressed = sum(rows) * conditional(some(before, rows), some(after, rows)), some(before, gone)
    else:
        lost, suppressed = len(before) * conditional(before, detail), some(detail, gone)
    return lost + len(suppressed) * entropy(suppressed)


def pairs(before, after, detail, away=()):
    """By pair of columns: mutual information before and after in the rows that have both cells, total variation of what
    detail and after have.
    """
    found = {}
    for one, other in combinations(before, 2):
        joint = [list(zip(table[one], table[other], strict=True)) for table in (detail, after)]
        rows = [
            all(both) for both in zip(*(there(before[name], after[name], away) for name in (one, other)), strict=True)
        ]
        found[one, other] = (
            mutual(some(before[one], rows), some(before[other], rows)),
            mutual(some(after[one], rows), some(after[other], rows)),
            variation(*joint),
        )
    return found


def class_figures(before, after, detail, names):
    """Classes, discernibility, and that as if no row was suppressed, of quasi-identifiers."""
    rows = len(before[names[0]])

    def classes(table):
        return Counter(zip(*(table[name] for name in names), strict=True))

    nothing = (None,) * len(names)
    suppressed = [
        all(after[name][row] is None for name in after) and any(before[name][row] is not None for name in after)
        for row in range(rows)
    ]
    sizes = classes(after)
    whole = sum(size * size for key, size in sizes.items() if key != nothing or not any(suppressed))
    whole += rows * sizes[nothing] if any(suppressed) else 0
    return {
        "classes": len(sizes),
        "average_class_size": rows / len(sizes),
        "discernibility": whole,
        "discernibility_unsuppressed": sum(size * size for size in classes(detail).values()),
        "rows_suppressed": sum(suppressed),
    }


def detail_of(before, after, numbers=False):
    """The released detail of a column, by the rule that the documentation states."""
    if all(value is None for value in after):
        return [None] * len(before)
    pairs_of_rows = Counter(zip(before, after, strict=True))
    known = {
        old: {new: n for (was, new), n in pairs_of_rows.items() if was == old and new is not None} for old in before
    }
    counts = Counter(value for value in before if value is not None)
    rows = sum(counts.values())
    fewer = 2 * len({value for value in after if value is not None}) <= len(counts)
    repeated = 2 * sum(n for n in counts.values() if n > 1) >= rows
    mixed = (None, None) in pairs_of_rows and bool(known[None])
    function = all(len(found) <= 1 for found in known.values()) and not mixed and (fewer or repeated)
    released = set(after)

    if numbers and not function:
        return before

    def bring(value):
        if value is None and (None, None) in pairs_of_rows:
            return None
        if not function and value in released:
            return value
        if known[value]:
            return min(known[value], key=lambda new: (-known[value][new], new))
        return value

    return [bring(value) for value in before]


def exactly(number):
    """A number as it is written: 0.1 is a tenth."""
    return Fraction(str(number))


def linked_share(before, after, names):
    """The share of rows whose nearest row after is their own."""
    numeric = {
        name: all(isinstance(value, int | float) for value in (*before[name], *after[name]) if value is not None)
        for name in names
    }
    spans = {}
    for name in names:
        known = [value for value in (*before[name], *after[name]) if value is not None]
        spans[name] = exactly(max(known)) - exactly(min(known)) if numeric[name] and known else 0

    detail = {name: detail_of(before[name], after[name], numeric[name]) for name in names}

    def distance(row, other):
        total = 0.0
        for name in names:
            mine, theirs = detail[name][row], after[name][other]
            if mine == theirs:
                continue
            if None in (mine, theirs) or not spans[name]:
                total += 1
            else:
                total += abs(exactly(mine) - exactly(theirs)) / spans[name]
        return total

    rows = range(len(before[names[0]]))
    there = [row for row in rows if any(after[name][row] is not None for name in names)]
    found = 0.0
    for row in there:
        distances = {other: distance(row, other) for other in there}
        least = min(distances.values())
        if distances[row] == least:
            found += 1 / sum(value == least for value in distances.values())
    return found / len(rows)
