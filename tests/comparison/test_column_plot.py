"""The plot of a comparison: the figure of each column before and after, as defined."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import gpupif
from tests.helpers.figures import closed_figures, labels, names_on, points
from tests.helpers.naive import entropy

__all__ = ["closed_figures"]
KNOWN, SENSITIVE = ["age", "sex", "education"], ["marital_status"]
BEFORE = gpupif.datasets.census(120, columns=12, seed=5)[[*KNOWN, *SENSITIVE]].reset_index(drop=True)
AFTER = BEFORE.assign(age=BEFORE["age"] // 20 * 20).drop(columns="education")


@pytest.fixture(scope="module")
def comparison():
    with gpupif.config(device="cpu"):
        return gpupif.compare(BEFORE, AFTER, quasi_identifiers=KNOWN, sensitive=SENSITIVE)


def high_first(before, after):
    return sorted(before, key=lambda name: -np.nanmax([before[name], after[name]]))


@pytest.mark.parametrize(("figure", "percent", "unit"), [("p95_cig", 95, "bits"), ("max_csf", 100, "probability")])
def test_percentiles_of_scores_are_drawn_before_and_after(comparison, figure, percent, unit):
    measure = figure[-3:]

    def percentiles(table):
        names = [name for name in KNOWN if name in table]
        scores = gpupif.score(table, [measure], [*names, *SENSITIVE], known=names)[measure]
        return {name: np.percentile(scores[name], percent) for name in scores}

    before, after = percentiles(BEFORE), {"education": math.nan, **percentiles(AFTER)}
    ax = comparison.plot(None if figure == "p95_cig" else figure)
    order = high_first(before, after)
    assert names_on(ax.yaxis) == order
    assert points(ax, "before")[:, 0] == pytest.approx([before[name] for name in order])
    assert points(ax, "after")[:, 0] == pytest.approx([after[name] for name in order], nan_ok=True)
    assert unit in ax.get_xlabel()
    assert labels(ax) == ["before", "after"]
    assert len({line.get_fillstyle() for line in ax.lines}) == 2


def test_entropy_is_drawn_before_and_after(comparison):
    ax = comparison.plot("entropy", markersize=3)
    before = {name: entropy(BEFORE[name].astype(str).tolist()) for name in BEFORE}
    after = {name: entropy(AFTER[name].astype(str).tolist()) if name in AFTER else 0.0 for name in BEFORE}
    order = high_first(before, after)
    assert names_on(ax.yaxis) == order
    assert points(ax, "before")[:, 0] == pytest.approx([before[name] for name in order])
    assert points(ax, "after")[:, 0] == pytest.approx([after[name] for name in order])
    assert {line.get_markersize() for line in ax.lines} == {3}
    segments = ax.collections[0].get_segments()
    assert [sorted(segment[:, 0]) for segment in segments] == [
        pytest.approx(sorted((before[name], after[name]))) for name in order
    ]


def test_given_axes_are_drawn_on(comparison):
    _, (ax, current) = pyplot.subplots(1, 2)
    assert comparison.plot(ax=ax) is ax
    assert pyplot.gca() is current


def test_what_cannot_be_drawn_is_one_clear_line(comparison):
    expected = "figure: expected 'entropy', 'p50_cig', 'p95_cig', 'p99_cig', 'max_cig', "
    with pytest.raises(gpupif.InputError, match=f"^{re.escape(expected)}.*; got 'p95_cg'. Did you mean 'p95_cig'"):
        comparison.plot("p95_cg")
    with pytest.raises(gpupif.InputError, match=r"^figure: expected"):
        comparison.plot(5)
    with pytest.raises(gpupif.InputError, match=r"^ax: expected"):
        comparison.plot(ax="here")


def test_names_of_any_kind_are_drawn():
    table = pd.DataFrame({("a", 1): ["x", "x", "y", "y"], "$_{": [1, 1, 2, 3], 7: [1, 2, 3, 4]})
    found = gpupif.compare(table, table)
    assert sorted(names_on(found.plot("entropy").yaxis)) == sorted([r"\$_{", "('a', 1)", "7"])
