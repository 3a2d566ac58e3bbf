"""Plots of scores: the data in the axes is as defined, wherever the scores are, and nothing else is touched."""

from __future__ import annotations

import doctest
import math
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError, NotScoredError, printable
from gpupif.results import Scores, score_plots
from gpupif.results.landscape import landscape
from tests.helpers.figures import closed_figures, labels, names_on, points
from tests.helpers.html_tables import read_html
from tests.helpers.naive import entropy
from tests.helpers.pieces import in_pieces, write_parts

__all__ = ["closed_figures"]
pytestmark = pytest.mark.usefixtures("on_cpu")

TABLE = gpupif.datasets.census(60, columns=5, seed=3).sample(200, replace=True, random_state=4).reset_index(drop=True)
MEASURES = ["cig", "csf", "cohort_size"]
WHO = {"neighbour": ["age", "sex"], "anyone": gpupif.AnyKnown(1), "nobody": []}
PLOTS = ("heatmap", "rig", "fig", "distributions")
HOSTILE = ["$\\frac{", "_a", "<script>[red]\x1b[31m", "x" * 99, "a\nb", "\\$"]


@pytest.fixture(scope="module")
def scores():
    with gpupif.config(device="cpu"):
        return gpupif.score(TABLE, MEASURES)


@pytest.fixture(scope="module")
def against_several():
    with gpupif.config(device="cpu"):
        return gpupif.score(TABLE, MEASURES, attackers=WHO)


def in_order(numbers):
    """The names of numbers by name, the highest first, earlier names first."""
    return sorted(numbers, key=lambda name: -numbers[name])


def test_fig_draws_the_sum_of_each_column_beside_its_entropy(scores):
    ax = scores.plot.fig()
    fig = {name: scores.cig[name].sum() for name in TABLE}
    order = in_order(fig)
    assert names_on(ax.yaxis) == order
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([fig[name] for name in order])
    bounds = points(ax, "rows times the entropy")
    missing = [TABLE[name].astype(object).where(TABLE[name].notna(), None) for name in order]
    assert bounds[:, 0] == pytest.approx([len(TABLE) * entropy(column.tolist()) for column in missing])
    assert bounds[:, 1].tolist() == [*range(len(order))]
    assert ax.get_ylim() == (len(order) - 0.5, -0.5)
    assert "bits" in ax.get_xlabel()
    assert ax.get_title()


def test_rig_draws_the_percentiles_of_the_sums_of_rows(scores):
    ax = scores.plot.rig(color="red", linewidth=3)
    gains = scores.cig.sum(axis=1)
    curve, *marks = ax.lines
    bits, percents = curve.get_data()
    assert bits == pytest.approx(np.percentile(gains, percents))
    assert percents.tolist() == [*range(0, 95, 5), *range(95, 101)]
    assert (curve.get_color(), curve.get_linewidth()) == ("red", 3)
    assert [mark.get_ydata()[0] for mark in marks] == [50, 95, 99, 100]
    assert [mark.get_xdata()[0] for mark in marks] == pytest.approx(np.percentile(gains, [50, 95, 99, 100]))
    assert labels(ax)[3] == f"PIF 100: {gains.max():.4g} bits"
    # Readable without colour.
    assert len({mark.get_marker() for mark in marks}) == 4
    assert ("bits" in ax.get_xlabel(), "%" in ax.get_ylabel()) == (True, True)


