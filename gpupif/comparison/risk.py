"""The risk of a table before and after its treatment, side by side, from `gpupif.score` and `gpupif.risk`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..attack.arguments import Arguments
from ..disclosure.risk import risk
from ..errors import NearlyUniqueWarning, NothingKnownWarning
from ..inspection.table_facts import find_facts
from ..marginals.request import CountRequest
from ..out_of_core.output_options import OutputOptions
from ..results.score_distribution import ColumnQuery, ScoreQuestions
from ..scoring.files import score_file
from ..scoring.score import score_table
from ..utils.display import as_text
from ..utils.progress import Reporter

if TYPE_CHECKING:
    import pandas as pd

    from ..results.scores import Scores

# The percentiles of row information gains, and of the scores of cells.
GAIN_PERCENTS = (50.0, 95.0, 99.0)
CELL_PERCENTS = (50.0, 95.0, 99.0, 100.0)
CELL_MEASURES = ("cig", "csf")
# A column that is neither known nor sensitive is named if at least this share of the rows is unique by its value alone.
SINGLED_OUT = 0.1
# The disclosure measures of sensitive attributes.
ATTRIBUTE_MODELS = ("distinct_l", "t")
# The figures for which a low value is risky; for all others a high value is.
LOW_IS_RISKY = ("k", "distinct_l")


@dataclass(frozen=True)
class RiskRequest:
    """The columns of a table whose risk is measured. Cells of both kinds of columns are scored.

    known: the quasi-identifiers. sensitive: sensitive attributes. distances: of their values, by column. weights: the
    column of sampling weights, as in `gpupif.score` and, with sensitive attributes, `gpupif.risk`; None without.
    """

    known: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    distances: Mapping[Hashable, Any]
    weights: Hashable = None

    def without(self, dropped: Collection[Hashable]) -> RiskRequest:
        """Return the request for a table without these columns."""
        known, sensitive = ([name for name in own if name not in dropped] for own in (self.known, self.sensitive))
        return replace(self, known=known, sensitive=sensitive)


@dataclass(frozen=True)
class RiskFigures:
    """The risk of a table.

    table: figures of the table, by name. cells: percentiles of the scores of cells, by measure, column and percent.
    """

    table: Mapping[str, float]
    cells: Mapping[tuple[str, Hashable, float], float]


def measure_risk(table: Any, request: RiskRequest, missing: str) -> RiskFigures:
    """Measure the risk of a table of any kind. missing: as in `gpupif.score`. No columns give no figures."""
    scored = [*request.known, *request.sensitive]
    if not scored:
        return RiskFigures({}, {})
    own = {name: what for name, what in request.distances.items() if name in request.sensitive}
    with warnings.catch_warnings():
        # If there is a single quasi-identifier, nothing else is known when it is scored: the caller cannot change this.
        warnings.simplefilter("ignore", NothingKnownWarning)
        known = list(request.known)
        arguments = Arguments.from_user(CELL_MEASURES, scored, known=known, missing=missing, weights=request.weights)
        scores = _score(table, arguments)
    figures: dict[str, float] = dict(zip(map(_pif_name, GAIN_PERCENTS), scores.pif(GAIN_PERCENTS), strict=True))
    cells: dict[tuple[str, Hashable, float], float] = {}
    for measure in CELL_MEASURES:
        answers = scores.column_answers(measure, ColumnQuery(CELL_PERCENTS))
        for name, answer in zip(scores.columns, answers, strict=True):
            cells |= {(measure, name, percent): answer.percentiles[percent] for percent in CELL_PERCENTS}
        for percent in CELL_PERCENTS:
            values = [answer.percentiles[percent] for answer in answers]
            figures[_cell_name(measure, percent)] = max((value for value in values if value == value), default=0.0)
    with warnings.catch_warnings():
        # Scoring has warned of them.
        warnings.simplefilter("ignore", NearlyUniqueWarning)
        of_classes = _class_figures(table, request, own, missing)
    return RiskFigures(figures | of_classes, cells)


def _score(table: Any, arguments: Arguments) -> Scores:
    """Score a table. The files of a path are scored in memory if they fit, else in partitions."""
    if not isinstance(table, str | os.PathLike):
        return score_table(table, arguments)
    asked = ScoreQuestions({measure: ColumnQuery(CELL_PERCENTS) for measure in CELL_MEASURES}, GAIN_PERCENTS)
    options = replace(OutputOptions.from_arguments(None, summary_only=True), questions=asked)
    return score_file(table, arguments, options).scores


def _class_figures(
    table: Any, request: RiskRequest, distances: Mapping[Hashable, Any], missing: str
) -> dict[str, float]:
    """Return the figures of equivalence classes by name; none without quasi-identifiers."""
    if not request.known:
        return {}
    models = [*ATTRIBUTE_MODELS, "k"] if request.sensitive else None
    risks = risk(
        table,
        list(request.known),
        list(request.sensitive) or None,
        models=models,
        distance=dict(distances) or None,
        groups=1 if request.sensitive else 0,
        missing=missing,
        weights=request.weights if request.sensitive else None,
    )
    figures: dict[str, float] = {
        "k": risks.classes.k,
        "uniques": risks.classes.uniques,
        "unique_share": risks.classes.unique_share,
    }
    for name in ATTRIBUTE_MODELS if request.sensitive else ():
        figures[name] = risks.worst[name]
    if "certain_rows" in risks.attributes:
        figures |= {certain_rows(name): int(rows) for name, rows in risks.attributes["certain_rows"].items()}
    return figures


def certain_rows(name: Hashable) -> str:
    """Return the name of the figure: how many rows are in classes with a single value of a sensitive attribute."""
    return f"certain_rows({as_text(name)})"


def singled_out(table: Any, columns: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return columns by whose value alone at least `SINGLED_OUT` of the rows are unique, and how many rows are."""
    if not columns:
        return {}
    with Reporter(visible=False) as silent:
        facts = find_facts(table, CountRequest(columns), silent)
    return {name: own.once for name, own in facts.items() if own.once >= max(1, SINGLED_OUT * own.rows)}


