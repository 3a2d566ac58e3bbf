"""The figures of a report, as Plotly's JSON. `templates/page.js` adds what depends on colours and width.

Plotly, not Bokeh: its figures are SVG, so that they are sharp on paper and their text can be searched, and its script
runs without `eval`, which a Content-Security-Policy can then forbid. Bokeh's script is smaller (1.3 MB, Plotly's is
4.8 MB), but it draws on a canvas, whose text is lost on paper and to screen readers, and whose colours are fixed when
it is drawn.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from ..utils.display import as_json, as_part, as_text

Figure = dict[str, Any]
# The most columns that a figure shows, and the most characters of a name in it.
MOST_COLUMNS = 60
LONGEST_NAME = 32
# Bars of the distribution of RIG, at most.
GAIN_BARS = 80
# The parts of a distribution that a box shows: whiskers, the ends of the box, and the line in it.
BOX = {"lowerfence": 0.05, "q1": 0.25, "median": 0.5, "q3": 0.75, "upperfence": 0.95}
ROW = 26
# A redacted report shows medians of so many rows or more.
FEWEST_ROWS = 20


def labels(names: Iterable[Hashable]) -> list[str]:
    """Return names as Plotly shows them as they are: escaped, for Plotly reads tags, cut, and no two alike."""
    taken: Counter[str] = Counter()
    shown = []
    for name in names:
        text = as_text(name)
        text = text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"
        taken[text] += 1
        shown.append(escape(text if taken[text] == 1 else f"{text} ({taken[text]})", quote=False))
    return shown


def number(value: Any) -> float | None:
    """Return a number in six digits; None for NaN and infinity, which JSON lacks."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None


def numbers(values: Iterable[Any]) -> list[float | None]:
    """Return numbers for JSON, see `number`."""
    return [number(value) for value in values]


def figure(
    said: str, data: Sequence[Mapping[str, Any]], height: int, x: str = "", y: str = "", **layout: Any
) -> Figure:
    """Return a figure. said: what it shows, for who does not see it. height: pixels. x, y: titles of the axes."""
    for name, title in (("xaxis", x), ("yaxis", y)):
        layout[name] = {"title": {"text": escape(title, quote=False)}, "automargin": True, **layout.get(name, {})}
    return {"said": said, "data": list(data), "layout": {"height": height, **layout}}


def landscape(shape: Any, redacted: Sequence[Hashable] | None = None) -> list[Figure]:
    """Return the risk landscape: the median and the highest CIG in bands of rows by columns.

    redacted: the order of columns of a redacted report, in which medians are rounded down to whole bits and left out of
    small bands, as are all highest values and numbers of rows: rows of equal RIG, which may have equal values, share a
    band. Default: None.
    """
    columns = labels(shape.columns[:MOST_COLUMNS])
    ends = [0.0, *(100 * shape.rows.cumsum() / max(1, shape.rows.sum())).tolist()]
    bands = [
        f"band {band + 1} of {len(shape.rows)}: {rows:,} rows, {ends[band]:.3g} to {ends[band + 1]:.3g} % of rows by "
        f"risk<br>RIG {low:.4g} to {high:.4g} bits"
        for band, (rows, low, high) in enumerate(zip(shape.rows, shape.low, shape.high, strict=True))
    ]
    shown = {name: [numbers(row[:MOST_COLUMNS]) for row in getattr(shape, name)] for name in ("median", "highest")}
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": columns,
        "y": numbers(ends),
        "z": shown["median"],
        "customdata": shown["highest"],
        "bands": bands,
        "zmin": 0,
        "colorbar": {"title": {"text": "bits"}, "thickness": 12},
        "hovertemplate": "<b>%{x}</b><br>%{text}<br>median %{z} bits<br>highest %{customdata} bits<extra></extra>",
    }
    if redacted is not None:
        names = [as_json(name) for name in shape.columns]
        places = [names.index(name) for name in redacted if name in names][:MOST_COLUMNS]
        median = np.where(shape.rows[:, None] >= FEWEST_ROWS, np.floor(shape.median), np.nan)
        trace["x"], trace["z"] = labels(names[place] for place in places), [numbers(row[places]) for row in median]
        trace["text"] = [[f"band {band + 1} of {len(median)}"] * len(places) for band in range(len(median))]
        trace["y"] = [*range(len(median) + 1)]
        del trace["customdata"], trace["bands"]
        trace["hovertemplate"] = "<b>%{x}</b><br>%{text}<br>median %{z} bits<extra></extra>"
    said = "Heat map: the median CIG of the cells, by band of rows (riskiest first) and column (highest FIG first)."
    axes: dict[str, Any] = {"xaxis": {"type": "category"}, "yaxis": {"autorange": "reversed", "ticksuffix": " %"}}
    if redacted is not None:
        del axes["yaxis"]["ticksuffix"]
    return [figure(said, [trace], 520, y="rows, riskiest first", **axes)]


