"""Measures of each pair or triple of columns, and its rarest values, from the combinations of values that occur."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpupif.kernels import subsets as kernels
from gpupif.kernels.spread import look_up

from ..encoding.column import Column, value_order
from ..engines.base import Counter
from ..engines.cpu.count_tables import Combinations
from ..utils.arrays import highest_places
from ..utils.information import LogSum
from .count_statistics import NEARLY_NONE, CountSums, Separation, as_often_as_parts
from .set_counts import Total


@dataclass(frozen=True)
class Rare:
    """The rarest combinations of a set of columns, the rarest first.

    ratios: expected count, if values were independent, over count. counts: of each combination. codes: of each column.
    """

    ratios: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    codes: list[npt.NDArray[Any]]

    @classmethod
    def total(cls, parts: Sequence[Rare]) -> Rare:
        """Return the rare combinations of several partitions, in no order."""
        codes = [np.concatenate(arrays) for arrays in zip(*(part.codes for part in parts), strict=True)]
        ratios, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("ratios", "counts"))
        return cls(ratios, counts, codes)


class SetFindings(NamedTuple):
    """The findings of one partition of the combinations of a set of columns.

    sums: over the counts of combinations. sums.low: of the counts that are at most one person. combinations: how many
    there are. independent: True if each occurs exactly as often as if its values were independent. rare: all that may
    be among the rarest of all sets.
    """

    sums: CountSums
    combinations: int
    independent: bool
    rare: Rare


class MeasuredSets:
    """The measures of sets of columns, one set after the other. It is a `set_counts.Find` that returns `SetFindings`.

    columns, total: of the table (see `set_counts.MakeFind`). top: how many rare combinations are wanted.
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
        # The highest ratios so far, `top` at most. A combination with a lower ratio than all is not among the rarest.
        self._highest = np.empty(0)

    def __call__(self, subset: Sequence[int], counter: Counter, place: int) -> SetFindings:
        """Return the findings of the combinations of a set that a counter has."""
        combinations = counter.combinations(place, ordered=False)
        counts = combinations.counts
        expected = np.empty(len(counts))
        look_up(self._columns[subset[0]].counts, combinations.codes[0], expected)
        for column, codes in zip(subset[1:], combinations.codes[1:], strict=True):
            kernels.expect_more(codes, self._columns[column].counts, self._total.units, expected)
        ratios, rare = np.empty(len(counts)), np.empty(len(counts) + 1, np.int64)
        least = self._highest.min() if len(self._highest) == self._top else -math.inf
        number, as_expected = kernels.find_rare(expected, counts, NEARLY_NONE, least, ratios, rare)
        independent = as_expected == len(counts) and self._independent(subset, combinations)
        kept = rare[:number]
        self._highest = _highest(np.concatenate([self._highest, ratios[kept]]), self._top)
        return SetFindings(
            CountSums.from_counts(counts, self._total.alone),
            len(counts),
            independent,
            self._rarest(subset, Rare(ratios[kept], counts[kept], [codes[kept] for codes in combinations.codes])),
        )

    def _independent(self, subset: Sequence[int], combinations: Combinations) -> bool:
        """Return whether each combination occurs exactly as often as if its values were independent."""
        parts = [self._columns[column].counts[codes] for column, codes in zip(subset, combinations.codes, strict=True)]
        return as_often_as_parts(combinations.counts, parts, self._total.units)

    def add(self, subset: Sequence[int], parts: Sequence[SetFindings]) -> None:
        """Measure the next set. parts: the findings of all partitions of its combinations."""
        repeated = LogSum.total(part.sums.logs for part in parts).sum_log()
        joint = max(0.0, (self._whole - repeated) / self._total.units)
        terms = [*(self._alone[column] for column in subset), repeated, -self._whole]
        shared = max(0.0, math.fsum(terms) / self._total.units)
        occurring = sum(part.combinations for part in parts)
        possible = math.prod(int((self._columns[column].counts > 0).sum()) for column in subset)
        if shared < NEARLY_NONE and occurring == possible and all(part.independent for part in parts):
            shared = 0.0
        alone = sum(part.sums.low for part in parts)
        self._subsets.append(subset)
        self._rare.append(self._rarest(subset, Rare.total([part.rare for part in parts])))
        self._records.append(
            {
                **{f"column_{place}": self._columns[column].name for place, column in enumerate(subset, 1)},
                "joint_entropy": joint,
                "mutual_information" if len(subset) == 2 else "total_correlation": shared,
                "unique_share": alone / self._total.units,
                "unique_rows": self._total.people(alone),
                "smallest_cohort": self._total.people(min(part.sums.lowest for part in parts if part.combinations)),
                "combinations": occurring,
                **self._ratios(occurring, sum(part.sums.together for part in parts)),
            }
        )

    def _ratios(self, occurring: int, together: int) -> dict[str, float]:
        """Return distinction and separation; nothing if rows have weights (see `WEIGHTS_RATIOS`)."""
        if self._total.unit is not None:
            return {}
        separation = Separation(self._total.rows, occurring, together)
        return {"distinction": separation.distinction, "separation": separation.separation}

    def _rarest(self, subset: Sequence[int], rare: Rare) -> Rare:
        """Return the rarest of some combinations, in order."""
        if not len(rare.ratios):
            return rare
        kept = highest_places(rare.ratios, self._top)
        # Ties are broken by values, in their own order: the order of codes depends on the kind of table.
        values = [self._value_order(column)[codes[kept]] for column, codes in zip(subset, rare.codes, strict=True)]
        order = kept[np.lexsort((*values[::-1], rare.counts[kept], -rare.ratios[kept]))][: self._top]
        return Rare(rare.ratios[order], rare.counts[order], [codes[order] for codes in rare.codes])

    def _value_order(self, place: int) -> npt.NDArray[np.int64]:
        """Return the rank of each value of a column, found on first use."""
        if place not in self._orders:
            self._orders[place] = value_order(self._columns[place])
        return self._orders[place]

    def sets(self) -> pd.DataFrame:
        """Return the measures of all sets, the highest joint entropy first; of equal ones the first set."""
        frame = pd.DataFrame.from_records(self._records)
        return frame.sort_values("joint_entropy", ascending=False, kind="stable", ignore_index=True)

    def values(self) -> pd.DataFrame:
        """Return the rarest combinations of all sets."""
        ratios = np.concatenate([rare.ratios for rare in self._rare])
        counts = np.concatenate([rare.counts for rare in self._rare])
        sets = np.repeat(np.arange(len(self._rare)), [len(rare.ratios) for rare in self._rare])
        ranks = np.concatenate([np.arange(len(rare.ratios)) for rare in self._rare])
        records = []
        for place in np.lexsort((counts, -ratios))[: self._top].tolist():
            subset, rare = self._subsets[sets[place]], self._rare[sets[place]]
            record: dict[str, Any] = {}
            for number, (column, codes) in enumerate(zip(subset, rare.codes, strict=True), 1):
                record[f"column_{number}"] = self._columns[column].name
                record[f"value_{number}"] = self._columns[column].values([int(codes[ranks[place]])])[0]
            count = int(counts[place])
            people = self._total.people(count)
            record |= {
                "count": people,
                "expected": float(ratios[place]) * people,
                "rarity": math.log2(ratios[place]),
                "information": math.log2(self._total.units) - math.log2(count),
            }
            records.append(record)
        frame = pd.DataFrame.from_records(records)
        for name in frame.columns:
            if name.startswith("value_"):
                # Values stay as they are in the table: a column may have numbers of one column and text of another.
                frame[name] = pd.Series([record[name] for record in records], dtype=object)
        return frame


def _highest(numbers: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """Return the `most` highest numbers, or all if they are fewer."""
    return np.partition(numbers, -most)[-most:] if len(numbers) > most else numbers
