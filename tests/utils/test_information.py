"""Sums of c log2 c: whole numbers of units of 2^-56 bits, the same whatever the parts, and rounded once."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupif.engines.cohort_sizes import SMALL_COHORTS, CohortSizes
from gpupif.engines.partition_plan import WeightSums
from gpupif.out_of_core.table_scoring import PartitionFacts
from gpupif.utils.information import LogSum, Sizes, log2_counts

GROUPS = st.lists(st.integers(1, 2**61) | st.integers(1, 9), max_size=30)


@given(parts=st.lists(GROUPS, min_size=1, max_size=4))
def test_parts_add_up_to_the_whole(parts):
    sizes = [Sizes.of(np.array(part, np.int64)) for part in parts]
    whole = Sizes.of(np.array(list(chain(*parts)), np.int64))
    assert LogSum.total(sizes) == LogSum.total([whole]) == Sizes.total(sizes).log_sum()
    assert whole.log_sum().units == sum(c * int(log2_counts(np.array([c]))[0]) for part in parts for c in part)
    assert whole.sum_log() == float(Fraction(whole.log_sum().units, 1 << 56))
    assert whole.sum_log() == pytest.approx(math.fsum(c * math.log2(c) for part in parts for c in part), rel=1e-14)


def test_multiplicities_count():
    sizes = Sizes.of(np.array([3, 5, 3]), np.array([2, 1 << 33, 4]))
    three, five = log2_counts(np.array([3, 5])).tolist()
    assert sizes.log_sum() == LogSum(6 * 3 * three + (1 << 33) * 5 * five)
    assert sizes.sum_log() == pytest.approx(18 * math.log2(3) + (1 << 33) * 5 * math.log2(5), rel=1e-15)
    assert LogSum.total([]).sum_log() == 0


@given(
    small=st.lists(st.tuples(st.integers(1, SMALL_COHORTS - 1), st.integers(1, 10**5)), max_size=30),
    large=st.lists(st.integers(SMALL_COHORTS, 2**40), max_size=5),
)
def test_a_tally_has_the_log_sum_of_its_sizes(small, large):
    tally = CohortSizes.of(2, 2**30, 5)
    for size, times in small:
        tally.small[1, size] += times
    tally.large[1, : len(large)], tally.listed[1] = large, len(large)
    assert tally.log_sum(1) == tally.sizes(1).log_sum()
    assert tally.log_sum(0) == LogSum(0)
    tally.small[0, 1:] = range(1, SMALL_COHORTS)
    assert tally.log_sum(0) == tally.sizes(0).log_sum()


def test_a_result_of_a_part_comes_back_from_json():
    found = PartitionFacts(WeightSums({1: Sizes.of(np.array([2**60, 7, 7])).log_sum()}, {1: LogSum(0)}), rows=3)
    again = PartitionFacts.from_json(json.loads(json.dumps(found.to_json())))
    assert (again.sums, again.rows) == (found.sums, found.rows)
