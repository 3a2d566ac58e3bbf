"""Kernels for the CPU, compiled once before the workers of pytest-xdist start: each would compile the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# A third of the work each, about a minute of a core.
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
TREATED = """
import tempfile
import gpupif
from gpupif import treatments as by
from gpupif.datasets import census
table = census(80, columns=5).assign(income=range(80))
gpupif.set_config(device="cpu")
known = {"quasi_identifiers": ["age", "sex"], "sensitive": "region"}
criteria = ["k>=2", "distinct_l>=2", "t<=0.9", "alpha<=0.9", "max csf(region)<=1"]
aside = {"keep": [name for name in table if name not in ("age", "sex", "region")]}
gpupif.protect(table, criteria, hierarchies={"age": {"widths": [10, 20]}}, suppress=0.2, **known, **aside)
drawn = [by.RandomizedResponse("sex", keep=0.5), by.Noise("income", scale=9), by.RankSwap(["age"], reach=0.1)]
drawn += [by.Swap(["region"], within=["sex"], share=0.4), by.MicroaggregateTogether(["income"], k=3)]
treated = gpupif.treat(table, [*drawn, by.Suppress(["age", "sex"], k=2)], key=b"a key of thirty-two bytes, or so").table
gpupif.compare(table, treated, linkage="exact", **known)
with tempfile.TemporaryDirectory() as folder, gpupif.config(memory_limit="8GiB"):
    table.to_csv(f"{folder}/in.csv", index=False)
    gpupif.score_files(f"{folder}/in.csv", f"{folder}/out.csv", ["cig", "csf"])
"""


def compile_if_cold(folder: str) -> None:
    """Have three processes compile what most tests run, where nothing in the cache folder is compiled yet."""
    if not folder or next(Path(folder).rglob("*.code"), None) is not None:
        return
    running = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code]) for code in (SCORES, OTHERS, TREATED)]
    failed = [process.args[-1] for process in running if process.wait() != 0]
    if failed:
        raise RuntimeError(f"kernels could not be compiled by: {failed[0]}")
