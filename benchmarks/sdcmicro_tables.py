"""The tables on which gpupif and sdcMicro are compared: those that sdcMicro ships, and generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from gpupif.datasets import census

# Of free1, what 4,000 people answered to a labour force survey, in its order.
FREE1_KEYS = [
    *("SEX", "MARSTAT", "KINDPERS", "NUMYOUNG", "NUMOLD", "AGEYOUNG", "EDUC1"),
    *("EDUC2", "ETNI", "PRIOCCU", "POSLABM", "REGJOBC", "RECBEN", "RECUNBEN"),
]
DWELLING = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
SEED = 18


@dataclass(frozen=True)
class PeerTable:
    """A CSV file, and what its columns are: key variables, and where it has them a sampling weight, a household and a
    sensitive variable. Key and sensitive variables are categories, whatever stands in the file.
    """

    name: str
    file: Path
    rows: int
    keys: tuple[str, ...]
    weight: str | None = None
    household: str | None = None
    sensitive: str | None = None

    def with_keys(self, keys: Sequence[str], name: str | None = None) -> PeerTable:
        """Return the same file with other key variables; a sensitive variable among them is not sensitive any more."""
        sensitive = None if self.sensitive in keys else self.sensitive
        return replace(self, keys=tuple(keys), name=name or self.name, sensitive=sensitive)

    def read(self, categories: bool = True) -> pd.DataFrame:
        """Read the file as a frame. categories: whether key and sensitive variables are categories."""
        labels = [*self.keys, *([self.sensitive] if self.sensitive else [])] if categories else []
        return pd.read_csv(self.file, dtype=dict.fromkeys(labels, "category"), keep_default_na=False, na_values=[""])

    def has_twins(self) -> bool:
        """Return whether two key variables have values in the same rows, in two rows or more but not in all."""
        frame = self.read()
        mark = pd.Series(np.random.default_rng(SEED).integers(2**40, size=len(frame)))
        found: set[tuple[int, int]] = set()
        for key in self.keys:
            values = mark.groupby(frame[key], observed=True).agg(["size", "sum"])
            several = values[(values["size"] > 1) & (values["size"] < len(frame))]
            same = set(several.itertuples(index=False, name=None))
            if found & same:
                return True
            found |= same
        return False


def shipped_tables(folder: Path) -> dict[str, PeerTable]:
    """Return, by name, the sdcMicro tables that R has written to the folder; amounts are cut into classes."""
    testdata = _of_file(folder, "testdata", DWELLING, "household_weights", "ori_hid", "hhcivil")
    tables = [
        testdata,
        testdata.with_keys([*DWELLING, "age"], "testdata with age"),
        _of_file(folder, "testdata2", DWELLING, "sampling_weight"),
        _of_file(folder, "free1", ["REGION", "SEX", "AGE", "MARSTAT", "EDUC1"], "WEIGHT", None, "POSLABM"),
        _of_file(folder, "francdat", ["Key1", "Key2", "Key3", "Key4"], "w"),
        _in_classes(folder, "EIA", ["UTILNAME", "STATE", "MONTH"], ["RESSALES"], 10),
        _in_classes(folder, "Tarragona", [], ["FIXED.ASSETS", "CURRENT.ASSETS", "TREASURY", "SALES", "NET.PROFIT"], 5),
        _in_classes(folder, "CASCrefmicrodata", [], ["AGI", "EMCONTRB", "FEDTAX", "INTVAL", "ERNVAL"], 6, "AFNLWGT"),
    ]
    return {table.name: table for table in tables}


def masked_tables(folder: Path) -> list[PeerTable]:
    """Return tables of numbers, shipped and generated, with masked numbers in columns that begin with "after"."""
    random = np.random.default_rng(SEED)
    shipped = {
        "CASCrefmicrodata": ["AGI", "EMCONTRB", "FEDTAX", "INTVAL", "ERNVAL"],
        "Tarragona": ["FIXED.ASSETS", "CURRENT.ASSETS", "TREASURY", "SALES", "NET.PROFIT"],
    }
    frames = {name: pd.read_csv(folder / f"{name}.csv")[columns] for name, columns in shipped.items()}
    mixed = random.normal(size=(2_000, 4)) @ random.normal(size=(4, 4))
    frames["normal"] = pd.DataFrame(mixed, columns=list("abcd"))
    tables = []
    for name, frame in frames.items():
        noise = random.normal(size=frame.shape) * frame.std().to_numpy() / 10
        after = (frame + noise).add_prefix("after ")
        tables.append(_written(folder, f"{name}, numbers", pd.concat([frame, after], axis=1), list(frame.columns)))
    return tables


def generated_census(folder: Path, rows: int, columns: int) -> PeerTable:
    """Generate the synthetic census with sampling weights, which are larger for older people."""
    frame = census(rows, seed=SEED, columns=columns)
    keys = list(frame.columns)
    frame["weight"] = np.round(np.random.default_rng(SEED).gamma(2, 20, rows) + frame["age"] / 4 + 1, 2)
    return _written(folder, f"census, {columns} columns", frame, keys, "weight")


def generated_uniform(folder: Path, rows: int, columns: int) -> PeerTable:
    """Generate independent columns of 2 to 9 values that are all equally likely: nothing is rare."""
    random = np.random.default_rng(SEED)
    frame = pd.DataFrame({f"c{place}": random.integers(0, 2 + place % 8, rows) for place in range(columns)})
    return _written(folder, f"uniform, {columns} columns", frame, list(frame.columns))


def with_missing(table: PeerTable, folder: Path, share: float) -> PeerTable:
    """Copy a table without a share of the values of its key variables; no row loses all of them."""
    frame = pd.read_csv(table.file, dtype=str, keep_default_na=False)
    random = np.random.default_rng(SEED)
    lacks = random.random((len(frame), len(table.keys))) < share
    lacks[lacks.all(axis=1), 0] = False
    frame[list(table.keys)] = frame[list(table.keys)].mask(lacks, "")
    name = f"{table.name}, {share:.0%} missing"
    file = folder / f"{name}.csv"
    frame.to_csv(file, index=False)
    return replace(table, name=name, file=file)


def equally_weighted(table: PeerTable, folder: Path) -> PeerTable:
    """Copy a census with few key variables, in which every row stands for 20 people."""
    frame = pd.read_csv(table.file, dtype=str, keep_default_na=False).assign(weight="20")
    file = folder / f"{table.name}, equal weights.csv"
    frame.to_csv(file, index=False)
    return replace(table.with_keys(["sex", "marital_status", "education", "household_size"]), file=file)


def _of_file(
    folder: Path,
    name: str,
    keys: Sequence[str],
    weight: str | None = None,
    household: str | None = None,
    sensitive: str | None = None,
) -> PeerTable:
    file = folder / f"{name}.csv"
    rows = len(pd.read_csv(file, usecols=[keys[0]]))
    return PeerTable(name, file, rows, tuple(keys), weight, household, sensitive)


def _in_classes(
    folder: Path, name: str, keys: Sequence[str], amounts: Sequence[str], classes: int, weight: str | None = None
) -> PeerTable:
    """Cut the amounts of a shipped table into several classes of about equally many rows."""
    frame = pd.read_csv(folder / f"{name}.csv")
    for amount in amounts:
        frame[amount] = pd.qcut(frame[amount], classes, labels=False, duplicates="drop")
    columns = [*keys, *amounts, *([weight] if weight else [])]
    return _written(folder, f"{name} in classes", frame[columns], [*keys, *amounts], weight)


def _written(folder: Path, name: str, frame: pd.DataFrame, keys: Sequence[str], weight: str | None = None) -> PeerTable:
    file = folder / f"{name}, {len(frame)} rows.csv"
    frame.to_csv(file, index=False)
    return PeerTable(name, file, len(frame), tuple(keys), weight)
