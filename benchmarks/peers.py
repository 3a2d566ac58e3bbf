"""CIG and CSF of every cell with piflib, pandas, Polars and DuckDB, each as its best user would write it.

All collapse the table to distinct rows with counts c first. Per column then C is the sum of c over the rows that
agree on all other columns, and CIG = sum(c (log2 c - log2 prior)) / C - log2 C, CSF = |c / C - prior|; at the end the
distinct rows are joined back to all rows.

Measured on 1 M rows of the synthetic census (2 cores), slower ways left out: Polars windows over all rows 2.1 s,
distinct rows with group-by and join 1.6 s, windows over distinct rows in memory 2.1 s, streaming 0.8 s (kept). DuckDB
group-by and join 6.3 s, windows 6.5 s (kept, the shorter). pandas group-by transform over distinct rows 1.6 s (kept).
Of gpupif's own idea, keys packed by hand into one integer, the fastest way without compiled code is windows over them
in Polars (kept as "packed", for tables whose columns fit into 63 bits); NumPy with `pd.factorize` takes twice as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .duckdb_files import cig_csf_query

Floats = npt.NDArray[np.float64]
Arrays = dict[str, Floats]


def polars_table(frame: pd.DataFrame) -> Any:
    """Return the table as a Polars user has it: labels are Enums."""
    import polars as pl

    columns = []
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            labels = pl.Enum([str(label) for label in column.cat.categories])
            columns.append(pl.Series(name, column.astype(str).to_numpy()).cast(labels))
        else:
            columns.append(pl.Series(name, column.to_numpy()))
    return pl.DataFrame(columns)


def polars_scores(table: Any) -> Any:
    """Compute the scores by window functions over distinct rows, in the streaming engine."""
    return lazy_polars_scores(table).collect(engine="streaming")


def lazy_polars_scores(table: Any) -> Any:
    """Compute the scores of distinct rows; they are joined back to all rows only when the result is collected."""
    import polars as pl

    names, rows, c = table.columns, table.height, pl.col("_c")
    distinct = table.lazy().group_by(names).agg(_c=pl.len().cast(pl.Float64)).collect(engine="streaming").lazy()
    terms = distinct.with_columns((c.sum().over(name) / rows).alias(f"_p{name}") for name in names).with_columns(
        (c * (c.log(2) - pl.col(f"_p{name}").log(2))).alias(f"_t{name}") for name in names
    )
    scores = []
    for name in names:
        others = [other for other in names if other != name]
        size = c.sum().over(others)
        scores.append((pl.col(f"_t{name}").sum().over(others) / size - size.log(2)).alias(f"cig_{name}"))
        scores.append((c / size - pl.col(f"_p{name}")).abs().alias(f"csf_{name}"))
    of_distinct = terms.select(*names, *scores).collect(engine="streaming").lazy()
    joined = table.lazy().join(of_distinct, on=names, how="left", maintain_order="left")
    return joined.select(pl.exclude(names))


def duckdb_table(frame: pd.DataFrame) -> Any:
    """Return an Arrow table: labels are dictionaries, which DuckDB reads without conversion."""
    import pyarrow as pa

    return pa.Table.from_pandas(frame)


def duckdb_scores(table: Any) -> Any:
    """Compute the scores in one query: windows over distinct rows, joined back, in the order of the rows."""
    import duckdb

    query = cig_csf_query(table.column_names, table.num_rows, '"table"')
    with duckdb.connect() as connection:
        connection.register("table", table)
        return connection.sql(query).to_arrow_table()


def pandas_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute the scores by group-by transforms over distinct rows, and merge them back."""
    names = list(frame.columns)
    distinct = frame.groupby(names, sort=False, observed=True).size().rename("_c").reset_index()
    counts = distinct["_c"]
    logs = np.log2(counts)
    for name in names:
        prior = distinct[name].map(frame[name].value_counts(normalize=True)).astype(float)
        terms = pd.DataFrame({"size": counts, "sum": counts * (logs - np.log2(prior))})
        others = [distinct[other] for other in names if other != name]
        sums = terms.groupby(others, sort=False, observed=True).transform("sum")
        distinct[f"cig_{name}"] = sums["sum"] / sums["size"] - np.log2(sums["size"])
        distinct[f"csf_{name}"] = (counts / sums["size"] - prior).abs()
    return frame.merge(distinct.drop(columns="_c"), on=names, how="left").drop(columns=names)


def packed_scores(table: Any) -> Any:
    """Compute the scores from codes packed by hand into one integer, so that each window is over a single column."""
    import polars as pl

    names, rows, c = table.columns, table.height, pl.col("_c")
    codes = {
        name: (column.to_physical() if column.dtype == pl.Enum else column.rank("dense") - 1).cast(pl.Int64)
        for name, column in zip(names, table.get_columns(), strict=True)
    }
    cardinalities = [int(codes[name].max()) + 1 for name in names]
    scales = [math.prod(cardinalities[:place]) for place in range(len(names))]
    if math.prod(cardinalities) >= 2**63:
        raise OverflowError("the columns do not fit into one 64-bit key")
    packed = pl.DataFrame(codes).select(_k=pl.sum_horizontal(pl.col(n) * s for n, s in zip(names, scales, strict=True)))
    distinct = packed.lazy().group_by("_k").agg(_c=pl.len().cast(pl.Float64)).collect(engine="streaming").lazy()
    fields = list(zip(names, scales, cardinalities, strict=True))
    terms = (
        distinct.with_columns((pl.col("_k") // scale % number).alias(name) for name, scale, number in fields)
        .with_columns((c.sum().over(name) / rows).alias(f"_p{name}") for name in names)
        .with_columns((c * (c.log(2) - pl.col(f"_p{name}").log(2))).alias(f"_t{name}") for name in names)
        .with_columns((pl.col("_k") - pl.col(name) * scale).alias(f"_g{name}") for name, scale, _ in fields)
    )
    scores = []
    for name in names:
        cohort = f"_g{name}"
        size = c.sum().over(cohort)
        scores.append((pl.col(f"_t{name}").sum().over(cohort) / size - size.log(2)).alias(f"cig_{name}"))
        scores.append((c / size - pl.col(f"_p{name}")).abs().alias(f"csf_{name}"))
    of_distinct = terms.select("_k", *scores).collect(engine="streaming").lazy()
    joined = packed.lazy().join(of_distinct, on="_k", how="left", maintain_order="left")
    return joined.select(pl.exclude("_k")).collect(engine="streaming")


def piflib_scores(frame: pd.DataFrame) -> pd.DataFrame:
    """Compute CIG and CSF by the two functions of piflib."""
    import piflib

    cigs, csfs = piflib.compute_cigs(frame), piflib.compute_csfs(frame)
    both: pd.DataFrame = pd.concat([cigs.add_prefix("cig_"), csfs.add_prefix("csf_")], axis=1)
    return both


def as_arrays(result: Any, columns: list[str]) -> Arrays:
    """Return a result of any contender as {"cig", "csf"}: arrays (rows, columns)."""
    return {
        measure: np.column_stack([np.asarray(result[f"{measure}_{name}"]) for name in columns])
        for measure in ("cig", "csf")
    }


def _as_it_is(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


# Name to: how the table gets into the library (not timed), and what is timed.
PEERS: dict[str, tuple[Callable[[pd.DataFrame], Any], Callable[[Any], Any]]] = {
    "pandas": (_as_it_is, pandas_scores),
    "polars": (polars_table, polars_scores),
    "duckdb": (duckdb_table, duckdb_scores),
    "packed": (polars_table, packed_scores),
    "piflib": (_as_it_is, piflib_scores),
}