@pytest.mark.parametrize(("measure", "unit"), [("cig", "bits"), ("csf", "probability"), ("cohort_size", "rows")])
def test_distributions_draw_exact_percentiles(scores, measure, unit):
    ax = scores.plot.distributions(measure)
    cells, low = scores[measure], measure == "cohort_size"
    risk = {name: (np.median(cells[name]), np.percentile(cells[name], 95)) for name in TABLE}
    order = sorted(TABLE, key=lambda name: risk[name], reverse=not low)
    assert names_on(ax.yaxis) == order
    assert unit in ax.get_xlabel()
    # Matplotlib draws a box, two whiskers, two caps, a median and the points beyond, one column after another.
    for place, name in enumerate(order):
        box, *others = ax.lines[7 * place : 7 * place + 7]
        p5, p25, p50, p75, p95 = np.percentile(cells[name], [5, 25, 50, 75, 95])
        assert {*np.round(box.get_xdata(), 9)} == {*np.round([p25, p75], 9)}
        assert np.mean(box.get_ydata()[:4]) == place
        seen = sorted(number for line in others for number in line.get_xdata())
        extreme = cells[name].min() if low else cells[name].max()
        assert seen == pytest.approx(sorted([p5, p25, p75, p95, p5, p5, p95, p95, p50, p50, extreme]))


def test_attackers_draw_the_mean_of_each_column_against_each(against_several):
    for measure in MEASURES:
        ax = against_several.plot.attackers(measure)
        means = {
            "neighbour": gpupif.score(TABLE, MEASURES, known=["age", "sex"])[measure].mean(),
            "anyone": gpupif.score(TABLE, MEASURES, known=1).worst[measure].mean(),
            "nobody": gpupif.score(TABLE, MEASURES, known=[])[measure].mean(),
        }
        low = measure == "cohort_size"
        riskiest = {name: max((-1 if low else 1) * one[name] for one in means.values()) for name in TABLE}
        order = in_order(riskiest)
        assert names_on(ax.yaxis) == order
        assert labels(ax) == list(means)
        for attacker, mean in means.items():
            assert points(ax, attacker)[:, 0] == pytest.approx([mean[name] for name in order])
            assert points(ax, attacker)[:, 1].tolist() == [*range(len(order))]
        assert len({line.get_marker() for line in ax.lines}) == 3


