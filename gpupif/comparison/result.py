"""The result of `gpupif.compare`: risk and utility side by side; printed as tables."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attack.attackers import attacker_line
from ..criteria.criterion_set import CriterionValue
from ..errors import listed, printable
from ..treatment.record import OF_ROWS_LEFT
from ..utils.display import (
    Displayable,
    Heading,
    as_cell,
    as_json,
    as_part,
    as_percent,
    as_text,
    draw_line,
    draw_table,
    draw_verdict,
    highest_place,
    json_value,
    plural,
    quoted,
)
from ..utils.redaction import HIDDEN, as_count, as_interval, named_figure
from .column_plot import plot_columns
from .continuous_values import Continuous
from .record_linkage import Linkage
from .risk import certain_rows
from .utility import Utility

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..utils.printed_table import PrintedTable

# At most this number of pairs of columns are shown, the pairs that lost most.
SHOWN_PAIRS = 10
# At most this number of estimates are shown, the estimates that differ most.
SHOWN_ESTIMATES = 20
# The most criteria that a verdict names.
SHOWN_CRITERIA = 4

FIGURES = {
    "pif50": "PIF 50, bits",
    "pif95": "PIF 95, bits",
    "pif99": "PIF 99, bits",
    **{
        f"{key}_{measure}": f"{name} {measure.upper()}{unit}"
        for measure, unit in (("cig", ", bits"), ("csf", ", 0 to 1"))
        for key, name in (
            ("p50", "median"),
            ("p95", "95th percentile of"),
            ("p99", "99th percentile of"),
            ("max", "highest"),
        )
    },
    "k": "k, rows of the smallest class",
    "uniques": "unique rows",
    "unique_share": "share of unique rows, 0 to 1",
    "distinct_l": "distinct l, values",
    "t": "t, 0 to 1",
}
# The figures of risk that a verdict names.
IN_VERDICT = {"k": "k", "uniques": "unique rows", "pif95": "PIF 95 (bits)"}
READINGS = {
    "before": "before",
    "after_category": "missing is a value",
    "after_wildcard": "missing matches all",
    "after": "after: the worse",
    "worse_reading": "by which",
}
SHORT_READINGS = {"category": "a value", "wildcard": "matches all", "both": "both"}
# The notes below the table of risk: which column the figures are of, and what follows if cells were suppressed.
OF_WORST_COLUMN = "CIG and CSF: of the column where the figure is highest. Distinct l and t: of the worst class."
LINKED = "Linked: rows that an attacker finds again who has these numbers as they were, as the nearest ones."
BOTH_READINGS = (
    'Suppressed cells are read in two ways. "missing is a value": a missing value is a value of its own, the same in '
    'all rows with one. "missing matches all": it matches every value. Neither is always the safer one.'
)
COLUMNS = {
    "entropy_before": "entropy before",
    "entropy_after": "entropy after",
    "entropy_lost": "entropy lost",
    "information_kept": "information kept",
    "total_variation": "total variation, 0 to 1",
    "emd": "EMD, 0 to 1",
    "precision": "precision, 0 to 1",
    "cells_changed": "cells changed",
    "cells_suppressed": "cells suppressed",
}
KEPT = "information_kept"
# What lost information, by the name of the figure.
LOST_BY = {
    "information_lost_coarser": "coarser values",
    "information_lost_suppressed": "suppressed cells",
    "information_lost_changed": "changed values",
}
INFORMATION = (
    "Information: a cell has -log2 p bits; p is the share of its value before. A coarser value keeps the bits of its "
    "group. A suppressed cell keeps none, nor does a number that became another number. Changed cells are of the rows "
    "that are left. Entropies are of each table by itself."
)


@dataclass(frozen=True)
class Comparison(Displayable):
    """A table before and after its treatment; made by `gpupif.compare`. Prints as tables.

    rows: int. Rows of the table before.
    rows_taken_away: int. Rows of the table before that the table after lacks.
    quasi_identifiers: list of names.
    sensitive: list of names.
    weights: the column whose sampling weights weight the scores and the shares of sensitive values in `risk` and
        `cells`; None if each row counts once.
    dropped: list of names. The columns that the table after lacks.
    not_compared: list of names. Further columns of the table before, without row_id and weights.
    singled_out: dict. By column that is neither known nor sensitive, the rows of the table after that are unique by its
        value alone; only columns where at least a tenth of the rows are.
    risk: frame, one row for each figure. Figures that a table does not have are None.
        Rows: ``pif50``, ``pif95``, ``pif99`` (bits); ``p50_cig`` to ``max_cig`` (bits) and ``p50_csf`` to ``max_csf``:
        the percentiles of the cells of a column, the highest of all columns; ``k``, ``uniques``, ``unique_share``;
        with sensitive attributes ``distinct_l``, ``t`` (the worst), and for each, as ``certain_rows(income)``, the rows
        that are in classes with a single value of it, classes of one row too.
        Columns: ``before``; ``after_category`` (a missing value is a value of its own) and ``after_wildcard`` (a
        missing value matches every value), each if it was asked for, without suppressed cells only the first;
        ``after``, the worse of the two; with both, ``worse_reading``: "category", "wildcard", or "both" if they are
        equal.
    cells: frame, one row for each column, measure (``cig``, ``csf``) and percentile; columns as of `risk`.
    utility: the utility of the whole table, see `Utility`.
    columns: frame, one row for each column.
        values_before, values_after: distinct values, without missing. entropy_before, entropy_after, entropy_lost: bits
        for each row of that table. information_kept, information_lost_coarser, information_lost_suppressed and
        information_lost_changed: 0 to 1, NaN if entropy_before is 0. nonuniform_entropy_loss: bits. total_variation,
        emd: 0 to 1, between the distributions at the released detail (emd: a share of the longest distance). precision:
        1 for unchanged values, 0 for the top of the hierarchy, NaN without a hierarchy. cells_changed,
        cells_suppressed: numbers of cells in the rows that are left; 0 if the column was dropped. See `Utility`.
        detail: "same" (values did not change), "mapped" (a function of the value was released), "levels" (rows with
        equal values were recoded to several levels by the plan), "perturbed" (no function was), "dropped".
    pairs: frame, one row for each pair of columns that the table after has.
        mutual_information_before, mutual_information_after: bits, over the rows in which both tables have both cells.
        mutual_information_kept: after over before, 0 to 1; NaN if there was none before, or if a column is no function
        of its values before, since values that are drawn at random may agree by chance. total_variation: at the
        released detail.
    linkage: see `Linkage`; None if rows were not linked.
    continuous: the disclosure risk and information loss of columns of numbers, see `Continuous`; None if none are
        measured.
    estimates: frame, one row for each estimate. column: its name. estimate: of a column of numbers that is measured
        "mean", "deviation" (standard deviation, divisor n - 1), "variance" and "q5" to "q95" (percentiles, linear
        between two numbers), each over the numbers that a table has. "covariance" and "correlation" with `other`, and
        "coefficient" of the column `other` when `column` is fitted by least squares on a constant and all other
        measured columns; these are over the rows of a table with a value in all measured columns. With weights, for
        all columns: "weighted_total", "weighted_mean" and "weighted_q5" to "weighted_q95" of numbers (the least number
        up to which that share of the people is), and "weighted_share" of the value `other` at the released detail, see
        `gpupif.compare`; over the cells with a value. before, after, difference: floats, in the unit of the column;
        NaN where a table has too few rows, or a column follows from others.
    seconds: dict. Wall time by stage.
    criteria: list. The value of each criterion of the plan in the table after. Empty without a plan, or criteria.
    unmet: why the table after does not meet them, in a sentence; None if it does.
    """

    rows: int
    rows_taken_away: int
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable]
    weights: Hashable
    dropped: Sequence[Hashable]
    not_compared: Sequence[Hashable]
    singled_out: Mapping[Hashable, int]
    risk: pd.DataFrame
    cells: pd.DataFrame
    utility: Utility
    columns: pd.DataFrame
    pairs: pd.DataFrame
    linkage: Linkage | None
    continuous: Continuous | None
    estimates: pd.DataFrame
    seconds: Mapping[str, float]
    criteria: Sequence[CriterionValue] = ()
    unmet: str | None = None

    @property
    def is_met(self) -> bool:
        """Return whether the table after meets the criteria of the plan; True without a plan, or criteria."""
        return self.unmet is None

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON; `risk` is a dict by figure, with its name in words.

        `notes` says what information, changed cells and entropies are.
        """
        fields = super().to_dict()
        risk = self.risk.to_dict("index").items()
        fields["risk"] = {own: {"name": _figure(str(own)), **as_json(_plain(row))} for own, row in risk}
        criteria = [{key: json_value(own) for key, own in value._asdict().items()} for value in self.criteria]
        return {**fields, "criteria": criteria, "is_met": self.is_met, "notes": [INFORMATION]}

    def plot(self, figure: str | None = None, *, ax: Any = None, **options: Any) -> Any:
        """Draw a figure of each column before and after as axes of Matplotlib (extra ``plot``), the highest first.

        figure: "entropy" (bits a row), or a percentile of the scores of the cells of a column: "p50_cig", "p95_cig",
        "p99_cig", "max_cig" (bits), or "p50_csf" to "max_csf". Default: "p95_cig", or "entropy" if no scores were
        compared. After is the worse reading of suppressed cells. ax: the axes to draw on. Default: a new figure.
        options: of ``Axes.plot``, for the points of both tables. Raises InputError for another figure, for axes that
        are none, and without Matplotlib.
        """
        return plot_columns(self.columns, self.cells, figure, ax, options)

    def __repr__(self) -> str:
        return f"<Comparison of {self.rows:,} rows x {len(self.columns)} columns>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        said = attacker_line(self.quasi_identifiers, list(self.columns.index))
        gone = f", {self.rows_taken_away:,} taken away" if self.rows_taken_away else ""
        rows = f"{self.rows:,} {plural(self.rows, 'row')}{gone}, before and after treatment. {said}"
        risk, left = self.risk.to_dict("index"), self.rows - self.rows_taken_away

        def shown(key: str, figure: Any) -> str:
            return named_figure(key, _plain({key: figure})[key], left) if redact else _value(figure)

        figures = [
            f"{name} {before or 'none'} before, {after or 'none'} after"
            for key, name in IN_VERDICT.items()
            if key in risk
            for before, after in [[shown(key, risk[key][when]) for when in ("before", "after")]]
        ]
        figures += [] if redact else self._certain(risk)
        if self.singled_out:
            name = max(self.singled_out, key=lambda own: self.singled_out[own])
            number = self.singled_out[name]
            rows_of = as_count(number, left) if redact else f"{number:,}"
            share = f" ({as_part(number / left)})" * (not redact)
            figures.append(f"but {quoted(name)}, no quasi-identifier, is unique in {rows_of} rows{share} after")
        others = f"Not compared, though in the table before: {listed(self.not_compared, 20, quoted)}."
        measured = [f"{'; '.join(figures)}."] * bool(figures)
        met = listed([own.criterion for own in self.criteria if own.is_met], SHOWN_CRITERIA, str)
        first = [f"Met by the table after: {met}."] * bool(met)
        if self.unmet is not None:
            first = ["NOT MET." if redact else printable(f"NOT MET: {self.unmet.partition(': ')[2]}")]
        return [
            *first,
            rows,
            *measured,
            f"{self._kept(redact)}{self._lost(redact)}.",
            *([others] * bool(self.not_compared)),
        ]

    def _certain(self, risk: Mapping[Hashable, Mapping[Any, Any]]) -> list[str]:
        """Return in words how many rows have a certain value of the sensitive attribute of which most rows have."""
        of_columns = {name: risk[certain_rows(name)] for name in self.sensitive if certain_rows(name) in risk}
        if not of_columns:
            return []
        # A column that was dropped has NaN after.
        names = list(of_columns)
        name = names[highest_place(of_columns[own]["after"] for own in names)]
        before, after = (_value(of_columns[name][when]) or "none" for when in ("before", "after"))
        return [f"{quoted(name)} certain in {before} rows before, {after} after"]

    def _part(self, share: float, redact: bool) -> str:
        """Return a share of the information of some columns in percent."""
        if not redact:
            return as_part(share)
        shown = as_interval(share, self.rows - self.rows_taken_away, percent=True)
        return "a share" if shown == HIDDEN else shown

    def _kept(self, redact: bool) -> str:
        """Return in words the information that is kept, and how many cells changed."""
        utility, known = self.utility, self.columns.loc[list(self.quasi_identifiers)]
        rows = OF_ROWS_LEFT * bool(self.rows_taken_away)
        # Cells of one column tell how frequent the values are that were changed.
        shown = as_count if redact else "{:,}".format
        changed = f"{shown(utility.cells_changed)} of {utility.cells:,} cells{rows} changed"
        if utility.cells_suppressed:
            changed += f", {shown(utility.cells_suppressed)} of them suppressed"
        share, there = _percent(utility.information_kept), math.fsum(known["entropy_before"])
        if not share:
            # Constant columns have no information.
            return changed
        share = self._part(utility.information_kept or 0.0, redact) if redact else share
        if len(known) < len(self.columns) and there > 0:
            own = math.fsum((known["information_kept"] * known["entropy_before"]).dropna())
            number = len(self.columns)
            every = f"the {number} columns compared" if self.not_compared else f"all {number} columns"
            share = f"{self._part(own / there, redact)} in the quasi-identifiers"
            # A reader knows the entropies of those, and so how much is of other columns.
            share += "" if redact else f", {_percent(utility.information_kept)} in {every}"
        return f"Information kept: {share}; {changed}"

    def _lost(self, redact: bool) -> str:
        """Return in words by what the quasi-identifiers lost information; no text if they kept all."""
        known = self.columns.loc[list(self.quasi_identifiers)]
        there = math.fsum(known["entropy_before"])
        bits = {by: math.fsum((known[name] * known["entropy_before"]).dropna()) for name, by in LOST_BY.items()}
        lost = [f"{self._part(part / there, redact)} by {by}" for by, part in bits.items() if part > 0]
        return f"; lost in the quasi-identifiers: {', '.join(lost)}" if lost else ""

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        if len(self.risk):
            console.print()
            console.print(risk_table(self.risk, self.weights))
            draw_line(console, OF_WORST_COLUMN, "dim")
        if "after_wildcard" in self.risk:
            draw_line(console, BOTH_READINGS, "dim")
        console.print()
        console.print(utility_table(self.utility, self.linkage))
        draw_line(console, INFORMATION, "dim")
        tables = [columns_table(self.columns)]
        tables += [pairs_table(self.pairs)] if len(self.pairs) else []
        for table in tables:
            console.print()
            console.print(table)
        if self.continuous is not None:
            console.print()
            console.print(continuous_table(self.continuous))
            draw_line(console, LINKED, "dim")
        if len(self.estimates):
            console.print()
            console.print(estimates_table(self.estimates))


