"""Tables for `benchmarks.protect`: adult, if it is there, and tables as large as those of published searches."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd

from gpupif.datasets import census

from .arx import write_hierarchy

# In the order in which ARX's tests name their levels.
ADULT_COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
ADULT_ROWS = 30_162
# So many values of a column of the census are one group, level by level; all of them at the level above.
GROUPS: dict[str, tuple[int, ...]] = {
    "region": (10,),
    "age": (5, 10, 20),
    "sex": (),
    "marital_status": (2,),
    "education": (3, 6),
    "occupation": (5,),
    "birthplace": (5, 15),
    "household_size": (2,),
    "income_band": (2, 4),
    "tenure": (2,),
}


class SearchTable(NamedTuple):
    """A table in a CSV file, fields separated by semicolons, and the file with the hierarchy of each column."""

    name: str
    file: Path
    hierarchies: dict[str, Path]

    @classmethod
    def from_folder(cls, folder: Path) -> SearchTable:
        """Find the table that `census_for_search` wrote to a folder."""
        table = folder / "census.csv"
        with table.open() as file:
            columns = file.readline().strip().split(";")
        hierarchies = {column: folder / f"{column}.csv" for column in columns}
        return cls(f"census of {len(columns)} columns", table, hierarchies)

    def read(self) -> pd.DataFrame:
        """Read the columns that have a hierarchy, all as text, so that their values match the hierarchies."""
        return pd.read_csv(self.file, sep=";", dtype=str, keep_default_na=False)[list(self.hierarchies)]


def adult(folder: Path) -> SearchTable | None:
    """Find the adult table and ARX's hierarchies in a folder; None if any of the files is missing."""
    hierarchies = {column: folder / "adult_hierarchies" / f"adult_hierarchy_{column}.csv" for column in ADULT_COLUMNS}
    table = folder / "adult.csv"
    return SearchTable("adult", table, hierarchies) if all(map(Path.is_file, (table, *hierarchies.values()))) else None


def census_for_search(folder: Path, rows: int, columns: int) -> SearchTable:
    """Write a synthetic census to a folder, with hierarchies of all its columns."""
    folder.mkdir(parents=True, exist_ok=True)
    frame = census(rows, columns=columns)
    table = folder / "census.csv"
    frame.to_csv(table, sep=";", index=False)
    for column in map(str, frame):
        write_hierarchy(folder / f"{column}.csv", hierarchy_lines(frame[column], GROUPS[column]))
    return SearchTable.from_folder(folder)


def hierarchy_lines(column: pd.Series, sizes: tuple[int, ...]) -> list[list[str]]:
    """Return one line of groups for each value; `size` consecutive values form one group."""
    values = sorted(column.unique())
    return [
        [str(value), *(f"{size} values from {values[place - place % size]}" for size in sizes), "*"]
        for place, value in enumerate(values)
    ]
