"""CIG and CSF from a file to a file with pandas or Polars.

`python -m benchmarks.frame_files pandas|polars TABLE OUTPUT`: read, score and write in one process, as the best user of
the library would: see `peers` for the scoring; pandas reads CSV by pyarrow, and Polars text as categories. Both files
are Parquet or CSV, as their names say.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def score_with_pandas(table: Path, output: Path) -> None:
    """Read, score and write with pandas."""
    import pandas as pd

    from .peers import pandas_scores

    if table.suffix == ".csv":
        pandas_scores(pd.read_csv(table, engine="pyarrow")).to_csv(output, index=False)
    else:
        pandas_scores(pd.read_parquet(table)).to_parquet(output, index=False)


def score_with_polars(table: Path, output: Path) -> None:
    """Read, score and write with Polars, Parquet compressed by lz4, the faster of what it has.

    Rows are written as they are joined to their scores, without a frame of all scores.
    """
    import polars as pl
    import polars.selectors as cs

    from .peers import lazy_polars_scores

    scanned = pl.scan_csv(table) if table.suffix == ".csv" else pl.scan_parquet(table)
    scores = lazy_polars_scores(scanned.with_columns(cs.string().cast(pl.Categorical)).collect(engine="streaming"))
    if output.suffix == ".csv":
        scores.sink_csv(output)
    else:
        scores.sink_parquet(output, compression="lz4")


SCORED_WITH = {"pandas": score_with_pandas, "polars": score_with_polars}


def main() -> None:
    """Score, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=SCORED_WITH)
    parser.add_argument("table", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    SCORED_WITH[arguments.library](arguments.table, arguments.output)


if __name__ == "__main__":
    main()
