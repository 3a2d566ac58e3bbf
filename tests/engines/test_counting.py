"""Combinations of sets of columns, counted in every way, against a Counter."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpupif.engines.cpu import count_tables as engine
from gpupif.engines.cpu.count_tables import is_dense, key_layout
from gpupif.engines.cpu.counting import in_batches, number_rows
from gpupif.rows.keys import code_type
from gpupif.rows.threads import Workers
from gpupif.utils.information import Sizes
from tests.helpers.tables import SIMULATED

pytestmark = pytest.mark.every_engine

WIDEST = 2**32 - 1


@st.composite
def encoded(draw, least=0):
    """Columns of codes with their cardinalities, some far beyond any dense table, and what each row counts."""
    cardinalities = draw(st.lists(st.sampled_from([1, 2, 3, 7, 256, 257, 70_000, WIDEST]), min_size=1, max_size=5))
    rows = draw(st.integers(1, 30))
    codes = []
    for cardinality in cardinalities:
        pool = draw(st.lists(st.integers(0, cardinality - 1), min_size=1, max_size=4))
        codes.append(np.array(draw(st.lists(st.sampled_from(pool), min_size=rows, max_size=rows))))
    codes = [values.astype(code_type(cardinality)) for values, cardinality in zip(codes, cardinalities, strict=True)]
    multiplicities = draw(st.none() | st.lists(st.integers(least, 5), min_size=rows, max_size=rows).filter(any))
    return codes, cardinalities, None if multiplicities is None else np.array(multiplicities, np.uint32)


def counted(codes, columns, multiplicities):
    """Combination to its number of rows, ascending."""
    repeats = [1] * len(codes[0]) if multiplicities is None else multiplicities.tolist()
    found = Counter()
    for row, repeat in enumerate(repeats):
        found[tuple(int(codes[column][row]) for column in columns)] += repeat
    return sorted((cell, count) for cell, count in found.items() if count)


def as_pairs(found):
    values = [codes.tolist() for codes in found.codes]
    keys = list(zip(*values, strict=True)) if values else [()] * len(found.counts)
    return list(zip(keys, found.counts.tolist(), strict=True))


def every_subset(columns):
    return [subset for size in range(columns + 1) for subset in combinations(range(columns), size)]


@pytest.mark.slow
@given(table=encoded(), dense=st.sampled_from([1, 64, engine.DENSE]), threads=st.integers(1, 3), cut=st.integers(1, 30))
@settings(deadline=None, max_examples=6 if SIMULATED else 50, suppress_health_check=[*HealthCheck])
def test_counts_of_every_subset_are_right(counting_engine, table, dense, threads, cut):
    codes, cardinalities, multiplicities = table
    subsets = every_subset(len(codes))
    with Workers(threads) as workers, counting_engine.counting(workers) as counting:
        counter = counting.counter(subsets, cardinalities, len(codes[0]), dense)
        for start in range(0, len(codes[0]), cut):
            part = slice(start, start + cut)
            counter.add([values[part] for values in codes], None if multiplicities is None else multiplicities[part])
        for place, subset in enumerate(subsets):
            expected = counted(codes, subset, multiplicities)
            assert as_pairs(counter.combinations(place)) == expected
            assert sorted(counter.counts(place).tolist()) == sorted(count for _, count in expected)
            sizes = Sizes.from_counts(np.array([count for _, count in expected]))
            assert [part.tolist() for part in counter.sizes(place)] == [part.tolist() for part in sizes]
            found = counter.combinations(place)
            assert as_pairs(found) == expected
            assert [values.dtype for values in found.codes] == [code_type(cardinalities[column]) for column in subset]
            assert found.counts.dtype == np.int64
        assert counter.nbytes() > 0
        assert as_pairs(counter.combinations(0)) == counted(codes, subsets[0], multiplicities)


@pytest.mark.slow
@given(table=encoded(least=1))
@settings(deadline=None, max_examples=30)
def test_each_row_has_the_number_of_its_combination(table):
    codes, cardinalities, multiplicities = table
    with Workers(2) as workers:
        numbered = number_rows(codes, cardinalities, workers, multiplicities)
    found = as_pairs(numbered.combinations)
    assert found == counted(codes, range(len(codes)), multiplicities)
    for row, number in enumerate(numbered.number.tolist()):
        assert found[number][0] == tuple(int(values[row]) for values in codes)


@pytest.mark.slow
@pytest.mark.parametrize("own", [engine.OWN_BYTES, 0])
@pytest.mark.parametrize("repeated", [False, True])
def test_many_blocks_and_threads_count_right(monkeypatch, counting_engine, own, repeated):
    """There are more rows than a block and a task hold; threads have their own counters or their own sets."""
    monkeypatch.setattr(engine, "OWN_BYTES", own)
    random = np.random.default_rng(3)
    cardinalities = [5, 300, 9]
    rows = 3000 if SIMULATED else 50_000
    codes = [random.integers(0, size, rows).astype(code_type(size)) for size in cardinalities]
    multiplicities = random.integers(1, 4, rows).astype(np.uint32) if repeated else None
    subsets = every_subset(3)
    with Workers(3) as workers, counting_engine.counting(workers) as counting:
        counter = counting.counter(subsets, cardinalities, rows)
        counter.add(codes, multiplicities)
        numbered = number_rows(codes, cardinalities, workers, multiplicities)
        for place, subset in enumerate(subsets):
            assert as_pairs(counter.combinations(place)) == counted(codes, subset, multiplicities)
    found = [values[numbered.number] for values in numbered.combinations.codes]
    assert all((mine == given).all() for mine, given in zip(found, codes, strict=True))


def test_counts_beyond_32_bits_are_right(counting_engine):
    """A multiplicity may be in the billions; the counters widen with the sum."""
    codes = [np.array([0, 1, 1], np.uint8)]
    multiplicities = np.array([2**31, 2**31, 5], np.uint64)
    for dense in (1, engine.DENSE):
        with Workers(1) as workers, counting_engine.counting(workers) as counting:
            counter = counting.counter([[0]], [2], 3, dense)
            for _ in range(3):
                counter.add(codes, multiplicities)
            assert counter.combinations(0).counts.tolist() == [3 * 2**31, 3 * (2**31 + 5)]


def test_keys_are_in_the_order_of_codes():
    layout = key_layout([2**31, 1, 2**20, 2**14, 3])
    assert layout.words == 2
    assert [layout.fields[column].word for column in (0, 2, 3, 4)] == [0, 0, 1, 1]
    assert layout.fields[0].shift == 33
    assert layout.fields[1].mask == 0


def test_an_empty_counter_has_no_combinations(counting_engine):
    with Workers(1) as workers, counting_engine.counting(workers) as counting:
        for dense in (1, engine.DENSE):
            counter = counting.counter([[0, 1]], [2, 2], 0, dense)
            counter.add([np.empty(0, np.uint8), np.empty(0, np.uint8)])
            assert as_pairs(counter.combinations(0)) == []
            assert len(counter.counts(0)) == 0


@pytest.mark.slow
@given(table=encoded(), every=st.booleans(), differ=st.booleans())
@settings(deadline=None, max_examples=6 if SIMULATED else 25, suppress_health_check=[*HealthCheck])
def test_counting_all_rows_at_once_is_right(counting_engine, table, every, differ):
    """Each set is counted in turn, with or without columns that are in no set."""
    codes, cardinalities, multiplicities = table
    subsets = every_subset(len(codes)) if every else [[0], [0], [len(codes) - 1]]
    with Workers(2) as workers, counting_engine.counting(workers) as counting:
        for subset, (counter, place) in zip(
            subsets, counting.counters(codes, cardinalities, subsets, multiplicities, differ), strict=True
        ):
            expected = counted(codes, subset, multiplicities)
            assert sorted(counter.counts(place).tolist()) == sorted(count for _, count in expected)
            assert sorted(as_pairs(counter.combinations(place, ordered=False))) == expected
            assert as_pairs(counter.combinations(place)) == expected


def test_batches_fit_the_memory_and_only_few_cells_are_dense():
    assert is_dense([2, 2], 1)
    assert not is_dense([10**4, 10**4], 10**9)
    assert not is_dense([1000, 1000], 100)
    pairs = list(combinations(range(4), 2))
    assert list(in_batches(pairs, [10] * 4, 100)) == [pairs]
    assert list(in_batches(pairs, [10] * 4, 100, memory=800)) == [pairs[:2], pairs[2:4], pairs[4:]]
    assert list(in_batches(pairs, [10] * 4, 100, memory=1)) == [[pair] for pair in pairs]