def boxes(histogram: Any, order: Sequence[Hashable], unit: str, what: str) -> list[Figure]:
    """Return the distribution of scores in each column as boxes, from a `Histogram`. order: names of its columns."""
    place_of = {as_json(name): place for place, name in enumerate(histogram.columns)}
    places = [place_of[name] for name in order[:MOST_COLUMNS]]
    names = labels(order[:MOST_COLUMNS])
    ends: dict[str, list[float | None]] = {name: [] for name in BOX}
    for counts in histogram.counts[places]:
        below = counts.cumsum()
        for name, share in BOX.items():
            step = int((below <= share * (below[-1] - 1)).sum()) if below[-1] else math.nan
            ends[name].append(number(step * histogram.step))
    trace = {"type": "box", "orientation": "h", "y": names, **ends, "hoverinfo": "x+y"}
    said = f"Boxes: the distribution of {what} in each column."
    axes: dict[str, Any] = {"yaxis": {"type": "category", "autorange": "reversed"}, "xaxis": {"rangemode": "tozero"}}
    return [figure(said, [trace], 90 + ROW * len(names), x=f"{what}{unit}", **axes)]


def gains(by_step: Any, step: float, pif: Mapping[str, float]) -> list[Figure]:
    """Return the distribution of RIG, and PIF_n as lines. by_step: rows by RIG in steps, the last with infinite RIG."""
    finite = by_step[:-1]
    width = max(1, -(-len(finite) // GAIN_BARS))
    starts = range(0, len(finite), width)
    bar = {
        "type": "bar",
        "x": [number((start + width / 2) * step) for start in starts],
        "y": [int(finite[start : start + width].sum()) for start in starts],
        "width": width * step,
        "hovertemplate": "%{y:,} rows with a RIG near %{x} bits<extra></extra>",
    }
    lines = [{"type": "line", "x0": bits, "x1": bits, "yref": "paper", "y0": 0, "y1": 1} for bits in pif.values()]
    notes = [
        {
            "x": bits,
            "y": 1,
            "yref": "paper",
            "text": f"PIF {share}",
            "showarrow": False,
            "textangle": -90,
            "xanchor": "right",
        }
        for share, bits in pif.items()
    ]
    said = "Bars: the number of rows by row information gain (RIG). Lines: its percentiles (PIF)."
    return [figure(said, [bar], 340, x="RIG, bits", y="rows", shapes=lines, annotations=notes, bargap=0)]


def bars(
    said: str, names: Sequence[Hashable], series: Mapping[str, Sequence[Any]], unit: str, mode: str = "group"
) -> list[Figure]:
    """Return horizontal bars: for each name one of each series, side by side, or narrow over the first ("overlay")."""
    shown = labels(names[:MOST_COLUMNS])
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "name": labels([name])[0],
            "y": shown,
            "x": numbers(values[:MOST_COLUMNS]),
            "hovertemplate": "<b>%{y}</b>: %{x:,}<extra>%{fullData.name}</extra>",
            **({"width": 0.4} if place and mode == "overlay" else {}),
        }
        for place, (name, values) in enumerate(series.items())
    ]
    each = len(series) if mode == "group" else 1
    axes: dict[str, Any] = {"yaxis": {"type": "category", "autorange": "reversed"}}
    return [figure(said, data, 110 + ROW * len(shown) * max(1, each - 1), x=unit, barmode=mode, **axes)]


