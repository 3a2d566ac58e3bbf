"""Tables protected, beside the peers: `python -m benchmarks.protect`.

Searches for the least recoding that makes a table k-anonymous, on adult and on a census of 1.19 million rows, and for
the least that meets criteria on sensitive attributes, with rows suppressed and without, beside
ARX (`--arx FOLDER`, a checkout of its source, compiled with a JDK; else beside what ARX published, on another machine);
what a criterion of another kind takes; advice; value maps beside Polars; files; randomized response; comparison; cells
suppressed; with `--large` 100 million rows within 2 GiB. Each part runs in a process of its own: seconds of the first
run there and of the best of several. Of adult (`--adult FOLDER`, with adult.csv and adult_hierarchies/) what ARX's
tests expect is found again. Writes benchmarks/results/protect.json; exit code 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .arx import Arx
from .protect_parts import PARTS, SEARCH, Setting
from .protect_tables import SearchTable, adult, census_for_search
from .surroundings import RESULTS, surroundings

ROOT = Path(__file__).parent.parent
PACKAGES = ("gpupif", "numpy", "numba", "pandas", "pyarrow", "polars")
ADULT = ROOT.parent / "shared" / "data"
# Parts that need the adult table, and that are only run where they are asked for.
OF_ADULT, ASKED = ("optima", "classes", "utility"), ("large",)
# Parts with searches that ARX does too.
WITH_ARX = ("optima", "classes", "search")
SEARCH_ROWS, SEARCH_COLUMNS = 1_193_504, 8
# Of a search that ARX published in 2014: seconds on its machine, and checks.
PUBLISHED = {"optima": ("adult, 8 columns", 0.027, 115), "search": ("IHIS, 1.19 M rows x 8", 2.48, 219)}
# Relative to the loss: how far that of the optimum may be from ARX's, which adds up in another order.
SAME_LOSS = 1e-9


def run_part(part: str, arguments: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Run a part in a process of its own, and return its figures."""
    job = {
        "part": part,
        "share": arguments.share,
        "seconds": arguments.seconds,
        "adult": None if arguments.adult is None else str(arguments.adult),
        "temp": str(folder),
    }
    file = folder / f"{part}.json"
    file.write_text(json.dumps(job))
    command = [sys.executable, "-m", "benchmarks.protect_parts", str(file)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"benchmarks.protect: {part} ended with exit code {done.returncode}.")
    figures: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return [{"part": part, **one} for one in figures]


def beside_arx(figures: list[dict[str, Any]], arx: Arx, table: SearchTable, seconds: float) -> None:
    """Add to each search of a table the time that ARX takes for it, and whether it finds the same."""
    for figure in figures:
        if "search" in figure:
            criteria, suppressed, columns = figure["search"]
            hierarchies = {name: table.hierarchies[name] for name in columns}
            found = arx.search(table.file, hierarchies, criteria, suppressed, seconds)
            figure["arx"] = found
            if "best" in found:
                found["ratio"] = found["best"] / figure["best"]
                found["same"] = found["loss"] is not None and abs(found["loss"] - figure["loss"]) <= (
                    SAME_LOSS * abs(found["loss"])
                )


