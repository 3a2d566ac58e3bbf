"""CIG and CSF from a Parquet file to a Parquet file with pandas or Polars, and scores written by themselves.

`python -m benchmarks.frame_files pandas|polars TABLE OUTPUT`: read, score and write in one process, as the best user of
the library would: see `peers` for the scoring; Polars reads text as categories.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def score_with_pandas(table: Path, output: Path) -> None:
    """Read, score and write with pandas."""
    import pandas as pd

    from .peers import pandas_scores

    pandas_scores(pd.read_parquet(table)).to_parquet(output, index=False)


def score_with_polars(table: Path, output: Path) -> None:
    """Read, score and write with Polars, compressed by lz4, the faster of what it has."""
    import polars as pl
    import polars.selectors as cs

    from .peers import polars_scores

    read = pl.scan_parquet(table).with_columns(cs.string().cast(pl.Categorical)).collect(engine="streaming")
    polars_scores(read).write_parquet(output, compression="lz4")


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