def chosen(said: str, cells: Mapping[str, Mapping[str, tuple[Any, Any]]]) -> list[Figure]:
    """Return bars of prior and posterior by value, for one of some cells; `templates/page.js` lets the reader choose.

    cells: by name of the cell, prior and posterior by name of the value.
    """
    drawn = []
    for name, values in cells.items():
        before, after = zip(*values.values(), strict=True)
        series = {"prior": before, "posterior": after}
        told = "; ".join(f"{value}: {as_part(one)}, then {as_part(other)}" for value, (one, other) in values.items())
        (bar,) = bars(f"{said} {name}: {told}.", list(values), series, "probability")
        bar["layout"]["xaxis"]["range"] = [0, 1]
        drawn.append((name, bar))
    return [drawn[0][1] | {"choices": [bar | {"name": name} for name, bar in drawn]}]


def columns(said: str, names: Sequence[str], values: Sequence[Any], x: str, y: str) -> list[Figure]:
    """Return vertical bars, one for each name, in this order."""
    bar = {"type": "bar", "x": list(names), "y": numbers(values), "hovertemplate": "%{x}: %{y:,}<extra></extra>"}
    return [figure(said, [bar], 320, x=x, y=y, xaxis={"type": "category"})]


def matrix(said: str, pairs: Sequence[Mapping[str, Any]], by: str) -> list[Figure]:
    """Return a matrix of pairs of columns. by: the key of the share that colours show."""
    names = list(dict.fromkeys(pair[key] for key in ("column_1", "column_2") for pair in pairs))[:MOST_COLUMNS]
    place = {name: number for number, name in enumerate(names)}
    shares: list[list[float | None]] = [[None] * len(names) for _ in names]
    bits: list[list[str]] = [[""] * len(names) for _ in names]
    for pair in pairs:
        one, other = place.get(pair["column_1"]), place.get(pair["column_2"])
        if one is not None and other is not None:
            for row, column in ((one, other), (other, one)):
                shares[row][column] = number(100 * pair[by])
                bits[row][column] = f"{pair['joint_entropy']:.2f} bits together"
    shown = labels(names)
    trace = {
        "type": "heatmap",
        "x": shown,
        "y": shown,
        "z": shares,
        "text": bits,
        "zmin": 0,
        "colorbar": {"title": {"text": "%"}, "thickness": 12},
        "hovertemplate": "<b>%{x}</b> and <b>%{y}</b><br>%{z} % of rows unique<br>%{text}<extra></extra>",
    }
    axes: dict[str, Any] = {"xaxis": {"type": "category"}, "yaxis": {"type": "category", "autorange": "reversed"}}
    return [figure(said, [trace], 160 + 22 * len(names), **axes)]


def points(
    said: str, groups: Mapping[str, Sequence[tuple[Any, Any, str]]], x: str, y: str, lines: bool = False
) -> list[Figure]:
    """Return points (x, y, text) by group; with lines between them."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers" if lines else "markers",
            "name": name,
            "x": [point[0] for point in of_group],
            "y": numbers(point[1] for point in of_group),
            "text": [escape(point[2], quote=False) for point in of_group],
            "marker": {"size": 9, "symbol": symbol},
            "hovertemplate": "%{text}<br>%{x}, %{y}<extra>%{fullData.name}</extra>",
        }
        for symbol, (name, of_group) in zip(("circle", "x", "star"), groups.items(), strict=False)
        if of_group
    ]
    return [figure(said, data, 360, x=x, y=y)]