def with_goals(figures: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures, each with whether its goal holds, None if it has no goal."""
    return [
        {**figure, "holds": None if figure["most"] is None else figure["value"] <= figure["most"]} for figure in figures
    ]


def line(figure: dict[str, Any]) -> str:
    """Format a figure as a line."""
    goal = "" if figure["most"] is None else f"(at most {figure['most']:.4g})"
    first = f"first {figure['first']:.3f}" if "first" in figure else ""
    missed = "MISSED" if figure["holds"] is False else ""
    return f"{missed:6} {figure['value']:10.4g} {figure['unit']:6} {goal:16} {first:13} {figure['what']}" + _peer(
        figure
    )


def table_of(figures: list[dict[str, Any]]) -> list[str]:
    """Format the figures that have a goal as a Markdown table."""
    lines = ["| | goal | measured | |", "|---|---:|---:|---|"]
    for figure in figures:
        if figure["most"] is not None:
            shown = [f"{figure[name]:.4g} {figure['unit']}".strip() for name in ("most", "value")]
            lines.append(f"| {figure['what']} | {' | '.join(shown)} | {'' if figure['holds'] else 'missed'} |")
    return lines


def _peer(figure: dict[str, Any]) -> str:
    """Describe in words how ARX did the same search; empty if it was not run."""
    arx = figure.get("arx")
    if arx is None:
        return ""
    if "failed" in arx:
        return f"; ARX failed: {arx['failed']}"
    same = "the same optimum" if arx["same"] else f"ANOTHER OPTIMUM, loss {arx['loss']}"
    return (
        f"; ARX first {arx['first']:.3f} s, best {arx['best']:.3f} s, {arx['checks']:,} checks: "
        f"{arx['ratio']:.2f} times, {same}"
    )


def main() -> None:
    """Run, check, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--adult", type=Path, help="folder of adult.csv (default: ../shared/data, where it is there)")
    parser.add_argument("--arx", type=Path, help="a checkout of ARX, to run it beside (docs/explanation/benchmarks.md)")
    parser.add_argument("--large", action="store_true", help="also 100 million rows within 2 GiB: some minutes more")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of all tables but adult (default: 1)")
    parser.add_argument("--seconds", type=float, default=3.0, help="run each work at least so long (default: 3)")
    parser.add_argument("--temp", type=Path, help="folder for tables")
    parser.add_argument("--out", type=Path, default=RESULTS / "protect.json", help="file for the results")
    arguments = parser.parse_args()
    # What is started does not outlive a run that is told to end, nor do its files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    of_adult = adult(arguments.adult or ADULT)
    if of_adult is not None:
        arguments.adult = arguments.adult or ADULT
    elif arguments.adult is not None:
        sys.exit(f"benchmarks.protect: --adult: {arguments.adult} lacks adult.csv, or one of adult_hierarchies/.")
    parts = arguments.only or [part for part in PARTS if part not in ASKED or arguments.large]
    if arguments.adult is None and (skipped := [part for part in parts if part in OF_ADULT]):
        print(f"skipped: {', '.join(skipped)}, for there is no adult.csv; name its folder with --adult.")
        parts = [part for part in parts if part not in OF_ADULT]
    figures: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=arguments.temp, prefix="gpupif-protect-") as name:
        folder = Path(name)
        arx = None
        if arguments.arx is not None and set(parts) & set(WITH_ARX):
            arx = Arx.compile(arguments.arx, folder / "arx")
        if SEARCH in parts:
            rows = Setting(arguments.share, 0, None, folder).rows(SEARCH_ROWS)
            census_for_search(folder / SEARCH, rows, SEARCH_COLUMNS)
        for part in parts:
            found = run_part(part, arguments, folder)
            if arx is not None and part in WITH_ARX:
                table = of_adult if part in OF_ADULT else SearchTable.from_folder(folder / SEARCH)
                assert table is not None
                beside_arx(found, arx, table, arguments.seconds)
            figures += with_goals(found)
            for figure in figures[len(figures) - len(found) :]:
                print(line(figure), flush=True)
            if arx is None and part in PUBLISHED:
                table_name, seconds, checks = PUBLISHED[part]
                print(f"ARX was not run (--arx); published in 2014, {table_name}: {seconds} s, {checks} checks.")
    print("\n" + "\n".join(table_of(figures)))
    document: dict[str, Any] = {**surroundings(PACKAGES), "share": arguments.share, "figures": figures}
    document["arx"] = {"published": PUBLISHED} if arx is None else {"version": arx.version, "java": arx.java}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    sys.exit(any(figure["holds"] is False for figure in figures))


if __name__ == "__main__":
    main()
