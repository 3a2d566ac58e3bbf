"""Benchmark results as a table and as a plot."""

from __future__ import annotations

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
    table = Table("table", "rows", "columns", "contender", "seconds", "ns a cell", "peak GiB")
    for result in document["results"]:
        cells = result["rows"] * result["columns"]
        table.add_row(
            result["table"],
            f"{result['rows']:,}",
            str(result["columns"]),
            result["contender"],
            f"{result['seconds']:.3f}",
            f"{result['seconds'] / cells * 1e9:.1f}",
            f"{result['peak_bytes'] / 2**30:.2f}",
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
    """Seconds against rows by engine, with the time that the device's bandwidth alone would take."""
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
