"""Measures of each pair or triple of columns, and its rarest values, from the combinations of values that occur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.kernels import rarity as kernels
from gpupif.kernels.spread import look_up

from ..encoding.column import Column, value_order
from ..engines.base import Counter
from ..engines.cpu.count_tables import Combinations
from ..utils.information import LogSum
from .count_statistics import NEARLY_NONE, CountSums, Separation, as_often_as_parts
from .set_counts import Total


@dataclass(frozen=True)
class Rare:
    """The rarest combinations of a set of columns, the first the rarest for its parts.

    times: by how much its count is less than its parts would make it. codes: of each column.
    """

    times: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    codes: list[npt.NDArray[Any]]

    @classmethod
    def together(cls, several: Sequence[Rare]) -> Rare:
        """Return the rare combinations of several partitions, in no order."""
        codes = [np.concatenate(arrays) for arrays in zip(*(each.codes for each in several), strict=True)]
        times, counts = (np.concatenate([getattr(each, name) for each in several]) for name in ("times", "counts"))
        return cls(times, counts, codes)


class SetFindings(NamedTuple):
    """The findings of one partition of the combinations of a set of columns.

    sums: over their counts; low: of those that are at most one person. different: how many there are. independent:
    whether each occurs just as often as its parts make it. rare: all that may be among the rarest of all sets.
    """

    sums: CountSums
    different: int
    independent: bool
    rare: Rare


class MeasuredSets:
    """Sets of columns measured one after the other; finds `SetFindings`s (see `base.Find`).

    columns, total: of the table (see `base.MakeFind`). top: how many rare combinations are wanted.
    """

    def __init__(self, columns: Sequence[Column], total: Total, top: int) -> None:
        self._columns = columns
        self._total = total
        self._top = top
        self._whole = CountSums.from_counts(np.array([total.units])).logs.sum_log()
        self._alone = [self._whole - CountSums.from_counts(column.counts).logs.sum_log() for column in columns]
        self._records: list[dict[str, Any]] = []
        self._rare: list[Rare] = []
        self._subsets: list[Sequence[int]] = []
        self._orders: dict[int, npt.NDArray[np.int64]] = {}
        # The highest times so far, `top` at most: combinations of lower ones are not among the rarest of all sets.
        self._highest = np.empty(0)

    def __call__(self, subset: Sequence[int], counter: Counter, place: int) -> SetFindings:
        """Return the findings of the combinations of a set that a counter has."""
        found = counter.combinations(place, ordered=False)
        counts = found.counts
        expected = np.empty(len(counts))
        look_up(self._columns[subset[0]].counts, found.codes[0], expected)
        for column, codes in zip(subset[1:], found.codes[1:], strict=True):
            kernels.expect_more(codes, self._columns[column].counts, self._total.units, expected)
        times, rare = np.empty(len(counts)), np.empty(len(counts) + 1, np.int64)
        least = self._highest.min() if len(self._highest) == self._top else -math.inf
        several, as_expected = kernels.find_rare(expected, counts, NEARLY_NONE, least, times, rare)
        independent = as_expected == len(counts) and self._independent(subset, found)
        kept = rare[:several]
        self._highest = _highest(np.concatenate([self._highest, times[kept]]), self._top)
        return SetFindings(
            CountSums.from_counts(counts, self._total.alone),
            len(counts),
            independent,
            self._rarest(subset, Rare(times[kept], counts[kept], [codes[kept] for codes in found.codes])),
        )

    def _independent(self, subset: Sequence[int], found: Combinations) -> bool:
        """Return whether each combination occurs just as often as independent parts would make it."""
        parts = [self._columns[column].counts[codes] for column, codes in zip(subset, found.codes, strict=True)]
        return as_often_as_parts(found.counts, parts, self._total.units)

    def add(self, subset: Sequence[int], parts: Sequence[SetFindings]) -> None:
        """Measure the next set, from all parts of its combinations."""
        repeated = LogSum.total(part.sums.logs for part in parts).sum_log()
        joint = max(0.0, (self._whole - repeated) / self._total.units)
        terms = [*(self._alone[column] for column in subset), repeated, -self._whole]
        shared = max(0.0, math.fsum(terms) / self._total.units)
        different = sum(part.different for part in parts)
        possible = math.prod(int((self._columns[column].counts > 0).sum()) for column in subset)
        if shared < NEARLY_NONE and different == possible and all(part.independent for part in parts):
            shared = 0.0
        alone = sum(part.sums.low for part in parts)
        self._subsets.append(subset)
        self._rare.append(self._rarest(subset, Rare.together([part.rare for part in parts])))
        self._records.append(
            {
                **{f"column_{place}": self._columns[column].name for place, column in enumerate(subset, 1)},
                "joint_entropy": joint,
                "mutual_information" if len(subset) == 2 else "total_correlation": shared,
                "unique_share": alone / self._total.units,
                "unique_rows": self._total.people(alone),
                "smallest_cohort": self._total.people(min(part.sums.lowest for part in parts if part.different)),
                "combinations": different,
                **self._ratios(different, sum(part.sums.together for part in parts)),
            }
        )

    def _ratios(self, different: int, together: int) -> dict[str, float]:
        """Return how well combinations tell rows apart; nothing if rows have weights (see `WEIGHTS_RATIOS`)."""
        if self._total.unit is not None:
            return {}
        separation = Separation(self._total.rows, different, together)
        return {"distinction": separation.distinction, "separation": separation.separation}

    def _rarest(self, subset: Sequence[int], of: Rare) -> Rare:
        """The rarest of some combinations, ordered."""
        kept = np.arange(len(of.times))
        if not len(kept):
            return of
        if self._top < len(of.times):
            kept = np.flatnonzero(of.times >= np.partition(of.times, -self._top)[-self._top])
        # Of equals the lower values, as they are: codes depend on the kind of table.
        values = [self._value_order(column)[codes[kept]] for column, codes in zip(subset, of.codes, strict=True)]
        order = kept[np.lexsort((*values[::-1], of.counts[kept], -of.times[kept]))][: self._top]
        return Rare(of.times[order], of.counts[order], [codes[order] for codes in of.codes])

    def _value_order(self, place: int) -> npt.NDArray[np.int64]:
        if place not in self._orders:
            self._orders[place] = value_order(self._columns[place])
        return self._orders[place]

    def sets(self) -> pd.DataFrame:
        """All sets, those of the highest joint entropy first, of equal ones the first."""
        frame = pd.DataFrame.from_records(self._records)
        return frame.sort_values("joint_entropy", ascending=False, kind="stable", ignore_index=True)

    def values(self) -> pd.DataFrame:
        """The rarest combinations of all sets."""
        times = np.concatenate([rare.times for rare in self._rare])
        counts = np.concatenate([rare.counts for rare in self._rare])
        of = np.repeat(np.arange(len(self._rare)), [len(rare.times) for rare in self._rare])
        at = np.concatenate([np.arange(len(rare.times)) for rare in self._rare])
        records = []
        for place in np.lexsort((counts, -times))[: self._top].tolist():
            subset, rare = self._subsets[of[place]], self._rare[of[place]]
            record: dict[str, Any] = {}
            for number, (column, codes) in enumerate(zip(subset, rare.codes, strict=True), 1):
                record[f"column_{number}"] = self._columns[column].name
                record[f"value_{number}"] = self._columns[column].values([int(codes[at[place]])])[0]
            count = int(counts[place])
            people = self._total.people(count)
            record |= {
                "count": people,
                "expected": float(times[place]) * people,
                "rarity": math.log2(times[place]),
                "information": math.log2(self._total.units) - math.log2(count),
            }
            records.append(record)
        frame = pd.DataFrame.from_records(records)
        for name in frame.columns:
            if name.startswith("value_"):
                # As they are in the table: numbers of one column and text of another may stand in one.
                frame[name] = pd.Series([record[name] for record in records], dtype=object)
        return frame


def _highest(numbers: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """Return the `most` highest numbers, or all if they are fewer."""
    return np.partition(numbers, -most)[-most:] if len(numbers) > most else numbers
