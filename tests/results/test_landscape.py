"""The risk landscape, by its definition: on every kind of table, with scores that are infinite or unknown."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import NotScoredError
from gpupif.results.landscape import GAIN_STEPS, csf_histogram, landscape
from tests.helpers.pieces import in_pieces, write_parts

ROWS = 300
TABLE = gpupif.datasets.census(ROWS, columns=5, seed=3)


def rounded(numbers, step):
    """Numbers in steps, half steps up."""
    return [max(0.0, math.floor(number / step + 0.5) * step) if math.isfinite(number) else number for number in numbers]


def assert_as_defined(found, cig, bands):
    """The landscape is that of the frame of all CIG."""
    gains = cig.sum(axis=1, skipna=False)
    assert found.unknown_rows == gains.isna().sum()
    assert len(found.rows) <= bands
    assert found.rows.sum() == gains.notna().sum()
    assert found.fig.tolist() == sorted(found.fig, reverse=True)
    assert set(found.columns) == set(cig.columns)
    assert all(low >= high for low, high in zip(found.low, found.high[1:], strict=False))
    for band, (low, high) in enumerate(zip(found.low, found.high, strict=True)):
        rows = cig[(gains >= low) & ((gains < high) | (gains == math.inf) & (high == math.inf))]
        assert len(rows) == found.rows[band] > 0
        for place, name in enumerate(found.columns):
            cells = sorted(rows[name].dropna())
            median = rounded([cells[(len(cells) - 1) // 2]], found.step)[0]
            assert found.median[band, place] == pytest.approx(median, abs=1e-12)
            assert found.highest[band, place] == cells[-1]
    for place, name in enumerate(found.columns):
        known = cig[name][gains.notna()].dropna()
        steps, times = np.unique(rounded(known[np.isfinite(known)], found.step), return_counts=True)
        counts = found.cells.counts[place]
        assert np.flatnonzero(counts).tolist() == np.round(steps / found.step).astype(int).tolist()
        assert counts[counts > 0].tolist() == times.tolist()
        assert found.cells.beyond[place] == np.isinf(known).sum()
    finite = gains[np.isfinite(gains)]
    assert found.gains[:-1].tolist() == np.bincount((finite * GAIN_STEPS).astype(int)).tolist()


@pytest.mark.every_engine
@pytest.mark.parametrize("bands", [1, 7, 200])
def test_the_landscape_is_as_defined(engine, bands):
    scores = gpupif.score(TABLE, ["cig", "csf"])
    assert_as_defined(landscape(scores, bands), scores.cig, bands)


def test_rows_with_equal_risk_share_a_band():
    scores = gpupif.score(pd.DataFrame({"a": [1, 1, 1, 2], "b": ["x", "x", "x", "y"]}))
    found = landscape(scores)
    assert found.rows.tolist() == [1, 3]
    assert found.to_frame()["column"].tolist() == [*found.columns] * 2


class Given:
    """Scores that are given, in chunks; what `landscape` needs of `Scores`."""

    def __init__(self, frame):
        self.frame = frame
        self.columns = list(frame)

    def fig(self):
        return self.frame.replace(math.inf, np.nan).sum()

    def fold(self, measure, count, add):
        from gpupif.rows.threads import Workers

        with Workers(2) as workers:
            parts = [self.frame.iloc[start : start + 7].to_numpy().T.copy() for start in range(0, len(self.frame), 7)]
            return add(*(count([part], workers) for part in parts))


def test_infinite_and_unknown_scores():
    numbers = np.random.default_rng(4).choice([0.0, -1e-17, 0.005, 0.3, 1.25, 7, math.inf], (90, 3))
    numbers[::11, 1] = math.nan
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"])
    assert_as_defined(landscape(Given(frame), 5), frame, 5)
    only = landscape(Given(frame[["b"]].dropna().replace({7.0: math.inf})), 5)
    assert only.low[0] == only.high[0] == only.median[0, 0] == math.inf


def test_steps_grow_wider_where_there_are_too_many(monkeypatch):
    monkeypatch.setattr("gpupif.results.landscape.MOST_COUNTERS", 1500)
    scores = gpupif.score(TABLE)
    found = landscape(scores, 7)
    assert found.step > 0.01
    assert_as_defined(found, scores.cig, 7)


def assert_same(found, expected):
    for name in ("rows", "low", "high", "median", "highest", "gains", "fig"):
        assert np.array_equal(getattr(found, name), getattr(expected, name), equal_nan=True), name
    assert np.array_equal(found.cells.counts, expected.cells.counts)


def test_scores_in_files_have_the_same_landscape(tmp_path):
    write_parts(tmp_path / "in", TABLE, [100, 100])
    with in_pieces(17, 50):
        scores = gpupif.score_files(tmp_path / "in", tmp_path / "out", known=["age", "sex"])
    expected = gpupif.score(TABLE, known=["age", "sex"])
    assert_same(landscape(scores), landscape(expected))
    assert np.array_equal(csf_histogram(scores).counts, csf_histogram(expected).counts)
    none = gpupif.score_files(tmp_path / "in", None, summary_only=True)
    with pytest.raises(NotScoredError, match="not kept"):
        landscape(none)


@pytest.mark.slow
@pytest.mark.dask
def test_scores_on_dask_have_the_same_landscape(on_cpu):
    import dask
    import dask.dataframe as dd

    with dask.config.set(scheduler="sync"):
        scores = gpupif.score(dd.from_pandas(TABLE, npartitions=3)).persist()
        assert_same(landscape(scores), landscape(gpupif.score(TABLE)))


def test_the_histogram_of_csf():
    scores = gpupif.score(TABLE, ["csf", "cohort_size"])
    found = csf_histogram(scores)
    for place, name in enumerate(scores.columns):
        steps, times = np.unique(rounded(scores.csf[name].astype(float), found.step), return_counts=True)
        counts = found.counts[place]
        assert counts[counts > 0].tolist() == times.tolist()
        assert np.flatnonzero(counts).tolist() == np.round(steps / found.step).astype(int).tolist()
    with pytest.raises(NotScoredError, match="'cig' was not scored"):
        landscape(scores)
