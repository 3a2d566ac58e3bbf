"""Special uniques of a table: the scores of its rows from their minimal sample uniques (MSUs), and a summary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gpupif.kernels.spread import look_up

from ..errors import InputError
from ..io.write import check_output, row_groups, write_tables
from ..marginals.coded_table import CodedTable
from ..results.riskiest import highest
from ..rows.threads import Workers
from ..utils.display import (
    Displayable,
    Heading,
    as_cell,
    as_part,
    as_percent,
    as_text,
    draw_line,
    draw_table,
    draw_verdict,
    highest_place,
    plural,
    quoted,
)
from ..utils.redaction import as_count
from ..utils.validation import check_path, whole_number
from .minimal_uniques import Uniques
from .request import SudaRequest
from .scoring import dis_suda, estimated_intrusion, intrusion, suda_scores

if TYPE_CHECKING:
    from rich.console import Console

TOP_ROWS = 10
HEADS = {
    "msus": "MSUs",
    "smallest": "rows with none smaller",
    "contribution": "share of scores",
    "suda": "SUDA score",
    "dis_suda": "DIS-SUDA, 0 to 1",
}
SHARES = "Share of all scores from MSUs with a column"


@dataclass(frozen=True)
class SudaSummary(Displayable):
    """The special uniques of a table, summed up; made by `SpecialUniques.summary`. Prints as tables.

    rows: int. Rows of the table.
    unique_rows: int. See `SpecialUniques`; missing values of a column are always a value of their own here.
    missing: str. How missing values were read: an argument of `gpupif.suda`.
    scored_rows: int. Rows with a score above 0.
    max_size: int. The most columns of a set.
    dis: float. See `SpecialUniques`; None without a sampling fraction or weights.
    sizes: frame, one row for each size of MSUs. msus: MSUs of all rows. rows: rows with at least one MSU of this size.
        smallest: rows with an MSU of this size and none of fewer columns.
    columns: frame, one row for each column. msus: MSUs with the column. contribution: the share of the sum of all
        scores that comes from these MSUs, 0 to 1, as in sdcMicro's suda2. An MSU counts for each of its columns, so
        the shares of all columns can add up to more than 1.
    top: frame. The rows with the highest scores, see `SpecialUniques.top`.
    """

    rows: int
    unique_rows: int
    missing: str
    scored_rows: int
    max_size: int
    dis: float | None
    sizes: pd.DataFrame
    columns: pd.DataFrame
    top: pd.DataFrame

    def __repr__(self) -> str:
        return f"<SudaSummary of {self.rows:,} {plural(self.rows, 'row')}: {self.scored_rows:,} with a score>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        by = "1 column" if self.max_size == 1 else f"any {self.max_size} or fewer"
        who = f"An attacker who knows {by} of {len(self.columns)} columns singles out"
        counted = " with missing values as one value more" if self.missing in ("ignore", "wildcard") else ""
        if redact:
            # Also that 1 column is enough, or that a single row is unique, tells how many rows have a value.
            some, unique = (as_count(rows, self.rows) for rows in (self.scored_rows, self.unique_rows))
            return [f"{who} {some} of {self.rows:,} rows.", f"Rows unique on all columns{counted}: {unique}."]
        said = [
            f"{who} {self.scored_rows:,} of {self.rows:,} {plural(self.rows, 'row')} "
            f"({as_part(self.scored_rows / self.rows)})."
        ]
        if self.scored_rows:
            place = next(place for place, rows in enumerate(self.sizes["smallest"]) if rows)
            size, number = place + 1, int(self.sizes["smallest"].iloc[place])
            most = self.columns.index[highest_place(self.columns["contribution"])]
            share = as_part(self.columns["contribution"].max())
            said.append(
                f"{size} {plural(size, 'column')} {'is' if size == 1 else 'are'} enough for {number:,} "
                f"{plural(number, 'row')}; {quoted(most)} has part in {share} of all scores."
            )
        unique = f"{self.unique_rows:,} {plural(self.unique_rows, 'row')} unique on all columns{counted}"
        match = "" if self.dis is None else f"; a match with one is right with probability {as_part(self.dis)} (DIS)"
        return [*said, f"{unique}{match}."]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        top = self.top
        if "index" in top and (top["index"] == top["row"]).all():
            top = top.drop(columns="index")
        # Sizes above the largest MSU say nothing, and are many if all sets were searched: they are not shown.
        largest = int(self.sizes.index[self.sizes["msus"] > 0].max()) if self.scored_rows else 0
        top = top.drop(columns=[f"msu_{size}" for size in self.sizes.index if size > largest], errors="ignore")
        for title, frame in (
            ("Minimal sample uniques (MSUs) by their columns", self.sizes.loc[:largest].reset_index(names="columns")),
            (SHARES, self.columns.reset_index()),
            ("Rows at the highest risk, by their SUDA score", top),
        ):
            if len(frame):
                first, *others = map(str, frame.columns)
                headings = [Heading(first, text=first != "row", show=as_cell if first == "row" else as_text)]
                for name in others:
                    head = HEADS.get(name) or name.replace("msu_", "MSUs of ")
                    headings.append(Heading(head, show=as_percent if name == "contribution" else as_cell))
                console.print()
                console.print(draw_table(title, headings, frame.itertuples(index=False, name=None)))
            if title == SHARES and self.columns["contribution"].sum() > 1:
                draw_line(console, "An MSU counts for each of its columns: shares add up to more than 100 %.", "dim")


class SpecialUniques:
    """The minimal sample uniques (MSUs) and SUDA scores of all rows of a table; made by `gpupif.suda`.

    All frames are of the kind of the table, with its rows and index.

    columns: list of names. The key variables.
    max_size: int. The most columns of a set.
    rows: int. Rows of the table.
    unique_rows: int. Rows that differ from all other rows on all columns together; missing values of a column are a
        value of their own here.
    dis: float. The probability that a match with a unique row is right (DIS), 0 to 1; None without a sampling fraction
        or weights.
    weights: tuple of floats. The number that an MSU of 1, 2, ... columns adds to a score.
    spilled_bytes: int. Bytes that went to a temporary file because memory had no room.
    seconds: dict. Wall time by stage.
    """

    def __init__(
        self,
        coded: CodedTable,
        found: Uniques,
        request: SudaRequest,
        seconds: Mapping[str, float],
        source: Any = None,
    ) -> None:
        self._source = source
        weights = request.set_weights(len(coded.columns))
        self.columns = coded.names
        self.max_size = len(weights)
        self.rows = coded.rows
        self.seconds = dict(seconds)
        self.unique_rows = found.unique
        self.weights = tuple(weights)
        self.spilled_bytes = found.found.spilled
        self._missing = request.missing
        self._frame = coded.frame
        self._number, self._found = found.number, found.found
        self._scores = suda_scores(self._found.counts, weights)
        self.dis: float | None = None
        self._dis_scores: npt.NDArray[np.float64] | None = None
        if request.sampling_fraction is not None:
            self.dis = intrusion(self.unique_rows, found.pairs, request.sampling_fraction)
        elif found.pair_people is not None:
            self.dis = estimated_intrusion(self.unique_rows, found.pairs, found.pair_people)
        if self.dis is not None:
            self._dis_scores = dis_suda(self._scores, self.unique_rows, self.dis, len(self.columns))

    def __repr__(self) -> str:
        scored = int((self._scores > 0).sum())
        return (
            f"<{type(self).__name__} of {self.rows:,} {plural(self.rows, 'row')} x {len(self.columns)} "
            f"{plural(len(self.columns), 'column')}, sets of up to {self.max_size}: {scored:,} "
            f"{plural(scored, 'row')} with a score>"
        )

    def _repr_html_(self) -> str:
        """Return the summary as notebooks show it."""
        return self.summary()._repr_html_()

    def _of_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return values of all rows. values: of records, see `Uniques`."""
        out = np.empty(self.rows, values.dtype)
        number = self._number
        with Workers() as workers:
            workers.run(lambda a, b: look_up(values, number[a:b], out[a:b]), workers.ranges(self.rows))
        return out

    # These three return values of records as frames of all rows.

    def _series(self, values: npt.NDArray[Any], name: str) -> Any:
        return self._frame.series(self._of_rows(values), name)

    def _named(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        return self._frame.named({name: self._of_rows(values) for name, values in columns.items()})

    def _wrap(self, values: Sequence[npt.NDArray[Any]]) -> Any:
        columns = np.empty((len(values), self.rows))
        for column, own in zip(columns, values, strict=True):
            column[:] = self._of_rows(own)
        return self._frame.wrap(columns, self.columns)

    @property
    def score(self) -> Any:
        """The SUDA score of each row, a series; 0 if no set of up to max_size columns singles the row out."""
        return self._series(self._scores, "suda")

    @property
    def dis_score(self) -> Any:
        """The DIS-SUDA score of each row, a series of probabilities, 0 to 1.

        Raises InputError without a sampling fraction or weights.
        """
        if self._dis_scores is None:
            raise InputError(
                "sampling_fraction: DIS-SUDA scores need it, or weights: gpupif.suda(table, sampling_fraction=0.01)."
            )
        return self._series(self._dis_scores, "dis_suda")

    @property
    def msus(self) -> Any:
        """The number of MSUs of each row by their size: a frame with columns msu_1, msu_2, ... (int32)."""
        counts = self._found.counts.astype(np.int32)
        return self._named({f"msu_{size}": each for size, each in enumerate(counts, 1)})

    @property
    def contributions(self) -> Any:
        """The share of each row's score that comes from MSUs with each column: a frame of the columns, 0 to 1.

        An MSU counts for each of its columns, so the shares of a row can add up to more than 1. Raises InputError
        unless `gpupif.suda` was called with contributions=True.
        """
        if not self._found.shares.size:
            raise InputError("contributions: they were not asked for. Add contributions=True to gpupif.suda.")
        scores = np.where(self._scores > 0, self._scores, 1.0)
        return self._wrap([self._found.shares[:, place] / scores for place in range(len(self.columns))])

    def top(self, n: int = 20) -> pd.DataFrame:
        """Return the n rows with the highest scores above 0. Among equal scores the first rows are taken.

        Columns: row (its position, from 0), index (its label; pandas and cuDF only), suda, dis_suda (if there is a
        DIS), msu_1, msu_2, ... Raises InputError if n is no whole number from 1.
        """
        n = whole_number("top", n, "rows")
        with self._frame.active():
            index = self._frame.host_index()
        rows = self._number.rows
        riskiest = highest(self._scores[1:], n) if len(rows) else []
        records = []
        for score, place in sorted(riskiest, key=lambda pair: (-pair[0], pair[1])):
            if score > 0:
                row, distinct = int(rows[place]), place + 1
                record: dict[str, Any] = {"row": row} if index is None else {"row": row, "index": index[row]}
                record["suda"] = score
                if self._dis_scores is not None:
                    record["dis_suda"] = float(self._dis_scores[distinct])
                records.append(
                    record | {f"msu_{size}": int(each[distinct]) for size, each in enumerate(self._found.counts, 1)}
                )
        return pd.DataFrame.from_records(records)

    def summary(self, top: int = TOP_ROWS) -> SudaSummary:
        """Return how many rows have MSUs, by size and by column, and the `top` rows with the highest scores."""
        # Rows that are equal to others have no MSU.
        sizes, without = [], np.ones(self._found.counts.shape[1], np.bool_)
        for size, counts in enumerate(self._found.counts, 1):
            has = counts > 0
            sizes.append(
                {
                    "size": size,
                    "msus": int(counts.sum(dtype="int64")),
                    "rows": int(has.sum()),
                    "smallest": int((has & without).sum()),
                }
            )
            without = without & ~has
        # Python adds whole numbers exactly, whatever their size.
        msus = self._found.by_column.tolist()
        weights = [int(weight) for weight in self.weights]
        total = sum(map(mul, weights, (record["msus"] for record in sizes))) or 1
        columns = [
            {
                "msus": sum(of_size[place] for of_size in msus),
                "contribution": sum(map(mul, weights, (of_size[place] for of_size in msus))) / total,
            }
            for place in range(len(self.columns))
        ]
        return SudaSummary(
            rows=self.rows,
            unique_rows=self.unique_rows,
            missing=self._missing,
            scored_rows=int((self._scores > 0).sum()),
            max_size=self.max_size,
            dis=self.dis,
            sizes=pd.DataFrame.from_records(sizes).set_index("size"),
            columns=pd.DataFrame.from_records(columns, pd.Index(self.columns, name="column", tupleize_cols=False)),
            top=self.top(top),
        )

    def verdict(self, redact: bool = False) -> list[str]:
        """Return the result in at most three sentences, see `Displayable.verdict`."""
        return self.summary().verdict(redact)

    def write(self, path: str | os.PathLike[str], overwrite: bool = True) -> None:
        """Write the scores of all rows, in their order, to a .parquet, .csv or .feather file.

        Columns: suda, dis_suda (if there is a DIS), msu_1, msu_2, ..., and contribution_<column> (if contributions were
        asked for). The file appears whole or not at all. overwrite: whether to replace a file that exists. Raises
        OutputError if the file cannot be written or its name ends otherwise, InputError if `path` is no path.
        """
        check_path("path", path, "a file to write")
        check_output(path, overwrite, [self._source])
        columns = self._rows_to_write(0, 0).num_columns
        tables = (self._rows_to_write(start, stop) for edges in row_groups(self.rows, columns) for start, stop in edges)
        write_tables(tables, path, overwrite=overwrite)

    def _rows_to_write(self, start: int, stop: int) -> pa.Table:
        """Return the table to write for the rows from start to stop."""
        number = self._number[start:stop]
        columns: dict[str, npt.NDArray[Any]] = {"suda": self._scores[number]}
        if self._dis_scores is not None:
            columns["dis_suda"] = self._dis_scores[number]
        for size, counts in enumerate(self._found.counts, 1):
            columns[f"msu_{size}"] = counts[number].astype(np.int32)
        if self._found.shares.size:
            scores = np.where(columns["suda"] > 0, columns["suda"], 1.0)
            for place, name in enumerate(self.columns):
                columns[f"contribution_{name}"] = self._found.shares[number, place] / scores
        return pa.table(columns)
