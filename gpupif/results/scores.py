"""What `score` returns, wherever the scores lie and whoever attacks."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..attack.any_known import KnownSubsets, attacker_line
from ..attack.priors import Priors
from ..engines.worst_and_mean import worst_place
from ..errors import InputError, NotScoredError, did_you_mean
from ..io.formats import PARQUET
from ..io.write import check_output
from ..measures import MEASURES, POPULATION_SIZE, Measure, is_measure, suggest_measure
from ..utils.display import plural
from ..utils.validation import check_path, percents, whole_number
from .attacker_summary import AttackerSummary, summarize_attackers
from .base import (
    AttackerOutcome,
    Backing,
    QueryResult,
    RiskyCell,
    ScoreQuery,
    ScoresDescription,
    WriteRequest,
    refuse_options,
)
from .cell_table import CellTable
from .distribution import ColumnAnswer, ColumnQuery, ScoreAnswers
from .figures import OF_COLUMNS, OF_ROWS, SUMMARISED, summary_columns
from .outputs import MEAN, WORST, CellScore, ScoredAttacker, ScoreView
from .riskiest import cell_records
from .selection import Selection
from .summary import TOP_CELLS, AnyKnownSummary, Summary


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
        self, backing: Backing, attackers: Sequence[ScoredAttacker] | None = None, fold: str | None = None
    ) -> None:
        self._backing = backing
        self._attackers = tuple(backing.attackers if attackers is None else attackers)
        # "worst" or "mean" where these are the scores of one of the two alone.
        self._fold = fold
        self._view = ScoreView(backing.about.measures, self._attackers, backing.about.dtype, fold)

    @property
    def columns(self) -> list[Hashable]:
        """The scored columns."""
        return list(self._backing.about.columns)

    @property
    def measures(self) -> tuple[str, ...]:
        """What each cell was scored for."""
        return tuple(measure.name for measure in self._backing.about.measures)

    @property
    def rows(self) -> int:
        """How many rows were scored; of a Dask frame counted when asked for."""
        return self._backing.rows

    @property
    def device(self) -> str:
        """The engine that ran; of a Dask frame, before anything was computed, the device that was asked for."""
        return self._backing.about.device

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time by stage."""
        return self._backing.about.seconds

    @property
    def through_host(self) -> str:
        """Where a GPU did not hold the table as a whole, that it went through the host's memory, and why."""
        return self._backing.about.through_host

    @property
    def provenance(self) -> dict[str, Any]:
        """What was asked of which table, by which version of gpupif; ready for JSON."""
        return dict(self._backing.about.request)

    @property
    def attackers(self) -> tuple[str, ...]:
        """Names of the attackers; none where there is one without a name."""
        return tuple(attacker.name for attacker in self._attackers if attacker.name is not None)

    @property
    def known(self) -> list[Hashable]:
        """The columns that the attackers know, or of which they know any few."""
        return self._view.known

    @property
    def subsets(self) -> KnownSubsets | None:
        """Which columns attackers know who know any r of them; None where they are named, and of several attackers."""
        return self._view.subsets

    @property
    def files(self) -> list[Path]:
        """The files that the scores lie in, in order of the rows; none where they are in memory or on a cluster."""
        return list(self._backing.files)

    @property
    def path(self) -> Path | None:
        """The file or folder of `files`."""
        return self._backing.path

    @property
    def spilled_bytes(self) -> int | None:
        """Of temporary files at most, on the way to `files`; None where there were none."""
        return self._backing.spilled_bytes

    @property
    def distinct_rows(self) -> int | None:
        """Different rows over the scored and known columns, of several attackers over those of the one where they are
        most; None where they were not counted.
        """
        counts = [self._backing.distinct_rows(attacker) for attacker in self._attackers]
        return max((count for count in counts if count is not None), default=None)

    @property
    def priors(self) -> Priors:
        """Per scored column the distribution used: value to probability, None for missing values."""
        return Priors(self._backing.priors())

    @property
    def weights(self) -> dict[Hashable, float]:
        """Per column the weight of wCIG: H(X|known) / H(X), in [0, 1]; 0 where H(X) is 0 (manual, section 1.5).

        Over several attackers, or any who know few columns, the lowest: that against those to whom the column says
        least that is new; of mean scores the mean.
        """
        several = [self._backing.weights(attacker, self._view.side) for attacker in self._attackers]
        fold = min if self._view.side == WORST else lambda weights: sum(weights) / len(weights)
        return dict(zip(self.columns, map(fold, zip(*several, strict=True)), strict=True))

    @property
    def worst(self) -> Scores:
        """The worst score of each cell over all attackers."""
        return self._of_fold(WORST)

    @property
    def mean(self) -> Scores:
        """The mean score of each cell over all attackers, each of whom counts once, with its own mean."""
        return self._of_fold(MEAN)

    def against(self, attacker: str) -> Scores:
        """Scores against one of the attackers, to the last bit those of ``known=`` of that attacker alone.

        Raises InputError for an unknown name.
        """
        one = [known for known in self._attackers if known.name == attacker and attacker is not None]
        if not one:
            named = ", ".join(map(repr, self.attackers)) or "none: there is one attacker without a name"
            raise InputError(f"against: expected the name of an attacker, got {attacker!r}. There are {named}.")
        return Scores(self._backing, one, self._fold if len(one[0].folds) > 1 else None)

    def __getitem__(self, measure: str) -> Any:
        """Scores of one measure as a frame. Raises NotScoredError, an InputError, where it was not scored."""
        return self._backing.frame(self._score(measure))

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name.startswith("_"):
            raise AttributeError(message)
        if is_measure(name) or name == POPULATION_SIZE.name:
            return self[name]
        near = did_you_mean(name.lower(), [*MEASURES, *(own for own in dir(self) if not own.startswith("_"))])
        # Told of the object, Python would say once more what may be meant.
        raise AttributeError(f"{message}.{near}" if near else message, name=name, obj=None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.measures]

    def __repr__(self) -> str:
        columns = f"{len(self.columns)} {plural(len(self.columns), 'column')}"
        words = [f"{self._backing.size()} x {columns}: {', '.join(self.measures)}"]
        if self._fold is not None:
            words.append(f"{self._fold} over attackers")
        if self.subsets is not None:
            known = f"{self.subsets.known} {plural(self.subsets.known, 'column')}"
            words.append(f"any {known} known: {self.subsets!r}")
        if self.attackers:
            words.append(f"attackers {', '.join(self.attackers)}")
        return f"<Scores of {'; '.join([*words, self._backing.where()])}>"

    def array(self, measure: str) -> Any:
        """Scores of one measure as an array (scored columns, rows), in memory. Raises InputError as `scores[measure]`.

        A NumPy array, which cannot be written to; a CuPy array, which should not, for a cuDF DataFrame.
        """
        return self._backing.array(self._score(measure))

    def fig(self) -> pd.Series[float]:
        """Feature information gain: the sum of the CIG of each column in bits, rounded once (manual, section 1.7.1)."""
        score, summary = self._score("cig"), self._made_summary
        if summary is not None:
            sums = summary.columns["fig"].tolist()
        else:
            sums = self._backing.find(ScoreQuery(figures={"cig": score})).figures.totals("cig")
        return pd.Series(sums, pd.Index(self.columns, tupleize_cols=False), name="fig")

    def rig(self) -> Any:
        """Row information gain: the sum of the CIG of each row, in bits (manual, section 1.7.2).

        n values: a pandas Series with the table's index (a Polars or cuDF Series or Arrow array for those kinds); of
        files a `StoredFrame` of one column; of a Dask frame a lazy series.
        """
        return self._backing.row_sums(self._score("cig"), "rig")

    def pif(self, n: float | Sequence[float]) -> Any:
        """PIF_n: the n-th percentile (linear) of the row information gains, in bits (manual, section 1.7.3).

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
        """Percentiles (linear) of the scores of each column, in a frame: scored columns by n.

        n: from 0 to 100, one or several. Scores that are unknown (NaN) count in none; of a column without any they are
        NaN. Raises InputError outside that, and as `scores[measure]`.
        """
        wanted = percents("percentiles", n).reshape(-1).tolist()
        found = self.column_answers(measure, ColumnQuery(percentiles=tuple(wanted)))
        rows = [[one.percentiles[percent] for percent in wanted] for one in found]
        return pd.DataFrame(rows, index=self._column_index, columns=pd.Index(wanted, name="percentile"))

    def means(self, measure: str) -> pd.Series[float]:
        """The mean score of each column, rounded once. Scores that are unknown (NaN) do not count.

        Raises InputError as `scores[measure]`.
        """
        found = self.column_answers(measure, ColumnQuery(mean=True))
        return pd.Series([one.mean for one in found], index=self._column_index, name=measure, dtype="float64")

    def count_above(self, measure: str, threshold: float) -> pd.Series[int]:
        """How many cells of each column have a score above a threshold. Raises InputError as `scores[measure]`."""
        found = self.column_answers(measure, ColumnQuery(above=(float(threshold),)))
        counts = [one.above[float(threshold)] for one in found]
        return pd.Series(counts, index=self._column_index, name=measure, dtype="int64")

    def column_answers(self, measure: str, asked: ColumnQuery) -> Sequence[ColumnAnswer]:
        """What is asked of the scores of each column. Raises InputError as `scores[measure]`."""
        score = self._score(measure)
        made = self._made_answers.of_columns.get(measure)
        if made is not None and all(one.covers(asked) for one in made):
            return made
        return self._backing.find(ScoreQuery(of_columns={score: asked})).of_columns[score]

    def top(self, n: int = 20, by: str | None = None) -> pd.DataFrame:
        """The n riskiest cells, by the measure `by` (default: CIG, or else the first that was scored).

        The highest come first, by `prior`, `cohort_size` and others where low is risky the lowest (a size of 0, that of
        nobody, last); ties go to the earlier row, then the earlier column; cells without a score are none of them.

        Columns: row (position, from 0), index (the table's label of the row, pandas and cuDF only), column, value, the
        scored measures, posterior, prior, cohort_size. Of several attackers, attacker: the first who is the worst for
        the cell by this measure. Where any r columns are known, known: the columns that the attacker knows who is.
        posterior and cohort_size are against that attacker, even where they were scored; all other scores are the worst
        over all. Of mean scores there is no posterior and no cohort, for each attacker has another one. Of scores that
        were opened from files, whose table is not at hand, there are no values, priors, posteriors and cohorts but
        those that were scored.
        """
        return self._top(whole_number("top", n, "cells"), by)

    def cells(self, where: str | None = None, *, top: int | None = None, by: str | None = None) -> CellTable:
        """Cells in place of all scores: those above a threshold, or the riskiest of these or of all, one row each.

        Parameters
        ----------
        where:
            A condition on a cell's scores: a score compared with a number by ``>``, ``>=``, ``<`` or ``<=``, several
            joined by ``and`` and ``or`` (``and`` binds closer) and put in brackets: ``"cig >= 3 and (csf > 0.9 or
            cohort_size < 5)"``. A score is a measure that was scored, of several attackers (or any few columns) as
            ``scores.cig`` has it, or one of the columns of scores that the result has (``neighbour_cig``,
            ``cig_mean``); names with other characters than letters, digits, ``_`` and ``.`` stand in double quotes. No
            comparison holds of a score that is unknown (NaN). Default: all cells.
        top:
            Only so many, the riskiest, which come first: by `by`, and of equal ones the earlier row, then the earlier
            column, as `Scores.top` has them; cells without a score are none of them. Without it cells are in the order
            of rows, and then columns.
        by:
            The score by which they are the riskiest. Default: CIG, or else the first that was scored.

        Returns
        -------
        CellTable
            row, column, value and all scores, which are found when they are asked for: ``.to_pandas()``,
            ``.to_arrow()``, ``.to_polars()``, ``.to_batches()``, ``.write("cells.parquet")``.

        Raises
        ------
        InputError
            Any other text for `where`; scores that were not scored; a number of cells below 1.

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
        selection = Selection.of(where, top, by)
        source = self._backing.cells(selection.query(self._view))

        def describe(with_summaries: bool) -> ScoresDescription:
            return replace(self._description(with_summaries), cells=selection.to_dict())

        return CellTable(source, describe, self._inputs)

    def summary(self) -> Summary | AttackerSummary:
        """Risk by column and for the whole table; prints as a table, `.columns` is a DataFrame, `.to_dict()` plain.

        Of several attackers an `AttackerSummary` of each; where any r columns are known, of the worst scores, and of
        the mean scores under ``.mean``.
        """
        if self._fold is None and len(self._attackers) > 1:
            summaries = {name: self.against(name)._summary_of_one() for name in self.attackers}
            return summarize_attackers(summaries, {str(one.name): list(one.known) for one in self._attackers})
        return self._summary_of_one()

    def frame(self) -> Any:
        """All scores in one frame of the kind that came in (or a `StoredFrame`, or a Dask frame), columns named
        <measure>_<column>, of any known columns <measure>_worst_<column> and <measure>_mean_<column>; of attackers with
        a name <attacker>_<measure>_<column>, and so on. Raises OutputError where names collide.
        """
        return self._backing.joined(self._view.outputs())

    def to_arrow(self, keep_input: bool = False) -> pa.Table:
        """All scores as one Arrow table in memory, columns named as by `frame`, rows in order.

        keep_input: put the columns of the table before them. A pandas index other than the row numbers comes last, as
        pandas stores it. Raises OutputError where names collide.
        """
        return self._backing.to_arrow(self._view.outputs(), keep_input)

    def to_parquet(
        self, path: str | os.PathLike[str], *, keep_input: bool = False, overwrite: bool = True, **options: Any
    ) -> None:
        """Write all scores to Parquet, columns named as by `frame`, rows in order; `open_scores` opens them again.

        One file, whose name ends in .parquet or .pq; of a Dask frame a folder of files, named without such an ending,
        which all workers have to see under the same path. It appears whole or not at all, and never in place of files
        that were scored. keep_input: put the table's columns before the scores (a table read from a file has only the
        columns that were needed). overwrite: replace a file that exists, or a folder that holds nothing but scores of
        gpupif. What a URL (``s3://...``) names, with Dask, must be empty, and is written in place. options: of
        ``dask.dataframe.DataFrame.to_parquet``, such as ``write_index=False``; not ``compute=False``, ``append``,
        ``partition_on`` and ``filesystem``.

        Raises OutputError where it cannot be written, and InputError for other options and for what is no path.
        """
        check_path("path", path, "a file or folder to write")
        if not self._backing.writes_folders:
            check_output(path, overwrite, self._inputs(), PARQUET.written)
            refuse_options(options, "to_parquet")
        self._backing.write(replace(self._writing(path, keep_input, overwrite), options=options))

    def write(
        self,
        path: str | os.PathLike[str],
        keep_input: bool = False,
        overwrite: bool = True,
        done: Callable[[int], None] = lambda rows: None,
    ) -> None:
        """As `to_parquet`; a single file also to CSV and Feather, by its ending. done: hears how many rows went out."""
        check_path("path", path, "a file or folder to write")
        if not self._backing.writes_folders:
            check_output(path, overwrite, self._inputs())
        self._backing.write(replace(self._writing(path, keep_input, overwrite), done=done))

    def persist(self, **options: Any) -> Scores:
        """Scores that are computed and kept: of a Dask frame in the memory of the workers, at once on a cluster.

        Others are the same, for they are there already. options: of ``dask.persist``. Raises InputError for options of
        others.
        """
        if not self._backing.writes_folders:
            refuse_options(options, "persist")
        return Scores(self._backing.persist(**options), self._attackers, self._fold)

    def _of_fold(self, fold: str) -> Scores:
        """These scores over all attackers; of one with a list of columns they are its own."""
        if self._fold is not None or (len(self._attackers) == 1 and len(self._attackers[0].folds) == 1):
            return self
        return Scores(self._backing, self._attackers, fold)

    def _measure(self, name: str) -> Measure:
        for measure in self._backing.about.measures:
            if measure.name == name:
                return measure
        raise NotScoredError(
            f"measures: {name!r} was not scored (scored: {', '.join(self.measures)}).{self._mend(name)}"
        )

    def _mend(self, name: str) -> str:
        """What somebody may have meant who asked for a measure that was not scored, as a sentence behind another."""
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
        """The scores of one measure."""
        return self._view.score(self._measure(measure))

    def _by(self, by: str | None) -> CellScore:
        return self._score(by or self._view.default.name)

    def _shown(self, by: CellScore) -> list[CellScore]:
        """What `top` has to know of a cell: its scores, and which of several attackers is its worst."""
        return [*map(self._score, self.measures), *(CellScore(by.measure, (output,)) for output in by.outputs)]

    def _top(self, n: int, by: str | None) -> pd.DataFrame:
        score = self._by(by)
        found = self._backing.find(ScoreQuery(top=n, by=score, shown=self._shown(score)))
        return self._describe_cells(found.top, score)

    def _describe_cells(self, found: Sequence[RiskyCell], by: CellScore) -> pd.DataFrame:
        """`top`, of these cells with the scores of `_shown`."""
        explainers = [self._backing.explainer(attacker) for attacker in self._attackers]
        labels = None if explainers[0] is None else explainers[0].labels([cell.row for cell in found])
        seen: list[dict[str, Any]] = [{} for _ in found]
        if self._view.side == MEAN:
            seen = seen if explainers[0] is None else explainers[0].values(found)
            return cell_records(found, self.columns, self.measures, seen, labels)
        worst = [self._worst_of(cell, by) for cell in found]
        for place, explainer in enumerate(explainers):
            mine = [number for number, attacker in enumerate(worst) if attacker == place]
            if explainer is not None and mine:
                told = explainer.explain([found[number] for number in mine], by.measure)
                for number, facts in zip(mine, told, strict=True):
                    seen[number] = facts
        if len(explainers) > 1:
            named = [{"attacker": self._attackers[place].name} for place in worst]
            seen = [facts | name for facts, name in zip(seen, named, strict=True)]
        return cell_records(found, self.columns, self.measures, seen, labels)

    def _worst_of(self, cell: RiskyCell, by: CellScore) -> int:
        """Which attacker is the worst for a cell, of several the first."""
        return worst_place(by.measure, np.array(cell.scores[len(self.measures) :]))

    def _summary_of_one(self) -> Summary:
        """`summary` of one attacker, or of one score over several."""
        if self._fold is None and len(self._attackers[0].folds) > 1 and self.subsets is not None:
            return AnyKnownSummary.of(self.worst._summarize(), self.mean._summarize(), self.subsets)
        return self._summarize()

    def _summarize(self) -> Summary:
        """Return the summary of one score for each cell."""
        if self._made_summary is None:
            self._keep_summary(self._backing.find(self._summary_query()))
        made = self._backing.summaries[self._place_of_summary]
        # Stages may have come to the scores since.
        return replace(made, seconds={**made.seconds, **self.seconds}, attacker=self._attacker_line)

    @property
    def _attacker_line(self) -> str:
        """The sentence on what the attacker knows; empty if there are several attackers."""
        if len(self._attackers) > 1 or self.subsets is not None:
            return ""
        return attacker_line(self.known, self.columns)

    @property
    def _place_of_summary(self) -> tuple[tuple[str, ...], str]:
        return self.attackers, self._view.side

    @property
    def _made_summary(self) -> Summary | None:
        """The summary of one score for each cell, where it is made already."""
        return self._backing.summaries.get(self._place_of_summary)

    @property
    def _made_answers(self) -> ScoreAnswers:
        """What is known already of one score for each cell, beside the summary."""
        return self._backing.answers.get(self._place_of_summary, ScoreAnswers())

    @property
    def _column_index(self) -> pd.Index[Any]:
        return pd.Index(self.columns, name="column", tupleize_cols=False)

    def _summary_query(self) -> ScoreQuery:
        """What has to be known of all cells for the summary of one score for each."""
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
        )

    def _keep_summary(self, found: QueryResult) -> None:
        """Make the summary of one score for each cell from the answer to its query."""
        weights = list(self.weights.values())
        facts = self._backing.column_facts()
        percentiles = [[*one.percentiles.values()] for several in found.of_columns.values() for one in several]
        # What ran is known of lazy scores now.
        about = self._backing.about
        self._backing.summaries[self._place_of_summary] = Summary(
            rows=self.rows,
            distinct_rows=self.distinct_rows,
            device=about.device,
            measures=self.measures,
            seconds=dict(about.seconds),
            columns=summary_columns(self.columns, facts, self.rows, found.figures, percentiles, weights),
            pif=dict(zip(OF_ROWS, found.of_rows, strict=True)) if "cig" in self.measures else {},
            top=self._describe_cells(found.top, self._by(None)),
            through_host=about.through_host,
        )

    def _inputs(self) -> list[Path]:
        """The files that were scored, and those of their population, and folders that these were: not to be lost."""
        found: list[Path] = []
        for table in (self.provenance.get("input"), self.provenance.get("population")):
            if table and "path" in table:
                path, files = Path(table["path"]), table["files"]
                # One file of a folder of scores says only how many there were.
                found += [Path(file["path"]) for file in files] if isinstance(files, list) else []
                found += [path] if path.is_dir() else []
        return found

    def _writing(self, path: str | os.PathLike[str], keep_input: bool, overwrite: bool) -> WriteRequest:
        """What is written of these scores, and said of them."""
        waiting = [view for views in self._summarised() for view in views.values() if view._made_summary is None]

        def answered(results: Sequence[QueryResult]) -> None:
            for view, found in zip(waiting, results, strict=True):
                view._keep_summary(found)

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
        """The scores whose summaries a file of these scores holds, by attacker and fold."""
        if self._fold is not None:
            return [{self._fold: self}]
        return [{fold: Scores(self._backing, [one], fold) for fold in one.folds} for one in self._attackers]

    def _written(self) -> list[ScoredAttacker]:
        """The attackers, as a file of these scores has them."""
        return list(self._attackers) if self._fold is None else [self._view.as_one()]

    def _description(self, with_summaries: bool) -> ScoresDescription:
        """What a file of these scores is to say of itself."""
        backing = self._backing
        outcomes = [
            AttackerOutcome(
                attacker,
                weights={fold: list(view.weights.values()) for fold, view in of_folds.items()},
                distinct_rows=next(iter(of_folds.values())).distinct_rows if with_summaries else None,
                summaries={fold: view._summarize() for fold, view in of_folds.items() if with_summaries},
            )
            for attacker, of_folds in zip(self._written(), self._summarised(), strict=True)
        ]
        return ScoresDescription(backing.about, outcomes, backing.column_facts(), backing.packed_priors(), self.rows)
