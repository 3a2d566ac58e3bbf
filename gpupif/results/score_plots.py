"""The plots of scores, as axes of Matplotlib: ``scores.plot.fig()``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..measures import Measure
from ..utils.axes import MARKERS, ink, label, name_rows, open_axes
from ..utils.display import as_cell, plural
from ..utils.validation import Columns, as_list, check_exist, check_word
from .landscape import BANDS, landscape
from .summary_figures import SUMMARISED

# The percentiles of the row information gains that are joined by a line, and those with a point of their own.
CURVE = (*range(0, 95, 5), *range(95, 101))
POINTS = (50, 95, 99, 100)
# A heat map is as high as a plot with this number of names.
HEATMAP_NAMES = 18
# The percentiles of a box: its whiskers, its ends, and its line.
BOX = {"whislo": 5, "q1": 25, "med": 50, "q3": 75, "whishi": 95}
SHORT_NAMES = {"cig": "CIG", "csf": "CSF"}


class ScorePlots:
    """Plots of scores as axes of Matplotlib (extra ``plot``); made by `Scores.plot`.

    All plots take ``ax``, the axes to draw on; by default they are those of a new figure. Further keyword arguments go
    to the method of Matplotlib that the plot names. No scores are read into memory as a whole. Scores of a Dask frame
    are computed for each plot, unless `Scores.persist` keeps them. Scores over several attackers are the worst of each
    cell, and ``scores.mean.plot`` shows the mean.

    All plots raise InputError without Matplotlib, or if `ax` is no axes; NotScoredError, an InputError, for a measure
    that was not scored; and ColumnNotFoundError, another, for a column that was not.

    Examples
    --------
    >>> import gpupif
    >>> scores = gpupif.score(gpupif.datasets.pif_example())
    >>> ax = scores.plot.fig()
    >>> ax.get_xlabel()
    'FIG (bits, over all rows)'

    """

    def __init__(self, scores: Any) -> None:
        self._scores = scores

    def heatmap(
        self,
        value: str = "median",
        bands: int = BANDS,
        columns: Columns | None = None,
        *,
        ax: Any = None,
        **options: Any,
    ) -> Any:
        """Draw the whole table: rows sorted by row information gain in bands, columns by FIG, the highest first.

        A darker cell has a higher CIG. The height of a band is its share of the rows.

        value: "median" or "highest", the CIG of a band's cells that is shown, in bits. bands: at most so many.
        columns: names of the scored columns to show. Default: all. Rows are sorted by the gain of all columns either
        way. options: of ``Axes.pcolormesh``.
        """
        check_word("value", value, ("median", "highest"))
        asked = {self._scores.columns[place] for place in self._places(columns)}
        found = landscape(self._scores, bands)
        places = [place for place, name in enumerate(found.columns) if name in asked]
        names = [found.columns[place] for place in places]
        ax = open_axes(ax, HEATMAP_NAMES, len(names))
        scores, rows = getattr(found, value)[:, places], int(found.rows.sum())
        # An infinite score has the colour of the highest finite one.
        highest = np.max(scores, initial=0, where=np.isfinite(scores)) or 1.0
        share = 100 * np.append(0, np.cumsum(found.rows)) / max(1, rows)
        edges = np.arange(len(names) + 1) - 0.5
        looks = {} if "norm" in options else {"vmin": 0, "vmax": highest}
        looks |= {"cmap": "viridis_r", "rasterized": True}
        mesh = ax.pcolormesh(edges, share, np.minimum(scores, highest), **{**looks, **options})
        beyond = "max" if np.isinf(scores).any() else "neither"
        ax.figure.colorbar(mesh, ax=ax, extend=beyond, label=f"{value} CIG (bits)")
        ax.set_xticks(range(len(names)), labels=list(map(label, names)), rotation=90)
        ax.set_ylim(100, 0)
        unknown = f"{found.unknown_rows:,} {plural(found.unknown_rows, 'row')}"
        left_out = f", without {unknown} with unknown scores" if found.unknown_rows else ""
        ax.set(title=f"Risk landscape{self._against()}", xlabel="column, highest FIG first")
        ax.set_ylabel(f"% of {rows:,} {plural(rows, 'row')}, riskiest first{left_out}")
        return ax

    def rig(self, *, ax: Any = None, **options: Any) -> Any:
        """Draw the distribution of the row information gain (RIG): for each gain the share of rows up to it.

        Lines join the percentiles 0, 5, ..., 95, 96, ..., 100 of all rows. They are exact (linear between two rows).

        Points mark PIF_50, PIF_95, PIF_99 and PIF_100. options: of ``Axes.plot``. Raises InputError for ``columns``.
        """
        if "columns" in options:
            raise InputError(
                "columns: expected none, as the row information gain is a sum over all scored columns. Score these "
                "columns alone: gpupif.score(table, columns=[...]).plot.rig()."
            )
        gains = dict(zip(CURVE, self._scores.pif(CURVE), strict=True))
        ax = open_axes(ax)
        ax.plot(list(gains.values()), CURVE, **{"color": ink(ax), **options})
        for percent, marker in zip(POINTS, MARKERS, strict=False):
            ax.plot(gains[percent], percent, marker, label=f"PIF {percent}: {as_cell(gains[percent])} bits")
        ax.legend(loc="lower right")
        ax.set(
            title=f"Row information gain (RIG){self._against()}",
            xlabel="RIG (bits)",
            ylabel="rows with at most this RIG (%)",
        )
        return ax

    def fig(self, columns: Columns | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw the feature information gain (FIG) of columns as bars, the highest first.

        A line beside each bar is the entropy of the column's prior, times the rows. If what the attacker knows gave
        away every value, FIG would be about as high.

        columns: names of scored columns. Default: all. options: of ``Axes.barh``.
        """
        places = self._places(columns)
        self._scores._measure("cig")
        # Of several attackers it is the worst score, unless these scores are of the mean.
        summary = self._scores.worst.summary()
        shown = summary.columns.iloc[places].sort_values("fig", ascending=False, kind="stable")
        ax = open_axes(ax, len(shown))
        places = list(range(len(shown)))
        ax.barh(places, shown["fig"], **{"label": "FIG", **options})
        highest = shown["prior_entropy"] * summary.rows
        ax.plot(highest, places, "|", color=ink(ax), markersize=12, label="rows times the entropy")
        ax.legend(loc="lower right")
        title = f"Feature information gain (FIG){self._against()}"
        name_rows(ax, list(shown.index), title, "FIG (bits, over all rows)")
        ax.xaxis.set_major_formatter("{x:,.10g}")
        return ax

    def distributions(
        self, measure: str = "cig", columns: Columns | None = None, *, ax: Any = None, **options: Any
    ) -> Any:
        """Draw the distribution of a measure's scores in each column as a box, the riskiest median first.

        A box goes from the 25th to the 75th percentile, with a line at the median; its whiskers from the 5th to the
        95th. A point is the highest score, or the lowest if low is risky. All are exact. Unknown scores (NaN) do not
        count.

        columns: names of scored columns. Default: all. options: of ``Axes.bxp``.
        """
        places, scored = self._places(columns), self._scores._measure(measure)
        beyond, which = (0, "lowest") if scored.low_is_risky else (100, "highest")
        shown = self._scores.percentiles(measure, [*BOX.values(), beyond]).iloc[places]
        shown = shown.sort_values([50, 95], ascending=scored.low_is_risky, kind="stable")
        ax = open_axes(ax, len(places))
        rows = shown.to_dict("records")
        boxes = [{key: row[percent] for key, percent in BOX.items()} | {"fliers": [row[beyond]]} for row in rows]
        looks = {"widths": 0.6, "flierprops": {"marker": "d", "markersize": 4}, "medianprops": {"color": ink(ax)}}
        ax.bxp(boxes, **{"positions": range(len(boxes)), "orientation": "horizontal", **looks, **options})
        title = f"Distribution of {_name(scored)} by column{self._against()}"
        name_rows(ax, list(shown.index), title, f"{_name(scored)} ({scored.unit}): 5, 25, 50, 75, 95 % and {which}")
        return ax

    def attackers(self, measure: str = "cig", columns: Columns | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw the mean score of each column against each attacker, a shape for each; the riskiest column first.

        columns: names of scored columns. Default: all. options: of ``Axes.plot``. Raises InputError for a single
        attacker.
        """
        scores, attackers = self._scores, self._scores.attackers
        if len(attackers) < 2:
            raise InputError(
                "attackers: expected scores against two attackers or more, got one. Score the table again: "
                "gpupif.score(table, attackers={'insider': [...], 'neighbour': [...]})."
            )
        places, scored = self._places(columns), scores._measure(measure)
        means = np.array([_means(scores.against(attacker).worst, measure)[places] for attacker in attackers])
        risks = -means if scored.low_is_risky else means
        order = np.argsort(-np.nanmax(risks, axis=0, initial=-np.inf), kind="stable")
        ax = open_axes(ax, len(places))
        for number, (attacker, own) in enumerate(zip(attackers, means, strict=True)):
            filled = ("full", "none")[number // len(MARKERS) % 2]
            looks = {"marker": MARKERS[number % len(MARKERS)], "linestyle": "none", "fillstyle": filled}
            ax.plot(own[order], range(len(places)), **{**looks, "label": label(attacker), **options})
        ax.grid(axis="y", alpha=0.4)
        ax.legend(title="attacker", loc="upper left", bbox_to_anchor=(1, 1))
        names = [scores.columns[places[place]] for place in order]
        name_rows(ax, names, f"Mean {_name(scored)} by attacker", f"mean {_name(scored)} ({scored.unit})")
        return ax

    def _places(self, columns: Columns | None) -> list[int]:
        """Return the places of scored columns. columns: their names; None for all. Raises InputError."""
        scored = self._scores.columns
        names = scored if columns is None else as_list("columns", [columns] if columns in scored else columns)
        check_exist("columns", names, scored, "the scores")
        if not names:
            raise InputError("columns: expected at least one scored column, got none. Leave it out to draw all.")
        return [scored.index(name) for name in names]

    def _against(self) -> str:
        """Return against whom the scores are, for a title; nothing for a single attacker without a name."""
        attackers = self._scores.attackers
        if len(attackers) > 1 or self._scores.subsets is not None:
            return f", {self._scores._view.side} over attackers"
        return f", attacker {label(attackers[0])}" if attackers else ""


def _name(measure: Measure) -> str:
    return SHORT_NAMES.get(measure.name, measure.name.replace("_", " "))


def _means(scores: Any, measure: str) -> Any:
    """Return the mean score of each column, from the summary if it has the mean. scores: one for each cell."""
    figures = scores.summary().columns if measure in SUMMARISED else {}
    means = figures[f"{measure}_mean"] if f"{measure}_mean" in figures else scores.means(measure)
    return means.to_numpy()
