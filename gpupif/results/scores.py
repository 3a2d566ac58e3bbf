"""What `score` returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..attack.priors import Prior, Priors
from ..errors import InputError, OutputError
from ..io.formats import PARQUET
from ..io.write import check_output, output_names, row_groups, write_device_columns, write_tables
from ..measures import is_measure
from ..utils.arrays import on_host
from ..utils.validation import percents

if TYPE_CHECKING:
    from ..encoding.column import EncodedTable
    from ..engines.base import EngineResult, Job
    from ..frames.base import Frame
    from .summary import Summary


class Scores:
    """Scores of all cells of a table; made by `gpupif.score`.

    Each measure that was asked for is an attribute and an item (``scores.cig``, ``scores["csf"]``): n rows by scored
    columns, a frame of the kind that came in, with the same rows, order, index and column names.

    With ``population=`` there is also ``population_size``.

    columns: the scored columns. rows: n. device: the engine that ran. distinct_rows: different rows over the scored
    and known columns. seconds: wall time by stage. through_host: where a GPU did not hold the table as a whole, that it
    went through the host's memory, and why; else empty.
    """

    def __init__(
        self,
        frame: Frame,
        encoded: EncodedTable,
        job: Job,
        result: EngineResult,
        columns: Sequence[Hashable],
        priors: Mapping[Hashable, Prior],
        device: str,
        seconds: dict[str, float],
    ) -> None:
        self.columns = list(columns)
        self.rows = frame.rows
        self.device = device
        self.distinct_rows = result.distinct_rows
        self.through_host = result.through_host
        self.seconds = seconds
        self.measures = tuple(result.values)
        self._frame = frame
        self._encoded = encoded
        self._job = job
        self._values = result.values
        self._prior_of = priors
        self._weights = result.weights
        self._frames: dict[str, Any] = {}
        for values in result.values.values():
            if isinstance(values, np.ndarray):
                values.setflags(write=False)
        self._rig: Any = None

    def __getitem__(self, measure: str) -> Any:
        """Scores of one measure as a frame of the kind that came in."""
        values = self.array(measure)
        if measure not in self._frames:
            self._frames[measure] = self._frame.wrap(values, self.columns)
        return self._frame.view(self._frames[measure])

    def __getattr__(self, name: str) -> Any:
        if is_measure(name) or name in self.__dict__.get("_values", {}):
            return self[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measures]

    def __repr__(self) -> str:
        return (
            f"<Scores of {self.rows:,} rows x {len(self.columns)} columns: {', '.join(self.measures)}; "
            f"device {self.device}>"
        )

    def array(self, measure: str) -> Any:
        """Scores of one measure as an array (scored columns, rows). Raises InputError where it was not asked for.

        A NumPy array, which cannot be written to; a CuPy array, which should not, for a cuDF DataFrame.
        """
        values = self._values_of(measure)
        if self._frame.from_file and hasattr(values, "get"):
            values = self._values[measure] = on_host(values)
            values.setflags(write=False)
        return values

    def _values_of(self, measure: str) -> Any:
        """Scores of one measure where they lie, on the host or a device."""
        if measure not in self._values:
            raise InputError(
                f"measures: {measure!r} was not scored (scored: {', '.join(self.measures)}). "
                f"Add it: gpupif.score(table, measures=[..., {measure!r}])."
            )
        return self._values[measure]

    @property
    def priors(self) -> Priors:
        """Per column the distribution used: value to probability, None for missing values."""
        return Priors({name: self._prior_of[name] for name in self.columns})

    @property
    def weights(self) -> dict[Hashable, float]:
        """Per column the weight of wCIG: H(X|known) / H(X), in [0, 1]; 0 where H(X) is 0 (manual, section 1.5)."""
        return dict(zip(self.columns, self._weights, strict=True))

    def fig(self) -> pd.Series[float]:
        """Feature information gain: the sum of the CIG of each column, in bits (manual, section 1.7.1)."""
        with self._frame.active():
            sums = [float(column.sum(dtype=np.float64)) for column in self._values_of("cig")]
        return pd.Series(sums, pd.Index(self.columns, tupleize_cols=False), name="fig")

    def rig(self) -> Any:
        """Row information gain: the sum of the CIG of each row, in bits (manual, section 1.7.2).

        n values: a pandas Series with the table's index (a Polars or cuDF Series or Arrow array for those kinds).
        """
        return self._frame.series(self._row_gains(), "rig")

    def pif(self, n: float | Sequence[float]) -> Any:
        """PIF_n: the n-th percentile (linear) of the row information gains, in bits (manual, section 1.7.3).

        n: from 0 to 100, one or several. Raises InputError outside that.
        """
        wanted = percents("pif", n)
        with self._frame.active():
            gains = on_host(np.percentile(self._row_gains(), wanted.tolist()))
        return float(gains) if wanted.ndim == 0 else [float(gain) for gain in gains]

    def _row_gains(self) -> Any:
        if self._rig is None:
            with self._frame.active():
                self._rig = self._values_of("cig").sum(axis=0, dtype=np.float64)
        return self._rig

    def summary(self) -> Summary:
        """Risk by column and for the whole table; prints as a table, `.columns` is a DataFrame, `.to_dict()` plain."""
        from .summary import summarize

        return summarize(self)

    def top(self, n: int = 20, by: str | None = None) -> pd.DataFrame:
        """The n riskiest cells, by the measure `by` (default: CIG, or else the first that was scored).

        The highest come first, by `prior`, `cohort_size` and others where low is risky the lowest (a size of 0, that of
        nobody, last); ties go to the earlier row, then the earlier column. Columns: row (position, from 0), index (the
        table's label of the row, pandas and cuDF only), column, value, the scored measures, posterior, prior,
        cohort_size.
        """
        from .riskiest import riskiest_cells

        with self._frame.active():
            return riskiest_cells(self, n, by or ("cig" if "cig" in self.measures else self.measures[0]))

    def _describe(self, row: int, target: int, by: str) -> dict[str, Any]:
        """What `top` says of a cell that is risky by this measure."""
        from .riskiest import describe_cell

        return describe_cell(self, row, target)

    def to_arrow(self, keep_input: bool = False) -> pa.Table:
        """All scores as one Arrow table, columns named <measure>_<column>, rows in order.

        keep_input: put the columns of the table before them. A pandas index other than the row numbers comes last, as
        pandas stores it. Raises OutputError where names collide.
        """
        return self._part(0, self.rows, *self._beside(keep_input))

    def _outputs(self) -> dict[str, Any]:
        """What an output holds (scored columns, rows), by what the names of its columns begin with."""
        return self._values

    def _beside(self, keep_input: bool) -> tuple[pa.Table | None, pa.Table | None, list[str]]:
        """The table's own columns and its index, where they are wanted in an output, and the names of the scores."""
        source = self._frame.arrow() if keep_input else None
        labels = self._labels()
        others = [*(source.column_names if source else []), *(labels.column_names if labels else [])]
        return source, labels, output_names(list(self._outputs()), self.columns, others)

    def _part(
        self, start: int, stop: int, source: pa.Table | None, labels: pa.Table | None, names: Sequence[str]
    ) -> pa.Table:
        """Some rows of `to_arrow`."""
        size = stop - start
        with self._frame.active():
            arrays = [on_host(values[:, start:stop]) for values in self._outputs().values()]
        scores = [pa.array(column) for array in arrays for column in array]
        table = pa.table(scores, names=names)
        if source is not None:
            beside = source.slice(start, size)
            table = pa.table([*beside.columns, *scores], names=[*beside.column_names, *names])
        if labels is None:
            return table
        beside = labels.slice(start, size)
        for name, array in zip(beside.column_names, beside.columns, strict=True):
            table = table.append_column(name, array)
        return table.replace_schema_metadata(labels.schema.metadata)

    def _labels(self) -> pa.Table | None:
        """The index of a pandas table, as pandas stores it, where it is more than row numbers."""
        index = self._frame.host_index()
        if index is None or (index.equals(pd.RangeIndex(self.rows)) and index.name is None):
            return None
        try:
            return pa.Table.from_pandas(pd.DataFrame(index=index, columns=pd.Index([], dtype=object)))
        except (pa.ArrowException, TypeError) as error:
            raise OutputError(
                f"output: the index of the table cannot be stored ({error}). Convert it, to text for instance, or drop "
                "it with reset_index(drop=True)."
            ) from error

    def to_parquet(self, path: str | os.PathLike[str], *, keep_input: bool = False, overwrite: bool = True) -> None:
        """Write all scores to one Parquet file, columns named <measure>_<column>, rows in order.

        The file appears whole or not at all. keep_input: put the table's columns before them. overwrite: replace a
        file that exists. A table read from a file has only the columns that were needed. Raises OutputError where it
        cannot be written or its name does not end in .parquet or .pq.
        """
        check_output(path, overwrite, endings=PARQUET.written)
        self.write(path, keep_input, overwrite)

    def write(
        self,
        path: str | os.PathLike[str],
        keep_input: bool = False,
        overwrite: bool = True,
        done: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """As `to_parquet`, also to CSV and Feather, by the name's ending; `done` hears how many rows went out.

        Scores on a device go straight from there to Parquet, others part by part through the host.
        """
        source, labels, names = self._beside(keep_input)
        library = self._frame.device_frames()
        values = list(self._outputs().values())
        there = all(hasattr(array, "get") for array in values)
        if library is not None and there and not (source or labels) and str(path).lower().endswith(PARQUET.written):
            columns = dict(zip(names, (column for array in values for column in array), strict=True))
            write_device_columns(library, columns, self.rows, path, done, overwrite)
            return
        parts = (self._part(start, stop, source, labels, names) for start, stop in row_groups(self.rows))
        write_tables(parts, path, done, overwrite)
