"""The oracle of microaggregation: all ways to cut the different numbers into groups, in ascending order."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise


def squares(numbers, counts):
    """The sum of squared differences from the mean, exactly."""
    rows = sum(counts[number] for number in numbers)
    mean = sum(Fraction(number) * counts[number] for number in numbers) / rows
    return sum((Fraction(number) - mean) ** 2 * counts[number] for number in numbers)


def all_groupings(values, k):
    """Each list of groups of different numbers in which every group has k rows or more."""
    counts = Counter(values)
    different = sorted(counts)
    for cuts in range(len(different)):
        for places in combinations(range(1, len(different)), cuts):
            edges = [0, *places, len(different)]
            groups = [different[a:b] for a, b in pairwise(edges)]
            if all(sum(counts[number] for number in group) >= k for group in groups):
                yield groups


def least_squares(values, k):
    """The least sum of squares within groups of at least k rows."""
    counts = Counter(values)
    return min(sum(squares(group, counts) for group in groups) for groups in all_groupings(values, k))
