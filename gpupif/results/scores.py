"""`Scores`, which `score` returns for every kind of table and attacker."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..attack.attackers import KnownSubsets, attacker_line
from ..attack.priors import Priors
from ..engines.worst_and_mean import worst_place
from ..errors import InputError, NotScoredError, did_you_mean
from ..io.formats import PARQUET, WRITTEN_ENDINGS
from ..io.run_files import check_apart
from ..io.write import check_output
from ..measures import MEASURES, POPULATION_SIZE, Measure, is_measure, suggest_measure
from ..utils.display import draw_line, plural
from ..utils.html_output import HtmlConsole
from ..utils.validation import check_path, check_word, percents, whole_number
from .backing import (
    AttackerOutcome,
    Backing,
    CountChunks,
    QueryResult,
    ScoreQuery,
    ScoresDescription,
    WriteRequest,
    refuse_options,
)
from .cell_selection import Selection
from .cell_table import CellTable
from .riskiest import RiskyCell, cell_records
from .score_distribution import ColumnAnswer, ColumnQuery, ScoreAnswers
from .score_outputs import MEAN, WORST, CellScore, ScoredAttacker, ScoreView
from .score_plots import ScorePlots
from .summary import TOP_CELLS, AnyKnownSummary, AttackerSummary, Summary, summarize_attackers, unknown_places
from .summary_figures import OF_COLUMNS, OF_ROWS, SUMMARISED, summary_columns


class Scores:
    """Scores of all cells of a table; made by `gpupif.score`, `gpupif.score_files` and `gpupif.open_scores`.

    Each measure that was asked for is an attribute and an item (``scores.cig``, ``scores["csf"]``): n rows by scored
    columns, in the order of the table. In memory it is a frame of the kind that came in, with its index; of files a
    `StoredFrame`, which reads nothing before it is asked to (``.head()``, ``.to_pandas()``, ``.to_polars()``); of a
    Dask frame a Dask frame, with its partitions, index and divisions. With ``population=`` there is also
    ``population_size``.

    Where an attacker knows any r of the columns, each cell has a worst and a mean score over all sets of r columns:
    ``scores.worst`` and ``scores.mean`` are scores like these. Of several attackers ``scores.against(name)`` are those
    of one; ``scores.worst`` has the worst score of each cell over all of them, and ``scores.mean`` the mean. All that
    is said of ``scores`` itself (``scores.cig``, `fig`, `rig`, `pif`, `top`) is said of the worst: the highest score,
    or the lowest of measures where low is risky (``prior``, ``cohort_size``, ``class_size``, ``entropy``,
    ``distinct_values``, ``population_size``), but 0 of a cohort of nobody (weights) only where there is no other.
    wCIG is weighted with the weight of each attacker before. The worst scores of two cells may be against different
    attackers, so that `fig`, `rig` and `pif`, sums, are what no single one need reach.

    Scores of a Dask frame are lazy. What computes several frames at once (``dask.compute(scores.cig, scores.csf)``,
    `frame`, `to_parquet`) scores the table once; each alone, and each call of `fig`, `pif`, `percentiles`, `means`,
    `count_above`, `top` and `summary`, scores it again, unless `persist` keeps the scores.

    Examples
    --------
    Of Bill, row 1, the name gives away the gender, 0.222 bits; who knows his eye colour only learns hardly anything.

    >>> import gpupif
    >>> people = gpupif.datasets.pif_example()
    >>> scores = gpupif.score(people, ["cig", "cohort_size"], known=1)
    >>> scores.worst.cig.round(3).head(2)
       gender   name  eye_color
    0   0.222  1.307      1.807
    1   0.222  0.285      0.485
    >>> scores.mean.cig.round(3).head(2)
       gender   name  eye_color
    0   0.222  0.682      0.908
    1   0.120  0.171      0.247
    >>> scores.subsets
    2 subsets of 1 column for each column
    >>> scores.top(1)[["column", "value", "cig", "known"]].round(3)
          column value    cig known
    0  eye_color  blue  1.807  name

    """

    def __init__(
        self, backing: Backing, attackers: Sequence[ScoredAttacker] | None = None, aggregate: str | None = None
    ) -> None:
        self._backing = backing
        self._attackers = tuple(backing.attackers if attackers is None else attackers)
        # "worst" or "mean" for the scores of one of the two alone.
        self._aggregate = aggregate
        self._view = ScoreView(backing.about.measures, self._attackers, backing.about.dtype, aggregate)

    @property
    def columns(self) -> list[Hashable]:
        """The scored columns."""
        return list(self._backing.about.columns)

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that were scored."""
        return tuple(measure.name for measure in self._backing.about.measures)

    @property
    def rows(self) -> int:
        """The number of rows; those of a Dask frame are counted on request."""
        return self._backing.rows

    @property
    def device(self) -> str:
        """The device that scored; for a Dask frame that was not computed yet, the device that was requested."""
        return self._backing.about.device

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time in seconds by stage."""
        return self._backing.about.seconds

    @property
    def through_host(self) -> str:
        """The reason why a table went through the host's memory, if a GPU did not hold it as a whole; else empty."""
        return self._backing.about.through_host

    @property
    def provenance(self) -> dict[str, Any]:
        """The request, the table, and the version of gpupif; ready for JSON."""
        return dict(self._backing.about.request)

    @property
    def attackers(self) -> tuple[str, ...]:
        """The names of the attackers; empty for a single attacker without a name."""
        return tuple(attacker.name for attacker in self._attackers if attacker.name is not None)

    @property
    def known(self) -> list[Hashable]:
        """The columns that the attackers know, or of which they know any few."""
        return self._view.known

    @property
    def subsets(self) -> KnownSubsets | None:
        """The sets of columns that attackers know who know any r columns; None for other or several attackers."""
        return self._view.subsets

    @property
    def files(self) -> list[Path]:
        """The files that hold the scores, in order of the rows; empty if they are in memory or on a cluster."""
        return list(self._backing.files)

    @property
    def path(self) -> Path | None:
        """The file or folder of `files`."""
        return self._backing.path

    @property
    def spilled_bytes(self) -> int | None:
        """The most bytes that temporary files took on the way to `files`; None if there were none."""
        return self._backing.spilled_bytes

    @property
    def distinct_rows(self) -> int | None:
        """The number of distinct rows over the scored and known columns; None if they were not counted.

        For several attackers it is the highest.
        """
        counts = [self._backing.distinct_rows(attacker) for attacker in self._attackers]
        return max((count for count in counts if count is not None), default=None)

    @property
    def priors(self) -> Priors:
        """The prior of each scored column: probability by value, None being the missing values."""
        return Priors(self._backing.priors())

    @property
    def weights(self) -> dict[Hashable, float]:
        """The weight of each scored column in wCIG: H(X|known) / H(X), in [0, 1]; 0 if H(X) is 0 (manual, section 1.5).

        Over several attackers, or any who know few columns, it is the lowest weight, of mean scores the mean.
        """
        weights = [self._backing.weights(attacker, self._view.side) for attacker in self._attackers]
        combined = min if self._view.side == WORST else lambda of_column: sum(of_column) / len(of_column)
        return dict(zip(self.columns, map(combined, zip(*weights, strict=True)), strict=True))

    @property
    def worst(self) -> Scores:
        """The worst score of each cell over all attackers."""
        return self._of_aggregate(WORST)

    @property
    def mean(self) -> Scores:
        """The mean score of each cell over all attackers, each of whom counts once, with its own mean."""
        return self._of_aggregate(MEAN)

    def against(self, attacker: str) -> Scores:
        """Return the scores against one attacker, the same bits as if ``known=`` named that attacker's columns alone.

        Raises InputError for an unknown name.
        """
        named = [own for own in self._attackers if own.name == attacker and attacker is not None]
        if not named:
            names = ", ".join(map(repr, self.attackers)) or "none: there is one attacker without a name"
            raise InputError(f"against: expected the name of an attacker, got {attacker!r}. There are {names}.")
        return Scores(self._backing, named, self._aggregate if len(named[0].aggregates) > 1 else None)

    @property
    def plot(self) -> ScorePlots:
        """The plots of the scores, such as ``scores.plot.fig()``; see `ScorePlots`."""
        return ScorePlots(self)

    def __getitem__(self, measure: str) -> Any:
        """Return the scores of one measure as a frame. Raises NotScoredError, an InputError, if it was not scored."""
        return self._backing.frame(self._score(measure))

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(message)
        if is_measure(name) or name == POPULATION_SIZE.name:
            return self[name]
        near = did_you_mean(name.lower(), [*MEASURES, *(own for own in dir(self) if not own.startswith("_"))])
        # If Python knew the object, it would suggest names once more.
        raise AttributeError(f"{message}.{near}" if near else message, name=name, obj=None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measures]

    def __repr__(self) -> str:
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        words = [f"{self._backing.size()} x {columns}: {', '.join(self.measures)}"]
        if self._aggregate is not None:
            words.append(f"{self._aggregate} over attackers")
        if self.subsets is not None:
            known = f"{self.subsets.known} {plural(self.subsets.known, 'column')}"
            words.append(f"any {known} known: {self.subsets!r}")
        if self.attackers:
            words.append(f"attackers {', '.join(self.attackers)}")
        return f"<Scores of {'; '.join([*words, self._backing.where()])}>"

    def _repr_html_(self) -> str:
        """Return the summary as notebooks show it, or a line of text for scores that would have to be read for it."""
        views = [view for by_aggregate in self._summarised() for view in by_aggregate.values()]
        if (self.path or self._backing.writes_folders) and any(view._made_summary is None for view in views):
            console = HtmlConsole()
            draw_line(console, f"{self!r}: .summary() reads them")
            return console.html()
        return self.summary()._repr_html_()

    def array(self, measure: str) -> Any:
        """Return the scores of one measure as an array (scored columns, rows), in memory.

        It is a NumPy array, which is read-only; for a cuDF DataFrame a CuPy array, which should not be changed either.
        Raises InputError as `scores[measure]` does.
        """
        return self._backing.array(self._score(measure))

    def fig(self) -> pd.Series[float]:
        """Return the feature information gain, the sum of the CIG of each column, in bits (manual, section 1.7.1)."""
        score, summary = self._score("cig"), self._made_summary
        if summary is not None:
            sums = summary.columns["fig"].tolist()
        else:
            sums = self._backing.find(ScoreQuery(figures={"cig": score})).figures.totals("cig")
        return pd.Series(sums, pd.Index(self.columns, tupleize_cols=False), name="fig")

    def rig(self) -> Any:
        """Return the row information gain, the sum of the CIG of each row, in bits (manual, section 1.7.2).

        It is a pandas Series with the table's index, a Polars or cuDF Series, or an Arrow array, as the table; of files
        a `StoredFrame` of one column; of a Dask frame a lazy series.
        """
        return self._backing.row_sums(self._score("cig"), "rig")

    def pif(self, n: float | Sequence[float]) -> Any:
        """Return PIF_n, the n-th percentile (linear) of the row information gains, in bits (manual, section 1.7.3).

        n: from 0 to 100, one or several. Raises InputError outside that.
        """
        percentiles = percents("pif", n)
        wanted, score, summary = percentiles.reshape(-1).tolist(), self._score("cig"), self._made_summary
        made = dict(self._made_answers.of_rows)
        if summary is not None:
            made |= {float(percent): bits for percent, bits in summary.pif.items()}
        if set(wanted) <= set(made):
            gains = [made[percent] for percent in wanted]
        else:
            gains = self._backing.find(ScoreQuery(gains=score, of_rows=wanted)).of_rows
        return gains[0] if percentiles.ndim == 0 else gains

    def percentiles(self, measure: str, n: float | Sequence[float]) -> pd.DataFrame:
        """Return percentiles (linear) of the scores of each column, in a frame: scored columns by n.

        n: from 0 to 100, one or several. Unknown scores (NaN) do not count; a column without other scores has NaN.
        Raises InputError outside that, and as `scores[measure]` does.
        """
        wanted = percents("percentiles", n).reshape(-1).tolist()
        found = self.column_answers(measure, ColumnQuery(percentiles=tuple(wanted)))
        rows = [[one.percentiles[percent] for percent in wanted] for one in found]
        return pd.DataFrame(rows, index=self._column_index, columns=pd.Index(wanted, name="percentile"))

    def means(self, measure: str) -> pd.Series[float]:
        """Return the mean score of each column, rounded once. Unknown scores (NaN) do not count.

        Raises InputError as `scores[measure]` does.
        """
        found = self.column_answers(measure, ColumnQuery(mean=True))
        return pd.Series([one.mean for one in found], index=self._column_index, name=measure, dtype="float64")

    def count_above(self, measure: str, threshold: float) -> pd.Series[int]:
        """Return how many cells of each column score above a threshold. Raises InputError as `scores[measure]` does."""
        found = self.column_answers(measure, ColumnQuery(above=(float(threshold),)))
        counts = [one.above[float(threshold)] for one in found]
        return pd.Series(counts, index=self._column_index, name=measure, dtype="int64")

    def column_answers(self, measure: str, asked: ColumnQuery) -> Sequence[ColumnAnswer]:
        """Return the answer to a query for each column. Raises InputError as `scores[measure]` does."""
        score = self._score(measure)
        made = self._made_answers.of_columns.get(measure)
        if made is not None and all(one.covers(asked) for one in made):
            return made
        return self._backing.find(ScoreQuery(of_columns={score: asked})).of_columns[score]

    def fold(self, measure: str, count: CountChunks, add: Callable[..., Any]) -> Any:
        """Return what `count` returns for the scores of all rows, see `Backing.fold`.

        Raises InputError as `scores[measure]` does.
        """
        return self._backing.fold(self._score(measure), count, add)

    def top(self, n: int = 20, by: str | None = None, each: str = "cell") -> pd.DataFrame:
        """Return the n riskiest cells, by the measure `by` (default: CIG, or else the first that was scored).

        each: "cell" (default), or "value": the riskiest cell of each of the n riskiest values of columns. Then there is
        also the column cells, after value: how many cells of the column have the value. Raises InputError for another
        word, and for "value" if the table is not at hand.

        The highest scores come first; the lowest, if low is risky (`prior`, `cohort_size` and others; a size of 0 comes
        last). Ties go to the earlier row, then the earlier column. Cells without a score are left out.

        Columns: row (position, from 0), index (the table's label of the row, pandas and cuDF only), column, value, the
        scored measures, posterior, prior, cohort_size. With several attackers there is also attacker: the worst for the
        cell by this measure, the first of equal ones. If any r columns are known there is also known: the columns that
        the worst attacker knows. posterior and cohort_size are against that attacker, even if they were scored; all
        other scores are the worst over all attackers. Mean scores come without posterior and cohort, for each attacker
        has another one. Scores opened from files, whose table is not at hand, come without values, priors, posteriors
        and cohorts, unless these were scored.
        """
        return self._top(n, by, each)

    def _top(self, n: int, by: str | None, each: str, spread: bool = False) -> pd.DataFrame:
        """Return the frame of `top`. spread: add what is said of other values, see `ExplainedCells`."""
        n, score = whole_number("top", n, "cells"), self._by(by)
        check_word("each", each, ("cell", "value"))
        if each == "value" and not self._knows_values:
            raise InputError(
                "each: 'value' takes the values of the table, which files of scores lack. Score "
                "the table again: gpupif.score(table).top(10, each='value'), or give each='cell'."
            )
        # A report shows cells that the attacker does not know.
        places = unknown_places(self.columns, self.known) if spread else None
        query = ScoreQuery(top=n, by=score, shown=self._shown(score), each_value=each == "value", of_places=places)
        result = self._backing.find(query)
        return self._describe_cells([cell._replace(spread=spread) for cell in result.top], score)

    def cells(self, where: str | None = None, *, top: int | None = None, by: str | None = None) -> CellTable:
        """Return cells in place of all scores, one row each: those that meet a condition, or the riskiest.

        Parameters
        ----------
        where:
            A condition on a cell's scores, such as ``"cig >= 3 and (csf > 0.9 or cohort_size < 5)"``. A comparison is a
            score, ``>``, ``>=``, ``<`` or ``<=``, and a number; ``and`` binds closer than ``or``. A score is a measure
            that was scored, over several attackers as ``scores.cig`` has it, or a column of scores of the result
            (``neighbour_cig``, ``cig_mean``). Names with other characters than letters, digits, ``_`` and ``.`` are put
            in double quotes. No comparison is true for an unknown score (NaN). Default: all cells.
        top:
            How many of the riskiest cells to return, in the order of `Scores.top`. Default: all cells, in the order of
            rows, and then columns.
        by:
            The score by which cells are risky. Default: CIG, or else the first that was scored.

        Returns
        -------
        CellTable
            row, column, value and all scores, found on request: ``.to_pandas()``, ``.to_arrow()``, ``.to_polars()``,
            ``.to_batches()``, ``.write("cells.parquet")``.

        Raises
        ------
        InputError
            `where` is no such condition, a score was not scored, or `top` is below 1.

        Examples
        --------
        >>> import gpupif
        >>> scores = gpupif.score(gpupif.datasets.pif_example())
        >>> scores.cells("cig > 1", top=3).to_pandas().round(3)
           row     column    value    cig    csf
        0    0  eye_color     blue  1.807  0.714
        1    6       name  Charlie  1.807  0.714
        2    0       name    Anton  1.307  0.357

        """
        selection = Selection.from_user(where, top, by)
        source = self._backing.cells(selection.query(self._view))

        def describe(with_summaries: bool) -> ScoresDescription:
            return replace(self._description(with_summaries), cells=(source.selection or selection).to_dict())

        return CellTable(source, describe, self._inputs)

    def summary(self) -> Summary | AttackerSummary:
        """Return risk by column and for the whole table; prints as a table, `.columns` is a DataFrame.

        For several attackers it is an `AttackerSummary` with the summary of each. If any r columns are known, it is
        about the worst scores, and ``.mean`` about the mean scores.
        """
        if self._aggregate is None and len(self._attackers) > 1:
            summaries = {name: self.against(name)._summary_of_one() for name in self.attackers}
            return summarize_attackers(summaries, {str(one.name): list(one.known) for one in self._attackers})
        return self._summary_of_one()

    def verdict(self, redact: bool = False) -> list[str]:
        """Return the scores in at most three sentences: what was scored, of which attacker, and what the figures say.

        redact: whether values of the table are left out; the names of its columns stay. Default: False.
        """
        return self.summary().verdict(redact)

    def frame(self) -> Any:
        """Return all scores in one frame of the kind that came in (or a `StoredFrame`, or a Dask frame).

        Columns are named <measure>_<column>; if any r columns are known, <measure>_worst_<column> and
        <measure>_mean_<column>; for attackers with a name <attacker>_<measure>_<column>, and so on. Raises OutputError
        for equal names.
        """
        return self._backing.joined(self._view.outputs())

    def to_arrow(self, keep_input: bool = False) -> pa.Table:
        """Return all scores as one Arrow table in memory, columns named as by `frame`, rows in order.

        keep_input: put the columns of the table before the scores. A pandas index comes last, as pandas stores it,
        unless it is just row numbers. Raises OutputError for equal names.
        """
        return self._backing.to_arrow(self._view.outputs(), keep_input)

    def to_parquet(
        self, path: str | os.PathLike[str], *, keep_input: bool = False, overwrite: bool = True, **options: Any
    ) -> None:
        """Write all scores to Parquet, columns named as by `frame`, rows in order; `open_scores` opens them again.

        path: a file whose name ends in .parquet or .pq; for a Dask frame a folder, named without such an ending, that
        all workers see under the same path. It appears whole or not at all, and never replaces files that were scored.
        keep_input: put the table's columns before the scores (a table read from a file has only the columns that were
        needed). overwrite: replace a file that exists, or a folder that holds nothing but scores of gpupif. With Dask a
        URL (``s3://...``) must name an empty place, which is written directly. options: of
        ``dask.dataframe.DataFrame.to_parquet``, such as ``write_index=False``; not ``compute=False``, ``append``,
        ``partition_on`` and ``filesystem``.

        Raises OutputError if the scores cannot be written, and InputError for other options or no path.
        """
        self._check_output(path, overwrite, PARQUET.written)
        if not self._backing.writes_folders:
            refuse_options(options, "to_parquet")
        self._backing.write(replace(self._writing(path, keep_input, overwrite), options=options))

    def write(
        self,
        path: str | os.PathLike[str],
        keep_input: bool = False,
        overwrite: bool = True,
        done: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """Write all scores as `to_parquet` does, or to CSV or Feather, by the ending of a file.

        done: called with the number of rows that were written since the last call.
        """
        self._check_output(path, overwrite)
        self._backing.write(replace(self._writing(path, keep_input, overwrite), done=done))

    def report(self, path: str | os.PathLike[str], *, redact: bool = False, overwrite: bool = True) -> None:
        """Write a report of the scores: one HTML file with figures and tables, complete in itself.

        path: a file whose name ends in .html; it appears whole or not at all. Only its owner can read a new file; a
        file that is replaced keeps its rights. redact: whether values of cells are hidden. overwrite: whether a
        file that exists is replaced. Default True, as for `to_parquet`.

        Raises OutputError if the file cannot be written, and InputError if Jinja2 or Plotly is not installed
        (``pip install 'gpupif[report]'``).
        """
        from ..report.page import check_report, write_report
        from .score_report import score_document

        check_path("path", path, "a file to write")
        check_apart({"": path}, {"": [*self._inputs(), self.path]})
        check_report(path, overwrite)
        source = (self.provenance.get("input") or {}).get("path", "a table")
        write_report([score_document(self, redact)], path, source, redact, overwrite)

    def persist(self, **options: Any) -> Scores:
        """Return the scores of a Dask frame computed and kept in the memory of the workers, at once on a cluster.

        Other scores are returned as they are. options: of ``dask.persist``. Raises InputError for options of others.
        """
        if not self._backing.writes_folders:
            refuse_options(options, "persist")
        return Scores(self._backing.persist(**options), self._attackers, self._aggregate)

    def _of_aggregate(self, aggregate: str) -> Scores:
        """Return the worst or mean scores over all attackers; an attacker with a list of columns has one score only."""
        if self._aggregate is not None or (len(self._attackers) == 1 and len(self._attackers[0].aggregates) == 1):
            return self
        return Scores(self._backing, self._attackers, aggregate)

    def _measure(self, name: str) -> Measure:
        for measure in self._backing.about.measures:
            if measure.name == name:
                return measure
        raise NotScoredError(
            f"measures: {name!r} was not scored (scored: {', '.join(self.measures)}).{self._mend(name)}"
        )

    def _mend(self, name: str) -> str:
        """Return what may be meant by a name that was not scored, as a further sentence."""
        if name in self.attackers:
            return f" Scores against one attacker are scores.against({name!r})."
        if name in self.columns:
            return f" Scores of one column are scores.{self.measures[0]}[{name!r}]."
        if name == POPULATION_SIZE.name:
            return " It takes a population: gpupif.score(table, population=...)."
        if not is_measure(name):
            return f" There is no such measure.{suggest_measure(name)} `gpupif measures` lists all."
        return f" Add it: gpupif.score(table, measures=[..., {name!r}])."

    def _score(self, measure: str) -> CellScore:
        """Return the score for one measure."""
        return self._view.score(self._measure(measure))

    def _by(self, by: str | None) -> CellScore:
        """Return the score by which cells are risky. by: a measure, None for the default."""
        return self._score(by or self._view.default.name)

    def _shown(self, by: CellScore) -> list[CellScore]:
        """Return the scores that `top` needs of a cell: its own, and those against each attacker, to find the worst."""
        return [*map(self._score, self.measures), *(CellScore(by.measure, (output,)) for output in by.outputs)]

    def _describe_cells(self, cells: Sequence[RiskyCell], by: CellScore) -> pd.DataFrame:
        """Return the frame of `top` for cells with the scores of `_shown`."""
        explainers = [self._backing.explainer(attacker) for attacker in self._attackers]
        labels = None if explainers[0] is None else explainers[0].labels([cell.row for cell in cells])
        seen: list[dict[str, Any]] = [{} for _ in cells]
        if self._view.side == MEAN:
            seen = seen if explainers[0] is None else explainers[0].values(cells)
            return cell_records(cells, self.columns, self.measures, seen, labels)
        # The place of the worst attacker of each cell; after the measures come the scores against each attacker.
        worst = [worst_place(by.measure, np.array(cell.scores[len(self.measures) :])) for cell in cells]
        for place, explainer in enumerate(explainers):
            numbers = [number for number, attacker in enumerate(worst) if attacker == place]
            if explainer is not None and numbers:
                explained = explainer.explain([cells[number] for number in numbers], by.measure)
                for number, facts in zip(numbers, explained, strict=True):
                    seen[number] = facts
        if len(explainers) > 1:
            seen = [facts | {"attacker": self._attackers[place].name} for facts, place in zip(seen, worst, strict=True)]
        return cell_records(cells, self.columns, self.measures, seen, labels)

    def _summary_of_one(self) -> Summary:
        """Return the summary against one attacker, or of one score over several attackers."""
        if self._aggregate is None and len(self._attackers[0].aggregates) > 1 and self.subsets is not None:
            return AnyKnownSummary.join(self.worst._summarize(), self.mean._summarize(), self.subsets)
        return self._summarize()

    def _summarize(self) -> Summary:
        """Return the summary of one score for each cell."""
        if self._made_summary is None:
            self._keep_summary(self._backing.find(self._summary_query()))
        made = self._backing.summaries[self._place_of_summary]
        # Writing may have added stages to the scores since.
        return replace(made, seconds={**made.seconds, **self.seconds}, attacker=self._attacker_line, known=self.known)

    @property
    def _knows_values(self) -> bool:
        """True if the values of the table are at hand."""
        return self._backing.explainer(self._attackers[0]) is not None

    @property
    def _attacker_line(self) -> str:
        """The sentence on what the attacker knows; empty if there are several attackers."""
        if len(self._attackers) > 1 or self.subsets is not None:
            return ""
        return attacker_line(self.known, self.columns)

    @property
    def _place_of_summary(self) -> tuple[tuple[str, ...], str]:
        """The key of the summary among those of the backing."""
        return self.attackers, self._view.side

    @property
    def _made_summary(self) -> Summary | None:
        """The summary of one score for each cell, if it is made already."""
        return self._backing.summaries.get(self._place_of_summary)

    @property
    def _made_answers(self) -> ScoreAnswers:
        """The answers about one score for each cell that are known already, beside the summary."""
        return self._backing.answers.get(self._place_of_summary, ScoreAnswers())

    @property
    def _column_index(self) -> pd.Index[Any]:
        return pd.Index(self.columns, name="column", tupleize_cols=False)

    def _summary_query(self) -> ScoreQuery:
        """Return the query for the summary of one score for each cell."""
        by = self._by(None)
        gains = self._score("cig") if "cig" in self.measures else None
        return ScoreQuery(
            figures={name: self._score(name) for name in SUMMARISED if name in self.measures},
            of_columns={} if gains is None else {gains: ColumnQuery(percentiles=OF_COLUMNS)},
            gains=gains,
            of_rows=OF_ROWS,
            top=TOP_CELLS,
            by=by,
            shown=self._shown(by),
            each_value=self._knows_values,
            of_places=unknown_places(self.columns, self.known),
        )

    def _keep_summary(self, result: QueryResult) -> None:
        """Make the summary of one score for each cell from the answer to its query, and keep it."""
        weights = list(self.weights.values())
        facts = self._backing.column_facts()
        distributions = next(iter(result.of_columns.values()), ())
        # The query ran, so that lazy scores know their device now.
        about = self._backing.about
        self._backing.summaries[self._place_of_summary] = Summary(
            rows=self.rows,
            distinct_rows=self.distinct_rows,
            device=about.device,
            measures=self.measures,
            seconds=dict(about.seconds),
            columns=summary_columns(self.columns, facts, self.rows, result.figures, distributions, weights),
            pif=dict(zip(OF_ROWS, result.of_rows, strict=True)) if "cig" in self.measures else {},
            top=self._describe_cells(result.top, self._by(None)),
            through_host=about.through_host,
        )

    def _inputs(self) -> list[Path]:
        """Return what must not be replaced: the files of the table and the population, and a folder of these scores."""
        inputs: list[Path] = [self.path] if self.path is not None and self.path.is_dir() else []
        for table in (self.provenance.get("input"), self.provenance.get("population")):
            if table and "path" in table:
                path, files = Path(table["path"]), table["files"]
                # A single file of a folder of scores keeps only the number of files.
                inputs += [Path(file["path"]) for file in files] if isinstance(files, list) else []
                inputs += [path] if path.is_dir() else []
        return inputs

    def _check_output(self, path: Any, overwrite: bool, endings: tuple[str, ...] = WRITTEN_ENDINGS) -> None:
        """Raise InputError for what is no path, and OutputError if a file cannot be written there."""
        check_path("path", path, "a file or folder to write")
        if not self._backing.writes_folders:
            check_output(path, overwrite, self._inputs(), endings)

    def _writing(self, path: str | os.PathLike[str], keep_input: bool, overwrite: bool) -> WriteRequest:
        """Return the order to write these scores."""
        waiting = [view for views in self._summarised() for view in views.values() if view._made_summary is None]

        def answered(results: Sequence[QueryResult]) -> None:
            for view, result in zip(waiting, results, strict=True):
                view._keep_summary(result)

        return WriteRequest(
            self._view.outputs(),
            self._written(),
            self._description,
            path,
            keep_input,
            overwrite,
            queries=[view._summary_query() for view in waiting],
            answered=answered,
        )

    def _summarised(self) -> list[dict[str, Scores]]:
        """Return for each attacker, by aggregate, the scores whose summaries a file of these scores holds."""
        if self._aggregate is not None:
            return [{self._aggregate: self}]
        return [
            {aggregate: Scores(self._backing, [attacker], aggregate) for aggregate in attacker.aggregates}
            for attacker in self._attackers
        ]

    def _written(self) -> list[ScoredAttacker]:
        """Return the attackers, as a file of these scores has them."""
        return list(self._attackers) if self._aggregate is None else [self._view.as_one()]

    def _description(self, with_summaries: bool) -> ScoresDescription:
        """Return the description of these scores for a file."""
        backing = self._backing
        outcomes = [
            AttackerOutcome(
                attacker,
                weights={aggregate: list(view.weights.values()) for aggregate, view in by_aggregate.items()},
                distinct_rows=next(iter(by_aggregate.values())).distinct_rows if with_summaries else None,
                summaries={aggregate: view._summarize() for aggregate, view in by_aggregate.items() if with_summaries},
            )
            for attacker, by_aggregate in zip(self._written(), self._summarised(), strict=True)
        ]
        return ScoresDescription(backing.about, outcomes, backing.column_facts(), backing.packed_priors(), self.rows)
