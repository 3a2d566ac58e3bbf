"""Configurations of nightly runs on small tables."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from gpupif.nightly.nightly_run import run

CONFIGURATION = """
[input]
path = "table"

[score]
columns = ["age", "illness"]

[risk]
quasi_identifiers = ["age"]
sensitive = ["illness"]

[[gates]]
kind = "k"
min = 1
"""
FIRST = {"age": [30, 30, 40, 40], "illness": ["flu", "cold", "flu", None], "person": [1, 2, 3, 4]}
SECOND = {"age": [40, 50, 50, 50], "illness": ["flu", "cold", "cold", "flu"], "person": [5, 6, 7, 8]}


def runs_in(state):
    """A configuration of which no more is known than where its runs are: in a state folder."""
    file = state.parent / f"{state.name}.toml"
    file.write_text(f"run.state = {json.dumps(str(state))}")
    return file


class Nights:
    """Nights of a table of two files in a folder. config: the file; more: of it, below the usual."""

    def __init__(self, folder: Path, more: str = "", configuration: str = CONFIGURATION) -> None:
        self.folder, self.table, self.config = folder, folder / "table", folder / "risk.toml"
        self.state = folder / "gpupif-nightly"
        self.table.mkdir()
        self.write("a", FIRST)
        self.write("b", SECOND)
        self.config.write_text(configuration + more)

    def write(self, name, columns):
        """Write a file of the table."""
        pd.DataFrame(columns).to_parquet(self.table / f"{name}.parquet", index=False)

    def run(self, *overrides):
        """A run."""
        return run(self.config, overrides=overrides)
