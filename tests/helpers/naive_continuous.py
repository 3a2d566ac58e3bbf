"""The oracle for columns of numbers in comparisons: every figure from its definition, row by row."""

from __future__ import annotations

import math

import numpy as np


def known(values):
    """The values that are there."""
    return [value for value in values if value is not None]


def mean(values):
    """The mean."""
    return math.fsum(values) / len(values)


def deviation(values):
    """The standard deviation, with divisor n - 1."""
    return math.sqrt(math.fsum((value - mean(values)) ** 2 for value in values) / (len(values) - 1))


def ranks(values):
    """The mean rank of each value among all values that are there, from 1."""
    there = known(values)
    return [
        None
        if value is None
        else sum(other < value for other in there) + (sum(other == value for other in there) + 1) / 2
        for value in values
    ]


def cells(before, after):
    """By column the pairs of values of the rows with both."""
    return {
        name: [(x, y) for x, y in zip(before[name], after[name], strict=True) if x is not None and y is not None]
        for name in before
    }


def il1s(before, after):
    """By column the mean of abs(x - x') / (sqrt(2) s), and over all cells."""
    lost = {
        name: [abs(x - y) / (math.sqrt(2) * deviation(known(before[name]))) for x, y in pairs]
        for name, pairs in cells(before, after).items()
    }
    return {name: mean(own) for name, own in lost.items()}, mean([value for own in lost.values() for value in own])


def within_deviations(before, after, width):
    """By column and row whether x is near x'; None without either."""
    return {
        name: [
            None if x is None or y is None else y - width * s <= x <= y + width * s
            for x, y in zip(before[name], after[name], strict=True)
        ]
        for name in before
        for s in [deviation(known(after[name]))]
    }


def within_ranks(before, after, width):
    """By column and row whether x lies among the values after whose ranks are near the rank of x'."""
    found = {}
    for name in before:
        own, count = ranks(after[name]), len(known(after[name]))
        found[name] = []
        for x, y, rank in zip(before[name], after[name], own, strict=True):
            near = [
                value
                for value, other in zip(after[name], own, strict=True)
                if None not in (other, rank) and abs(other - rank) <= width * count + 1e-12
            ]
            found[name].append(None if x is None or y is None else min(near) <= x <= max(near))
    return found


def shares(within):
    """The share of the cells of each column that are within, and of the rows of which all cells are."""
    rows = [known(row) for row in zip(*within.values(), strict=True)]
    rows = [all(row) for row in rows if row]
    return {name: mean(known(own)) for name, own in within.items()}, mean(rows)


def complete(table, other=None):
    """The rows of a table with all values, also of another table."""
    rows = list(zip(*table.values(), strict=True))
    others = rows if other is None else list(zip(*other.values(), strict=True))
    return [row for row, more in zip(rows, others, strict=True) if None not in (*row, *more)]


def covariances(table):
    """The covariances of the rows with all values, with divisor n - 1."""
    rows = complete(table)
    centre = [mean(column) for column in zip(*rows, strict=True)]
    return [
        [
            math.fsum((row[i] - centre[i]) * (row[j] - centre[j]) for row in rows) / (len(rows) - 1)
            for j in range(len(centre))
        ]
        for i in range(len(centre))
    ]


def correlations(table):
    """The correlations of the rows with all values."""
    matrix = covariances(table)
    size = range(len(matrix))
    return [[matrix[i][j] / math.sqrt(matrix[i][i] * matrix[j][j]) for j in size] for i in size]


def eigenvalues(before, after):
    """The sum of abs(e - e') / e."""
    own, new = (sorted(np.linalg.eigvals(np.array(correlations(table))).real)[::-1] for table in (before, after))
    return sum(abs(one - other) / one for one, other in zip(own, new, strict=True))


def coefficients(table, name):
    """By other column the coefficient of the least-squares fit of a column on the others and a constant."""
    names, rows = list(table), complete(table)
    others = [other for other in names if other != name]
    matrix = np.array([[1, *(row[names.index(other)] for other in others)] for row in rows], float)
    fitted = np.linalg.lstsq(matrix, np.array([row[names.index(name)] for row in rows], float), rcond=None)[0]
    return dict(zip(others, fitted[1:], strict=True))


def linked(points, others, scales):
    """The share of points that are nearest to their own one of the others. scales: of differences, by column."""
    found = 0.0
    for place, point in enumerate(points):
        distances = [
            sum(((one - two) * own) ** 2 for one, two, own in zip(point, other, scales, strict=True))
            for other in others
        ]
        least = min(distances)
        found += (distances[place] == least) / distances.count(least)
    return found / len(points)


def linked_by_distance(before, after):
    """The share of rows after that are nearest to their own row before, both over the deviations before."""
    scales = [1 / deviation(known(values)) for values in before.values()]
    return linked(complete(after, before), complete(before, after), scales)


def linked_by_rank(before, after):
    """The share of rows after that are nearest to their own row before, by their ranks."""
    ranked = [{name: ranks(values) for name, values in table.items()} for table in (before, after)]
    return linked(complete(ranked[1], ranked[0]), complete(ranked[0], ranked[1]), [1] * len(before))


def weighted(values, weights):
    """The weighted total, mean, and least number with half of the people up to it."""
    pairs = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if value is not None)
    total, people = math.fsum(value * weight for value, weight in pairs), math.fsum(weight for _, weight in pairs)
    for value, _ in pairs:
        if math.fsum(weight for other, weight in pairs if other <= value) >= people / 2:
            return total, total / people, value
    raise AssertionError("no value has half of the people up to it")
