"""Scores do not depend on the order of rows and columns, nor on the engine's settings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.engines.choose import DeviceRequest, choose_engine
from gpupif.engines.cpu.engine import CpuEngine
from gpupif.measures import MEASURES
from gpupif.rows.keys import KeyLayout
from gpupif.rows.partition import Rows, partition_rows
from gpupif.rows.threads import Workers
from tests.helpers import naive
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

pytestmark = pytest.mark.every_engine


@pytest.mark.slow
@given(table=tables(), seed=st.integers(0, 99))
@SHARED_FIXTURES
def test_permuted_rows_have_permuted_scores(engine, table, seed):
    frame = frame_of(table)
    order = np.random.default_rng(seed).permutation(len(frame))
    scores, permuted = (gpupif.score(f, list(MEASURES)) for f in (frame, frame.iloc[order]))
    for measure in MEASURES:
        np.testing.assert_allclose(permuted[measure], scores[measure].iloc[order], rtol=1e-12, atol=1e-13)
        assert permuted[measure].index.equals(frame.index[order])


@pytest.mark.slow
@given(table=tables(), seed=st.integers(0, 99), times=st.integers(2, 4))
@SHARED_FIXTURES
def test_order_of_columns_labels_and_repetition_do_not_matter(engine, table, seed, times):
    frame = frame_of(table)
    scores = gpupif.score(frame, ["cig", "csf", "wcig", "posterior"])
    order = list(np.random.default_rng(seed).permutation(list(frame.columns)))
    relabelled = frame.apply(lambda column: pd.Series(pd.factorize(column, use_na_sentinel=False)[0]) * -3 + 5)
    repeated = pd.concat([frame] * times, ignore_index=True)
    for measure in scores.measures:
        for other in (frame[order], relabelled):
            np.testing.assert_allclose(
                gpupif.score(other, [measure])[measure][list(frame.columns)], scores[measure], rtol=1e-12, atol=1e-13
            )
        np.testing.assert_allclose(
            gpupif.score(repeated, [measure])[measure].iloc[: len(frame)], scores[measure], rtol=1e-11, atol=1e-12
        )


@pytest.mark.slow
@given(table=tables())
@SHARED_FIXTURES
def test_scores_are_in_range_and_mean_cig_is_the_information(engine, table):
    scores = gpupif.score(frame_of(table), list(MEASURES))
    assert (scores.cig >= 0).all(axis=None)
    assert ((scores.csf >= 0) & (scores.csf <= 1)).all(axis=None)
    assert ((scores.posterior > 0) & (scores.posterior <= 1)).all(axis=None)
    for name in table:
        others = [other for other in table if other != name]
        mean = naive.entropy(table[name]) - naive.conditional_entropy(table, name, others)
        assert scores.cig[name].mean() == pytest.approx(mean, abs=1e-12)


def _bits(scores):
    return {measure: scores.array(measure).tobytes() for measure in scores.measures}, scores.weights


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("known", [None, ["age", "sex", "region"]])
def test_any_threads_and_blocks_give_the_same_bits(monkeypatch, skewed, known):
    frame = gpupif.datasets.census(20_000)
    if skewed:
        rare = np.random.default_rng(0).random(frame.shape) < 0.15
        codes = frame.apply(lambda column: pd.Series(pd.factorize(column)[0]))
        frame = pd.DataFrame(np.where(rare, codes, 0), columns=frame.columns)
    accuracies = {"age": 0.9}
    seen = []
    for threads, block_rows in ((None, 4096), (1, 4096), (2, 64), (5, 1), (3, 10**9)):
        monkeypatch.setattr("gpupif.scoring.score.choose_engine", lambda _, t=threads, b=block_rows: CpuEngine(t, b))
        seen.append(_bits(gpupif.score(frame, list(MEASURES), known=known, accuracies=accuracies)))
    assert all(bits == seen[0] for bits in seen[1:])


@pytest.mark.slow
def test_every_run_and_every_kind_of_frame_gives_the_same_bits():
    import polars as pl

    frame = gpupif.datasets.census(5_000)
    table = pa.Table.from_pandas(frame)
    text = frame.astype({name: str for name in frame.columns if frame[name].dtype == "category"})
    kinds = [frame, frame, text, table, pl.from_arrow(table), frame.astype(object)]
    # Text has no order, categories may.
    distances = dict.fromkeys(frame.columns, "nominal")
    with gpupif.config(device="cpu"):
        seen = [_bits(gpupif.score(kind, list(MEASURES), distances=distances)) for kind in kinds]
    assert all(bits == seen[0] for bits in seen[1:])


def test_more_partitions_than_a_radix_pass_takes_give_the_same_scores():
    """Over 2^11 blocks need two passes of the radix partition; one-row blocks make 20,000."""
    frame = gpupif.datasets.census(20_000)
    codes = [frame[name].to_numpy().astype(np.uint8) for name in ("age", "household_size")]
    layout = KeyLayout.from_cardinalities([128, 16])
    with Workers(2) as workers:
        keys = layout.pack(codes, workers)
        blocks = partition_rows(Rows(keys), layout.masks([0]), 1, workers)
    assert len(blocks.offsets) == len(frame) + 1
    np.testing.assert_array_equal(np.sort(blocks.order), np.arange(len(frame)))
    np.testing.assert_array_equal(blocks.rows.keys, keys[blocks.order])
    for start, stop in zip(blocks.offsets[:-1], blocks.offsets[1:], strict=True):
        assert (np.diff(blocks.order[start:stop].astype(np.int64)) > 0).all()
    block_of = np.searchsorted(blocks.offsets, np.arange(len(frame)), side="right")
    ages = codes[0][blocks.order]
    for age in np.unique(ages):
        assert len(np.unique(block_of[ages == age])) == 1


@pytest.mark.parametrize("missing", ["category", "wildcard"])
def test_priors_and_accuracies_of_known_columns_do_not_matter(missing):
    table = gpupif.datasets.census(40, seed=1)[["age", "sex", "region"]]
    if missing == "wildcard":
        table.loc[::5, "sex"] = None
    attack = {"measures": list(MEASURES), "columns": ["region"], "known": ["age", "sex"], "missing": missing}
    values = [value for value in table["sex"].unique() if isinstance(value, str)]
    without = gpupif.score(table, **attack)
    beside = gpupif.score(
        table, **attack, priors={"sex": dict(zip(values, (0.9, 0.1), strict=True))}, accuracies={"age": 0.2}
    )
    assert beside.weights == without.weights
    for measure in MEASURES:
        pd.testing.assert_frame_equal(beside[measure], without[measure], check_exact=True)


def test_auto_device_is_the_cpu_without_cuda(monkeypatch):
    from gpupif.gpu.status import CudaStatus

    monkeypatch.setattr("gpupif.gpu.status.cuda_status", lambda: CudaStatus(reason="none"))
    assert choose_engine(DeviceRequest("auto")).device == "cpu"
