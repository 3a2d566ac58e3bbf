"""Optimal microaggregation of one column: groups of at least k rows with the least sum of squares within groups."""

from __future__ import annotations

from numba import float64, int64

from gpupif.kernels.jit import kernel


@kernel
def best_groups(numbers, counts, k, costs, firsts):
    """Find the cheapest groups of the numbers before j, for each j.

    costs[j] gets their sum of squares, firsts[j] the first number of their last group. numbers: ascending and distinct.
    counts: the rows with each number. costs, firsts: one longer than `numbers`. Before the call, costs[0] is 0 and all
    other costs are infinite; they stay infinite if fewer than k rows have the numbers before.

    The method is the shortest path of Hansen and Mukherjee (2003), with distinct numbers for rows. A group that can be
    split into two groups of k rows or more is never better than the two, so only short groups are tried.
    """
    for stop in range(1, numbers.size + 1):
        rows = int64(0)
        enough = int64(0)
        mean = 0.0
        squares = 0.0
        for back in range(stop):
            first = stop - 1 - back
            rows += counts[first]
            if enough > 0 and rows - enough >= k:
                break
            if enough == 0 and rows >= k:
                enough = rows
            off = numbers[first] - mean
            step = off * (float64(counts[first]) / float64(rows))
            mean += step
            squares += off * (float64(rows - counts[first]) * step)
            if enough > 0 and costs[first] + squares < costs[stop]:
                costs[stop] = costs[first] + squares
                firsts[stop] = first


@kernel
def mdav_groups(points, k, left, distances, centre, nearest, groups):
    """Find the groups of k to 2 k - 1 rows by MDAV; groups[row] gets the number of the row's group.

    points: float64 (columns, rows), overwritten. left: int64 (rows,), overwritten. At the call it holds 0, 1, 2, ...
    distances: float64 (rows,), centre: float64 (columns,), nearest: int64 (k,), overwritten. groups: int64 (rows,).

    The method is of Domingo-Ferrer and Mateo-Sanz (2002). Of rows that are equally far from a point, the earlier row
    counts as nearer. So the farthest row is never among the k nearest ones.
    """
    columns, rows = points.shape
    group = int64(0)
    while rows >= 2 * k:
        for column in range(columns):
            total = 0.0
            for row in range(rows):
                total += points[column, row]
            centre[column] = total / float64(rows)
        # A pass without a group finds the row that is farthest from the centre; further passes form one group each.
        passes = 3 if rows >= 3 * k else 2
        for number in range(passes):
            for row in range(rows):
                distances[row] = 0.0
            for column in range(columns):
                middle = centre[column]
                for row in range(rows):
                    off = points[column, row] - middle
                    distances[row] += off * off
            far = 0
            for row in range(rows):
                if distances[row] >= distances[far]:
                    far = row
            # The next centre is read before the rows of this group are removed. They never include row `far`.
            for column in range(columns):
                centre[column] = points[column, far]
            if number > 0:
                taken = 0
                for row in range(rows):
                    if taken < k or distances[row] < distances[nearest[k - 1]]:
                        place = taken if taken < k else k - 1
                        while place > 0 and distances[row] < distances[nearest[place - 1]]:
                            nearest[place] = nearest[place - 1]
                            place -= 1
                        nearest[place] = row
                        taken = min(taken + 1, k)
                for place in range(k):
                    groups[left[nearest[place]]] = group
                    left[nearest[place]] = -1
                group += 1
                after = 0
                for row in range(rows):
                    if left[row] >= 0:
                        if after < row:
                            left[after] = left[row]
                            for column in range(columns):
                                points[column, after] = points[column, row]
                        after += 1
                rows = after
    for row in range(rows):
        groups[left[row]] = group
