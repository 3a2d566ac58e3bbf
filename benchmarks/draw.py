"""Benchmark results as a table and as a plot."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

COLOURS = {
    "gpupif": "#c0392b",
    "polars": "#2471a3",
    "duckdb": "#b7950b",
    "pandas": "#6c3483",
    "packed": "#1e8449",
    "piflib": "#707b7c",
}


def print_results(document: dict[str, Any]) -> None:
    """Print times by table and contender, then the figures that are held to something."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table("table", "rows", "columns", "contender", "first", "best", "ns a cell", "peak GiB", "page faults")
    for result in document["results"]:
        cells = result["rows"] * result["columns"]
        table.add_row(
            result["table"],
            f"{result['rows']:,}",
            str(result["columns"]),
            result["contender"],
            f"{result['first']:.3f}",
            f"{result['seconds']:.3f}",
            f"{result['seconds'] / cells * 1e9:.1f}",
            f"{result['peak_bytes'] / 2**30:.2f}",
            f"{result['page_faults'][0]:,}",
        )
    console.print(table)
    for name, value in document["goals"].items():
        console.print(f"{value:10.2f}  {name}", highlight=False)
    console.print(f"Largest difference between any two contenders: {document['largest_difference']:.1e}")


def draw_times(document: dict[str, Any], file: Path) -> None:
    """Plot seconds against rows, both logarithmic, a line a contender."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gpupif"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    names = dict.fromkeys(result["contender"] for result in document["results"])
    for name in names:
        points = sorted(
            (result["rows"], result["seconds"])
            for result in document["results"]
            if result["contender"] == name and result["table"] == "census"
        )
        rows, seconds = zip(*points, strict=True)
        axes.plot(rows, seconds, "o-", color=COLOURS.get(name), linewidth=2.5 if name == "gpupif" else 1.5)
        axes.annotate(f" {name} {seconds[-1]:.3g} s", (rows[-1], seconds[-1]), color=COLOURS.get(name), va="center")
    axes.set(xscale="log", yscale="log", xlabel="rows (10 columns)", ylabel="seconds, frame in to scores out")
    axes.set_title(f"CIG and CSF of every cell: {document['machine']['CPU']}", fontsize=10)
    axes.margins(x=0.2)
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


def draw_scaling(document: dict[str, Any], file: Path) -> None:
    """Plot seconds against rows by engine, with the time that the device's bandwidth alone would take."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gpupif"
    from matplotlib import pyplot as plt

    timed = [result for result in document["results"] if "seconds" in result]
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for engine in sorted({result["engine"] for result in timed}):
        points = [(result["rows"], result["seconds"]) for result in timed if result["engine"] == engine]
        axes.plot(*zip(*points, strict=True), marker="o", label=engine)
    floor = sorted({(result["rows"], result["floor"]) for result in timed})
    axes.plot(*zip(*floor, strict=True), linestyle="--", color="grey", label="bandwidth floor")
    axes.set(xscale="log", yscale="log", xlabel="rows (10 columns)", ylabel="seconds", title=document["device"])
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


# What `python -m benchmarks.scale` compares: its name there, how it is called, its colour.
SCALED = {
    "gpupif": ("gpupif, {limit}", "#c0392b"),
    "gpupif in memory": ("gpupif in memory", "#e59866"),
    "duckdb": ("DuckDB, {limit}", "#b7950b"),
}


def scale_table(document: dict[str, Any]) -> str:
    """Format results of `python -m benchmarks.scale` as a Markdown table; a failed run says why it failed."""
    limit = f"{document['options']['memory_limit'] / 2**30:.3g} GiB"
    results = {(result["contender"], result["rows"]): result for result in document["results"]}
    names = [name for name in SCALED if any(contender == name for contender, _ in results)]
    header = ["rows"]
    for name in names:
        header += [SCALED[name][0].format(limit=limit), "peak memory"]
        header += ["temporary files", "scores"] if name == "gpupif" else []
    lines = [header, ["---"] * len(header)]
    for rows in sorted({rows for _, rows in results}):
        cells = [_scale_cells(name, results.get((name, rows), {})) for name in names]
        lines.append([f"{rows:,}", *chain.from_iterable(cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _scale_cells(name: str, result: dict[str, Any]) -> list[str]:
    done = result.get("state") == "done"
    cells = [f"{result['seconds']:.1f} s" if done else result.get("state", ""), _gibibytes(result.get("peak_bytes"))]
    if name == "gpupif":
        cells += [_gibibytes(result.get("temporary_bytes")), _gibibytes(result.get("output_bytes"))]
    return cells


def _gibibytes(size: float | None) -> str:
    return "" if size is None else f"{size / 2**30:.2f} GiB"


def draw_scale(document: dict[str, Any], file: Path) -> None:
    """Plot seconds and peak memory against rows, side by side, a line a contender, the memory limit dashed."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "gpupif"
    from matplotlib import pyplot as plt

    limit = document["options"]["memory_limit"] / 2**30
    figure, (times, memories) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    for name, (label, colour) in SCALED.items():
        points = [
            (result["rows"], result["seconds"], result["peak_bytes"] / 2**30)
            for result in document["results"]
            if result["contender"] == name and result["state"] == "done"
        ]
        if points:
            rows, seconds, peaks = zip(*points, strict=True)
            style = {"color": colour, "linewidth": 2.5 if name == "gpupif" else 1.5, "marker": "o"}
            times.plot(rows, seconds, label=label.format(limit=f"{limit:.3g} GiB"), **style)
            memories.plot(rows, peaks, **style)
    memories.axhline(limit, linestyle="--", color="grey")
    memories.annotate(
        f"limit {limit:.3g} GiB", (0.02, limit), xycoords=("axes fraction", "data"), va="bottom", color="grey"
    )
    times.set(xscale="log", yscale="log", ylabel="seconds, files in to files out")
    memories.set(xscale="log", ylabel="peak memory of all processes, GiB", ylim=(0, None))
    times.legend(frameon=False, loc="lower right")
    for axes in (times, memories):
        axes.set(xlabel="rows (10 columns)")
        axes.grid(alpha=0.3)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(
        f"From Parquet to Parquet, {document['options']['cores']} cores: {document['machine']['CPU']}", fontsize=10
    )
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
