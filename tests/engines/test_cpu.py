"""Parts of the CPU engine and its surroundings: threads, keys, compilation, two runs at once, the benchmark."""

from __future__ import annotations

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.datasets import census
from gpupif.engines import block_scoring
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.kernels import formulas, statistics, whole_sums
from gpupif.kernels.log_units import LOG_BITS
from gpupif.measures import MEASURES
from gpupif.rows.partition import Rows, partition_rows, split
from gpupif.rows.threads import Workers
from gpupif.utils.information import column_weight
from tests.helpers import naive_attack
from tests.helpers.kernels import from_python

surprise = from_python(formulas.surprise)
absent_mass = from_python(statistics.absent_mass)
finish_logs = from_python(statistics.finish_logs)
finish_terms = from_python(statistics.finish_terms)
digits_of_float = from_python(whole_sums.digits_of_float)
wide_of_digits = from_python(whole_sums.wide_of_digits)


def test_two_runs_at_the_same_time_do_not_disturb_each_other():
    """The threads of a Dask worker do this."""
    tables = [census(20_000, seed=seed) for seed in range(4)]
    expected = [gpupif.score(table).array("cig") for table in tables]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda table: gpupif.score(table).array("cig"), tables * 3))
    for one, alone in zip(together, expected * 3, strict=True):
        np.testing.assert_array_equal(one, alone)


def test_column_weights_are_right_with_very_large_cohorts():
    """The cohorts have 6,000 and 5,000 rows."""
    table = pd.DataFrame({"a": [0] * 6_000 + [1] * 5_000, "b": [0, 0, 1] * 2_000 + [0, 1] * 2_500})

    def entropy(*shares):
        return -sum(share * math.log2(share) for share in shares)

    ones = (2_000 + 2_500) / 11_000
    given_a = (6_000 * entropy(1 / 3, 2 / 3) + 5_000 * entropy(0.5, 0.5)) / 11_000
    assert gpupif.score(table, "wcig").weights["b"] == pytest.approx(given_a / entropy(ones, 1 - ones), rel=1e-12)


@pytest.mark.parametrize("cache", [1, 1 << 20])
def test_few_scored_columns_at_a_time_give_the_same_bits(monkeypatch, cache):
    frame = census(5_000)
    whole = gpupif.score(frame, list(MEASURES))
    monkeypatch.setattr("gpupif.engines.cpu.scorer.CACHED_BYTES", cache)
    other = gpupif.score(frame, list(MEASURES))
    for measure in MEASURES:
        assert other.array(measure).tobytes() == whole.array(measure).tobytes()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("few", [1, 3, 16])
@pytest.mark.parametrize("shared", [1, 8, 1 << 14])
def test_cohorts_of_any_size_are_scored_right(monkeypatch, few, shared):
    monkeypatch.setattr("gpupif.engines.cpu.scorer.LARGEST_SHARED_SIZE", few)
    monkeypatch.setattr("gpupif.engines.cpu.scorer.SHARED_SCORES", shared)
    multiplicities = [1, 2, 3, 4, 16, 17, 40]
    table = {
        "a": np.repeat(np.arange(7), multiplicities).tolist(),
        "b": np.repeat([0, 1, 1, 2, 0, 2, 1], multiplicities).tolist(),
    }
    table = {name: [*values, 0] for name, values in table.items()} | {"c": [0] * 83 + [1]}
    scores = gpupif.score(pd.DataFrame(table), ["cig", "cohort_size", "posterior"])
    expected = naive_attack.score(table)
    for measure in scores.measures:
        for name in table:
            np.testing.assert_allclose(scores[measure][name], expected[measure][name], rtol=1e-12, err_msg=measure)


def test_gains_below_zero_by_rounding_are_zero():
    assert finish_logs(statistics.DIVERGENCE, -1.0, 3, LOG_BITS) == 0.0
    frame = pd.DataFrame({"a": [0, 0, 1] * 7, "b": [0] * 21})
    given = {0: np.nextafter(2 / 3, 1), 1: np.nextafter(1 / 3, 0)}
    assert (gpupif.score(frame, "cig", priors={"a": given}).cig >= 0).all(axis=None)


def test_scores_can_be_pickled():
    for table in (census(100), pl.DataFrame({"a": [1, 2, 2]}), pa.table({"a": [1, 2, 2]})):
        scores = gpupif.score(table)
        again = pickle.loads(pickle.dumps(scores))
        np.testing.assert_array_equal(again.array("cig"), scores.array("cig"))
        assert type(again.csf) is type(table)


