"""Rows linked to their nearest row of the treated table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.comparison import compare, record_linkage
from gpupif.comparison.risk import RiskFigures
from tests.helpers.naive_comparison import linked_share

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(autouse=True)
def without_risk():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "measure_risk", lambda *_: RiskFigures({}, {}))
        yield


NUMBERS = st.one_of(st.none(), st.integers(0, 8))
TENTHS = st.integers(0, 8).map(lambda tenths: tenths / 10)
LETTERS = st.sampled_from(["a", "b", "c", None])


@st.composite
def tables(draw):
    rows = draw(st.integers(2, 9))
    kinds = {"n": NUMBERS, "m": TENTHS, "s": LETTERS}
    made = [{name: draw(st.lists(kind, min_size=rows, max_size=rows)) for name, kind in kinds.items()} for _ in "ba"]
    return made[0], made[1]


def frame(table):
    return pd.DataFrame({"n": pd.array(table["n"], "Int64"), "m": table["m"], "s": table["s"]})


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(tables())
def test_the_linked_share_is_that_of_comparing_all_rows(both):
    before, after = both
    found = gpupif.compare(frame(before), frame(after), linkage="exact").linkage
    assert found.share == pytest.approx(linked_share(before, after, list(before)))
    assert (found.rows, found.seed, found.standard_error) == (len(before["n"]), None, None)


def noisy(rows):
    random = np.random.default_rng(1)
    before = pd.DataFrame({"x": random.integers(0, 1000, rows), "y": random.integers(0, 1000, rows)})
    return before, before + random.integers(-20, 21, (rows, 2))


def test_linkage_is_computed_if_values_were_perturbed():
    before, after = noisy(200)
    assert gpupif.compare(before, after).linkage is not None
    assert gpupif.compare(before, after, linkage=None).linkage is None
    assert gpupif.compare(before, before // 100).linkage is None
    assert gpupif.compare(before, before, linkage="exact").linkage.share == 1.0


def test_a_sampled_share_follows_from_the_seed_and_is_near_the_truth(monkeypatch):
    before, after = noisy(400)
    exact = gpupif.compare(before, after).linkage
    found = gpupif.compare(before, after, linkage=150, seed=5).linkage
    assert (found.rows, found.seed) == (150, 5)
    assert abs(found.share - exact.share) < 4 * found.standard_error < 0.4
    order = np.random.default_rng(0).permutation(400)
    # Of the same rows in another order the same are drawn.
    assert gpupif.compare(before.iloc[order], after.iloc[order], linkage=150, seed=5).linkage == found
    assert gpupif.compare(before, after, linkage=150, seed=6).linkage.linked != found.linked
    whole = gpupif.compare(before, after, linkage=400).linkage
    assert (whole.share, whole.standard_error) == (exact.share, 0.0)
    monkeypatch.setattr(record_linkage, "MOST_PAIRS", 1000)
    monkeypatch.setattr(record_linkage, "SAMPLE_ROWS", 50)
    assert gpupif.compare(before, after).linkage.rows == 50
    with pytest.raises(gpupif.InputError, match="linkage: 'exact' compares 400 distinct rows with"):
        gpupif.compare(before, after, linkage="exact")


def test_a_row_without_values_is_nearest_to_no_row():
    before = pd.DataFrame({"x": [1.0, 2.0, 9.0]})
    after = pd.DataFrame({"x": [1.0, None, 9.0]})
    assert gpupif.compare(before, after, linkage="exact").linkage.share == pytest.approx(2 / 3)