def _plain(row: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Return the row with whole floats as int: the frame holds counts and other figures in the same float column."""
    whole = {name: int(value) for name, value in row.items() if isinstance(value, float) and value.is_integer()}
    return {**row, **whole}


def _value(value: Any) -> str:
    if isinstance(value, str):
        return SHORT_READINGS[value]
    if value is None or value != value:
        return ""
    if float(value).is_integer():
        return f"{int(value):,}"
    return as_cell(float(value))


def risk_table(risk: pd.DataFrame, weights: Hashable) -> PrintedTable:
    """Draw risk side by side; if cells were suppressed, with both readings and which is worse."""
    shown = ["before", "after"] if "after_wildcard" not in risk else list(READINGS)
    titles = READINGS if "after_wildcard" in risk else {name: name for name in shown}
    headings = [Heading("", text=True), *(Heading(titles[name], show=_value) for name in shown)]
    rows = [[_figure(str(name)), *(row[key] for key in shown)] for name, row in risk.to_dict("index").items()]
    weighted = "" if weights is None else f" (scores and shares weighted by {as_text(weights)})"
    return draw_table(f"Risk{weighted}", headings, rows)


def _figure(name: str) -> str:
    """Return the name of a figure of risk in words, with its unit."""
    column = re.fullmatch(r"certain_rows\((.*)\)", name)
    return f"rows whose {column[1]} is certain" if column else FIGURES.get(name, name)


def utility_table(utility: Utility, linkage: Linkage | None) -> PrintedTable:
    """Draw the utility that the table lost, and the share of rows that are linked."""
    facts = [
        ("entropy lost, bits a row", as_cell(utility.entropy_lost)),
        ("information kept", _percent(utility.information_kept)),
        *((f"lost by {by}", _percent(getattr(utility, name) or None)) for name, by in LOST_BY.items()),
        ("non-uniform entropy loss, bits", as_cell(utility.nonuniform_entropy_loss)),
        ("equivalence classes", f"{utility.classes:,}"),
        ("rows a class", as_cell(utility.average_class_size)),
        ("rows a class, divided by k", _value(utility.normalized_class_size)),
        ("discernibility", f"{utility.discernibility:,}"),
        ("discernibility if no row was suppressed", f"{utility.discernibility_unsuppressed:,}"),
        ("precision, 0 to 1", _value(utility.precision)),
        ("mutual information kept, cells in both tables", _percent(utility.mutual_information_kept)),
        ("total variation, worst column, 0 to 1", as_cell(utility.total_variation)),
        ("total variation, worst pair, 0 to 1", _value(utility.pair_total_variation)),
        ("earth mover's distance, worst column, 0 to 1", as_cell(utility.emd)),
        ("cells changed", f"{utility.cells_changed:,} of {utility.cells:,}"),
        ("cells suppressed", f"{utility.cells_suppressed:,}"),
        ("rows changed", f"{utility.rows_changed:,}"),
        ("rows suppressed", f"{utility.rows_suppressed:,}"),
    ]
    if linkage is not None:
        facts.append(("linked to their nearest row", _linked(linkage)))
    headings = [Heading("", text=True), Heading("", show=str)]
    return draw_table("Utility", headings, [fact for fact in facts if fact[1]], show_headings=False)


def _linked(linkage: Linkage | None) -> str:
    """Return the share of rows that are linked, in words; nothing without linkage."""
    if linkage is None:
        return ""
    looked_for = f"{linkage.rows:,} {plural(linkage.rows, 'row')}"
    looked_for += "" if linkage.seed is None else f" drawn with seed {linkage.seed}"
    error = "" if linkage.standard_error is None else f" +- {100 * linkage.standard_error:.2g}"
    return f"{100 * linkage.share:.4g}{error} % of {looked_for}"


def continuous_table(found: Continuous) -> PrintedTable:
    """Draw the disclosure risk and information loss of the columns of numbers."""
    facts = [
        ("IL1s, mean change / (sqrt(2) deviations)", _value(found.il1s)),
        ("eigenvalues, relative difference", _value(found.eigenvalues)),
        (f"rows within {found.interval:g} deviations", _percent(found.rows_within_deviations)),
        (f"rows within {100 * found.interval:g} % of ranks", _percent(found.rows_within_ranks)),
        ("rows linked by distance", _linked(found.by_distance)),
        ("rows linked by rank", _linked(found.by_rank)),
    ]
    headings = [Heading("", text=True), Heading("", show=str)]
    title = f"Columns of numbers: {listed(list(found.columns), SHOWN_PAIRS, as_text)}"
    return draw_table(title, headings, [fact for fact in facts if fact[1]], show_headings=False)


def estimates_table(estimates: pd.DataFrame) -> PrintedTable:
    """Draw the estimates by their relative difference, the largest first."""
    size = estimates["before"].abs().where(estimates["before"] != 0, 1.0)
    order = (estimates["difference"].abs() / size).sort_values(ascending=False, kind="stable").index
    kept = estimates.assign(share=estimates["difference"] / estimates["before"].abs()).loc[order[:SHOWN_ESTIMATES]]
    more = f" (the first {len(kept)} of {len(estimates)})" if len(kept) < len(estimates) else ""
    headings = [
        Heading("estimate", text=True),
        *(Heading(name, show=_four_digits) for name in ("before", "after", "difference")),
        Heading("share of before", show=_signed_percent, once=True),
    ]
    rows = []
    for row in _rows(kept):
        other = "" if row["other"] is None or row["other"] != row["other"] else f", {as_text(row['other'])}"
        kind = re.sub(r"\bq(?=\d)", "percentile ", str(row["estimate"]).replace("_", " "))
        figures = [row[name] for name in ("before", "after", "difference", "share")]
        rows.append([f"{kind}: {as_text(row['column'])}{other}", *figures])
    return draw_table(f"Estimates, by their difference as a share of before{more}", headings, rows)


def _four_digits(value: float) -> str:
    return "" if value != value else as_cell(value)


def _signed_percent(share: float) -> str:
    return "" if not math.isfinite(share) else f"{'-' * (share < 0)}{as_percent(abs(share))}"


def _percent(share: float | None) -> str:
    return "" if share is None or share != share else as_part(share)


def columns_table(columns: pd.DataFrame) -> PrintedTable:
    """Draw the utility that each column lost."""
    shown = ["detail", *(name for name in COLUMNS if columns[name].notna().any())]
    headings = [Heading("column", text=True, show=as_text)]
    for name in shown:
        show = str if name == "detail" else _percent if name == KEPT else _value
        headings.append(Heading(COLUMNS.get(name, name), name == "detail", show, once=True))
    rows = [[name, *(row[key] for key in shown)] for name, row in zip(columns.index, _rows(columns), strict=True)]
    return draw_table("Columns; entropy in bits", headings, rows)


def _rows(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.to_dict("records")


def pairs_table(pairs: pd.DataFrame) -> PrintedTable:
    """Draw the pairs of columns that lost most mutual information."""
    lost = pairs["mutual_information_before"] - pairs["mutual_information_after"]
    shown = pairs.loc[lost.sort_values(ascending=False, kind="stable").index[:SHOWN_PAIRS]]
    more = f" (the first {len(shown)} of {len(pairs)})" if len(shown) < len(pairs) else ""
    headings = [
        Heading("pair", text=True),
        *(Heading(name, show=_value, once=True) for name in ("before", "after")),
        Heading("kept", show=_percent, once=True),
        Heading("total variation, 0 to 1", show=_value, once=True),
    ]
    keys = [f"mutual_information_{key}" for key in ("before", "after", "kept")]
    rows = [
        [f"{as_text(row['column_1'])} + {as_text(row['column_2'])}", *(row[key] for key in (*keys, "total_variation"))]
        for row in _rows(shown)
    ]
    title = f"Mutual information of pairs, in bits, over cells in both tables; most lost first{more}"
    return draw_table(title, headings, rows)