def _pif_name(percent: float) -> str:
    return f"pif{percent:g}"


def _cell_name(measure: str, percent: float) -> str:
    return f"max_{measure}" if percent == CELL_PERCENTS[-1] else f"p{percent:g}_{measure}"


def side_by_side(before: RiskFigures, readings: Mapping[str, RiskFigures]) -> pd.DataFrame:
    """Return a frame with one row for each figure: before, after by reading of suppressed cells, and the worse."""
    import pandas as pd

    names = list(dict.fromkeys([*before.table, *(name for own in readings.values() for name in own.table)]))
    records = []
    for name in names:
        own = {reading: figures.table.get(name) for reading, figures in readings.items()}
        records.append({"before": before.table.get(name), **_with_worst(own, name in LOW_IS_RISKY)})
    return pd.DataFrame(records, index=pd.Index(names, name="figure"), columns=["before", *_columns(readings)])


def cells_side_by_side(before: RiskFigures, readings: Mapping[str, RiskFigures]) -> pd.DataFrame:
    """Return a frame with one row for each percentile of a column's scores, and the columns of `side_by_side`."""
    import pandas as pd

    records = []
    for (measure, column, percent), value in before.cells.items():
        own = {reading: figures.cells.get((measure, column, percent)) for reading, figures in readings.items()}
        identity = {"column": column, "measure": measure, "percentile": percent}
        records.append({**identity, "before": value, **_with_worst(own, False)})
    return pd.DataFrame(records, columns=["column", "measure", "percentile", "before", *_columns(readings)])


def _columns(readings: Mapping[str, RiskFigures]) -> list[str]:
    return [*(f"after_{reading}" for reading in readings), "after", *(["worse_reading"] if len(readings) > 1 else [])]


def _with_worst(own: Mapping[str, float | None], low_is_risky: bool) -> dict[str, float | str | None]:
    known = [value for value in own.values() if value is not None and value == value]
    worst = (min if low_is_risky else max)(known) if known else None
    record: dict[str, float | str | None] = {f"after_{reading}": value for reading, value in own.items()}
    record["after"] = worst
    if len(own) > 1:
        reading = [name for name, value in own.items() if value == worst]
        record["worse_reading"] = "both" if len(reading) > 1 else reading[0] if reading else None
    return record