@pytest.mark.parametrize(
    ("value", "middle"), [("highest", max), ("median", lambda cells: sorted(cells)[(len(cells) - 1) // 2])]
)
def test_the_heat_map_has_all_rows_by_risk_and_columns_by_fig(scores, value, middle):
    ax = scores.plot.heatmap(value, 7, cmap="Greys")
    cig = scores.cig
    order = in_order({name: cig[name].sum() for name in TABLE})
    assert names_on(ax.xaxis) == order
    mesh = ax.collections[0]
    edges = np.round(mesh.get_coordinates()[:, 0, 1] * len(TABLE) / 100).astype(int)
    assert (edges[0], edges[-1], mesh.get_cmap().name) == (0, len(TABLE), "Greys")
    assert 2 <= len(edges) <= 8
    rows = cig.loc[cig.sum(axis=1).sort_values(ascending=False, kind="stable").index, order]
    expected = [[middle(rows[name].iloc[a:b].tolist()) for name in order] for a, b in pairwise(edges)]
    assert np.asarray(mesh.get_array()) == pytest.approx(np.array(expected), abs=0.005 if value == "median" else 1e-12)
    assert ax.get_ylim() == (100, 0)
    assert "bits" in mesh.colorbar.ax.get_ylabel()
    fewer = scores.plot.heatmap(value, 7, order[1:])
    assert names_on(fewer.xaxis) == order[1:]
    assert np.asarray(fewer.collections[0].get_array()) == pytest.approx(np.asarray(mesh.get_array())[:, 1:])
    with pytest.raises(InputError, match=r"columns: expected none, as the row information gain is a sum"):
        scores.plot.rig(columns=order[1:])


def shown(ax):
    """All that axes show: names, and the numbers of lines, bars and meshes."""
    numbers = [line.get_xydata() for line in ax.lines] + [bar.get_bbox().get_points() for bar in ax.patches]
    numbers += [mesh.get_array().filled(-1) for mesh in ax.collections]
    texts = [ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), *names_on(ax.xaxis), *names_on(ax.yaxis)]
    return texts, [number.tolist() for number in numbers]


@pytest.fixture(scope="module", params=["files", pytest.param("dask", marks=[pytest.mark.dask, pytest.mark.slow])])
def elsewhere(request, tmp_path_factory):
    """Scores like those of `scores`, in another place, read for nothing but queries."""
    if request.param == "dask":
        import dask.dataframe as dd

        with gpupif.config(device="cpu"):
            return gpupif.score(dd.from_pandas(TABLE, npartitions=3), MEASURES).persist()
    folder = tmp_path_factory.mktemp("scores")
    write_parts(folder / "in", TABLE, [20, 70])
    with in_pieces(16, 25), gpupif.config(device="cpu", memory_limit="8GiB"):
        gpupif.score_files(folder / "in", folder / "out", MEASURES)
    return gpupif.open_scores(folder / "out")


@pytest.mark.slow
def test_plots_are_the_same_from_anywhere_and_read_no_frame(scores, elsewhere, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("read into memory")

    for name in ("array", "frame", "to_arrow", "__getitem__", "rig"):
        monkeypatch.setattr(Scores, name, refuse)
    for name in PLOTS:
        assert shown(getattr(elsewhere.plot, name)()) == shown(getattr(scores.plot, name)())


def test_titles_say_over_which_attackers(against_several):
    assert against_several.plot.fig().get_title().endswith(", worst over attackers")
    assert against_several.mean.plot.rig().get_title().endswith(", mean over attackers")
    assert against_several.against("nobody").plot.heatmap().get_title().endswith(", attacker nobody")


def test_given_axes_are_drawn_on_and_the_state_of_pyplot_is_kept(scores, against_several):
    before = dict(pyplot.rcParams)
    figure, (first, current) = pyplot.subplots(1, 2)
    pyplot.sca(current)
    for name in PLOTS:
        assert getattr(scores.plot, name)(ax=first) is first
        first.clear()
    assert against_several.plot.attackers(ax=first) is first
    assert pyplot.gca() is current
    assert pyplot.get_fignums() == [figure.number]
    assert dict(pyplot.rcParams) == before
    # As pandas does, a plot without axes makes a figure, which notebooks show.
    assert scores.plot.fig().figure.number in pyplot.get_fignums()


def test_some_columns_are_drawn_and_options_are_passed_on(scores, against_several):
    ax = scores.plot.fig(["sex", "age"], color="red", hatch="//", label="sums")
    assert sorted(names_on(ax.yaxis)) == ["age", "sex"]
    assert {(bar.get_facecolor(), bar.get_hatch()) for bar in ax.patches} == {((1, 0, 0, 1), "//")}
    assert "sums" in labels(ax)
    assert names_on(scores.plot.distributions("csf", "sex", widths=0.2).yaxis) == ["sex"]
    ax = against_several.plot.attackers(columns=["age"], markersize=20)
    assert (names_on(ax.yaxis), ax.lines[0].get_markersize()) == (["age"], 20)


def test_names_are_cut_and_escaped_and_are_no_mathematics():
    table = pd.DataFrame({name: [1, 1, 2, place] for place, name in enumerate([*HOSTILE, ("a", 1)])})
    scores = gpupif.score(table, attackers={name: [HOSTILE[0]] for name in HOSTILE})
    for ax in (
        scores.plot.fig(),
        scores.plot.distributions(columns=HOSTILE),
        scores.plot.attackers(),
        scores.plot.heatmap(),
    ):
        # Mathematics that are wrong would raise here.
        ax.figure.canvas.draw()
        texts = [*names_on(ax.xaxis), *names_on(ax.yaxis), *(labels(ax) if ax.get_legend() else ())]
        texts.append(ax.get_title())
        assert all(text.isprintable() or "\u2009" in text for text in texts)
        assert {"\\$\\frac{", "\u2009_a", "<script>[red]\\x1b[31m", "x" * 29 + "…", "a\\nb", "\\\\$"} <= {*texts}


def test_an_infinite_score_has_the_colour_of_the_highest_and_an_unknown_score_none(scores, monkeypatch):
    found = landscape(scores, 3)
    median = np.full_like(found.median, 2.0)
    median[0, :2] = math.inf, math.nan
    monkeypatch.setattr(score_plots, "landscape", lambda *_: replace(found, median=median, unknown_rows=1))
    ax = scores.plot.heatmap()
    mesh = ax.collections[0]
    assert mesh.get_clim() == (0, 2)
    assert mesh.get_array()[0, 0] == 2
    assert np.argwhere(np.ma.getmaskarray(mesh.get_array())).tolist() == [[0, 1]]
    assert mesh.colorbar.extend == "max"
    assert ax.get_ylabel().endswith("without 1 row with unknown scores")


def test_what_cannot_be_drawn_is_one_clear_line(scores, monkeypatch):
    csf = gpupif.score(TABLE, ["csf"])
    for name in ("heatmap", "rig", "fig", "distributions"):
        with pytest.raises(NotScoredError, match=r"^measures: 'cig' was not scored \(scored: csf\)\. Add it: "):
            getattr(csf.plot, name)()
    with pytest.raises(NotScoredError, match=r"There is no such measure. Did you mean 'csf'"):
        scores.plot.distributions("cfs")
    with pytest.raises(ColumnNotFoundError, match=r"^columns: no column 'aeg' in the scores. Did you mean 'age'"):
        scores.plot.fig(["aeg"])
    for draw in (scores.plot.heatmap, scores.plot.fig, scores.plot.distributions):
        with pytest.raises(gpupif.InputError, match=r"^columns: expected at least one scored column, got none\."):
            draw(columns=[])
    with pytest.raises(ColumnNotFoundError, match=r"^columns: no column 'aeg'"):
        scores.plot.distributions(columns="aeg")
    with pytest.raises(
        gpupif.InputError, match=r"^attackers: expected scores against two attackers or more, got one\."
    ):
        scores.plot.attackers()
    with pytest.raises(gpupif.InputError, match=r"^value: expected 'median' or 'highest', got 'mean'"):
        scores.plot.heatmap("mean")
    with pytest.raises(gpupif.InputError, match=r"^ax: expected the axes of a plot of Matplotlib, got Figure"):
        scores.plot.fig(ax=pyplot.figure())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in PLOTS:
        with pytest.raises(gpupif.InputError, match=r"not installed here: pip install 'gpupif\[plot\]'\.$") as caught:
            getattr(scores.plot, name)()
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_matplotlib_is_imported_by_the_first_plot():
    code = (
        "import sys, gpupif; scores = gpupif.score(gpupif.datasets.pif_example()); scores.plot;"
        "from gpupif.results import Comparison, Protection; assert 'matplotlib' not in sys.modules;"
        "import matplotlib; matplotlib.use('agg'); print(scores.plot.fig().get_title())"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Feature information gain (FIG)\n"


def test_the_examples_of_the_docstring_are_right():
    tried = doctest.testmod(score_plots)
    assert tried.attempted >= 4
    assert tried.failed == 0


def test_a_notebook_shows_scores_in_files_in_a_line_if_they_had_to_be_read(tmp_path):
    # Files hold the summary against each attacker, and not that of the worst scores over all.
    names = "<i>&\x1b[31m", "b"
    gpupif.score(gpupif.datasets.pif_example(), attackers={name: ["gender"] for name in names}).write(tmp_path / "s.pq")
    scores = gpupif.open_scores(tmp_path / "s.pq")
    assert len(read_html(scores._repr_html_()).tables) == 2
    read = read_html(scores.worst._repr_html_())
    assert read.tables == []
    assert "".join(read.texts).split() == printable(f"{scores.worst!r}: .summary() reads them").split()
    scores.worst.summary()
    assert len(read_html(scores.worst._repr_html_()).tables) == 2
