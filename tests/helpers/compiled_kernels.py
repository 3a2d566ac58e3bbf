"""Kernels for the CPU, compiled once before the workers of pytest-xdist start: each would compile the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Half of the work each, about a minute of a core.
SCORES = """
import gpupif
from gpupif.datasets import census
from gpupif.measures import MEASURES
table = census(80, columns=5)
gpupif.set_config(device="cpu")
names = [*MEASURES, "renyi_0", "renyi_0.5", "renyi_3.7", "renyi_inf", "recursive_2"]
gpupif.score(table, names)
gpupif.score(table.assign(w=[0.0, 1.5] * 40), names, weights="w")
gpupif.score(table, names, known=2)
"""
OTHERS = """
import gpupif
from gpupif.datasets import census
from gpupif.measures import MEASURES
table = census(80, columns=5)
gpupif.set_config(device="cpu")
gpupif.score(table.where(table["age"] > 30), [*MEASURES, "recursive_2"], missing="wildcard")
gpupif.score(table.iloc[:40], "cig", population=table)
gpupif.risk(table, ["age", "sex"], "region", l=2)
gpupif.toxic_pairs(table)
gpupif.suda(table, 3)
gpupif.information.total_correlation(table)
gpupif.models.population_uniques([1, 1, 2, 3], sampling_fraction=0.05)
"""


def compile_if_cold(folder: str) -> None:
    """Have two processes compile what most tests run, where nothing in the cache folder is compiled yet."""
    if not folder or next(Path(folder).rglob("*.code"), None) is not None:
        return
    running = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code]) for code in (SCORES, OTHERS)]
    failed = [process.args[-1] for process in running if process.wait() != 0]
    if failed:
        raise RuntimeError(f"kernels could not be compiled by: {failed[0]}")