def scored(frame, *measures, **settings):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(**settings))
        return gpupif.score(frame, list(measures or MEASURES))


@pytest.mark.parametrize("cache", [1, 1 << 24])
def test_blocks_that_are_cut_again_give_the_same_scores(monkeypatch, cache):
    """Each column has a frequent value, so blocks are too large after two columns and are cut by further ones."""
    cut = []
    score_scored_columns = block_scoring.score_blocks_and_children

    def spy(run, blocks, *arguments):
        cut.append(len(blocks.children))
        return score_scored_columns(run, blocks, *arguments)

    monkeypatch.setattr(block_scoring, "score_blocks_and_children", spy)
    monkeypatch.setattr("gpupif.engines.cpu.scorer.CACHED_BYTES", cache)
    random = np.random.default_rng(0)
    table = pd.DataFrame({name: random.integers(0, 2, 200) * np.arange(200) for name in "abcdef"})
    scores = scored(table, threads=1, block_rows=2)
    assert max(cut) > 0
    columns = {name: table[name].tolist() for name in table}
    assert scores.weights == pytest.approx(naive_attack.column_weights(columns), abs=1e-12)
    whole = scored(table, block_rows=10**9)
    for measure in MEASURES:
        assert scores.array(measure).tobytes() == whole.array(measure).tobytes()


def test_columns_of_one_value_in_recut_blocks_give_the_same_scores():
    assert [len(half) for half in split([0, 1, 2], [0.0, 0.0, 0.0])] == [2, 1]
    table = pd.DataFrame({"a": range(60), "b": [1] * 60, "c": [2] * 60, "d": [3] * 60})
    scores = scored(table, threads=1, block_rows=1)
    assert (scores.cohort_size[["b", "c", "d"]] == 1).all(axis=None)
    few = gpupif.score(table, list(MEASURES), columns=["b", "c", "d"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpupif.scoring.score.choose_engine", lambda _: CpuEngine(block_rows=1))
        again = gpupif.score(table, list(MEASURES), columns=["b", "c", "d"])
    for measure in MEASURES:
        assert again.array(measure).tobytes() == few.array(measure).tobytes()


@pytest.mark.parametrize("rows", [65_535, 65_536, 65_537])
def test_rows_are_partitioned_into_more_blocks_than_16_bits_number(rows):
    keys = np.arange(rows, dtype=np.uint64).reshape(-1, 1)
    with Workers(2) as workers:
        blocks = partition_rows(Rows(keys), np.array([~np.uint64(0)]), 1, workers)
    assert blocks.offsets[[0, -1]].tolist() == [0, rows]
    assert (np.diff(blocks.offsets) >= 0).all()
    assert np.array_equal(np.sort(blocks.order), np.arange(rows))


def whole(number):
    high, low = wide_of_digits(*digits_of_float(number))
    return high, np.uint64(low)


def test_rounding_does_not_lead_out_of_the_range_of_a_measure():
    assert surprise(np.nextafter(1.0, 2), 0.0) == 1.0
    assert absent_mass(1, np.nextafter(1.0, 2), 3, 1.0) == 0.0
    above, below = whole(np.nextafter(1.0, 2)), whole(np.nextafter(1.0, 0))
    assert finish_terms(statistics.TOTAL_VARIATION, 0.0, 0, *above, 0.0, 1.0) == 1.0
    assert finish_terms(statistics.HELLINGER, 0.0, 0, *whole(np.nextafter(2.0, 3)), 0.0, 1.0) == 1.0
    assert finish_terms(statistics.RENYI_ZERO, 0.0, 0, *above, 0.0, 1.0) == 0.0
    assert finish_terms(statistics.RENYI, 2.0, 0, *below, 0.0, 1.0) == 0.0
    assert column_weight(np.nextafter(1.0, 2), 1.0) == 1.0
    assert column_weight(-1e-12, 1.0) == 0.0
    assert column_weight(5.0, 0.0) == 0.0


def test_scores_of_each_measure_have_memory_of_their_own():
    scores = gpupif.score(census(100), list(MEASURES))
    bases = [base for measure in MEASURES if (base := scores.array(measure).base) is not None]
    # Those that are the same for all columns have memory of one column, each its own.
    assert [base.shape for base in bases] == [(100,)] * 4
    assert len({id(base) for base in bases}) == 4
