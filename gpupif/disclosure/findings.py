"""What is found in a part of a table in which equivalence classes lie whole, and in several parts together.

A table in memory is one part; one of files or of Dask is cut into parts by its quasi-identifiers. What is found depends
on how often each distinct row occurs, not on the cut: classes by size are counted, extremes are those of extremes, and
the most homogeneous classes the first of the first.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ..utils.information import Sizes
from .estimated import EstimatedSums
from .homogeneity import Homogeneous
from .households import HouseholdSums


@dataclass(frozen=True)
class Findings:
    """What is found of one sensitive attribute.

    sizes: how many rows are in equivalence classes of each size, but of those of one row. extremes: measure of its
    cells to the lowest and highest. homogeneous: None where it was not looked for; estimated: None without weights.
    Of the column of households, which is none, only households.
    """

    sizes: Sizes
    extremes: Mapping[str, tuple[float, float]]
    homogeneous: Homogeneous | None = None
    estimated: EstimatedSums | None = None
    households: HouseholdSums | None = None

    @classmethod
    def total(cls, parts: list[Findings], groups: int) -> Findings:
        """What is found in several parts together; groups: how many homogeneous classes are wanted."""
        extremes = {
            name: (min(part.extremes[name][0] for part in parts), max(part.extremes[name][1] for part in parts))
            for name in parts[0].extremes
        }
        homogeneous = [part.homogeneous for part in parts if part.homogeneous is not None]
        estimated = [part.estimated for part in parts if part.estimated is not None]
        households = [part.households for part in parts if part.households is not None]
        return cls(
            Sizes.total(part.sizes for part in parts),
            extremes,
            Homogeneous.total(homogeneous, groups) if homogeneous else None,
            EstimatedSums.total(estimated) if estimated else None,
            HouseholdSums.total(households) if households else None,
        )


# By the place of the attribute among the columns.
ByAttribute = dict[int, Findings]


def combine(groups: int, *parts: ByAttribute) -> ByAttribute:
    """What is found in several parts together; not all need have all attributes."""
    attributes = sorted({attribute for part in parts for attribute in part})
    return {
        attribute: Findings.total([part[attribute] for part in parts if attribute in part], groups)
        for attribute in attributes
    }


class Stopwatch:
    """Wall time by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Take the time of a stage, or of another piece of it."""
        started = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
