"""The plot of a comparison: a figure of each column before and after, as axes of Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputError, did_you_mean
from ..utils.axes import ink, name_rows, open_axes

if TYPE_CHECKING:
    import pandas as pd

ENTROPY, DEFAULT = "entropy", "p95_cig"


def plot_columns(
    columns: pd.DataFrame, cells: pd.DataFrame, figure: str | None, ax: Any, options: Mapping[str, Any]
) -> Any:
    """Return the axes of `Comparison.plot`. columns, cells: the frames of the `Comparison`."""
    figures = {ENTROPY: (columns.set_axis(columns.index)[["entropy_before", "entropy_after"]], "entropy (bits a row)")}
    for (measure, percentile), own in cells.groupby(["measure", "percentile"], sort=False):
        key = "max" if percentile == 100 else f"p{percentile:g}"
        name = "highest" if percentile == 100 else f"{percentile:g}th percentile of"
        unit = " (bits)" if measure == "cig" else " (probability)"
        values = own.set_index("column")[["before", "after"]]
        figures[f"{key}_{measure}"] = values, f"{name} {str(measure).upper()}{unit}"
    if figure is None:
        figure = DEFAULT if DEFAULT in figures else ENTROPY
    if not isinstance(figure, str) or figure not in figures:
        near = did_you_mean(str(figure), figures)
        raise InputError(f"figure: expected {', '.join(map(repr, figures))}; got {figure!r}.{near}")
    values, xlabel = figures[figure]
    values = values.set_axis(["before", "after"], axis=1)
    values = values.iloc[(-values.max(axis=1)).argsort(kind="stable")]
    ax = open_axes(ax, len(values))
    places = list(range(len(values)))
    ax.hlines(places, values["before"], values["after"], color=ink(ax), alpha=0.5)
    for name, marker, filled in (("before", "o", "none"), ("after", "o", "full")):
        looks = {"marker": marker, "linestyle": "none", "color": ink(ax), "fillstyle": filled}
        ax.plot(values[name], places, **{**looks, "label": name, **options})
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
    name_rows(ax, list(values.index), "Columns before and after treatment", xlabel)
    return ax
