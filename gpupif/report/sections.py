"""The sections of a report, from the documents of results: a section is there if a document has what it shows."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, NamedTuple

from ..errors import InputError, listed
from ..utils.display import as_cell, as_found, as_part, as_text, without_sizes
from ..utils.redaction import (
    HIDDEN,
    as_certain,
    as_count,
    as_interval,
    lower_end,
    named_figure,
    rows_of_percentile,
)
from . import figures
from .figures import Figure
from .records import Document, kind_of

# The keys of records that have values of the table.
VALUES = {"groups", "value", "index", "value_1", "value_2", "quasi_identifiers", "why"}
VALUES |= {"rows_told_apart", "low", "high"}
# A figure of one cell, one row, one class or one pair of values tells its values to who knows how frequent values are:
# in a redacted report it is hidden with them.
OF_ONE = "cig_median cig_p95 cig_max csf_max individual_risk_max pif_100 fig"
# Keys of figures that a redacted report shows exactly: of the sizes of classes, and of no table.
EXACT = {"unique_share", "highest", "average", "marketer", "people", "reidentifications", "epsilon", "delta", "spent"}
EXACT |= {"left", "sum", "zcdp", "rdp", "pld", "standard_error", "threshold", "seconds", "width", "base"}
# Keys of numbers of cells and rows that a redacted report shows as a range.
COUNTED = {"cells_changed", "cells_suppressed", "class_size_min", "msus", "smallest"}
# Options of commands whose values are no paths.
NO_PATHS = {"--quasi-identifiers", "--sensitive", "--require", "--sep"}
# Keys of single values of the table.
MAY_MISS = {"value", "value_1", "value_2"}
# Keys of shares, which are shown in percent.
SHARES = {"unique_mean", "unique_share", "share", "highest", "average", "marketer", "information_kept"}
SHARES |= {f"{name}_{figure}" for name in ("reidentification_risk", "individual_risk") for figure in ("mean", "max")}
LOST = [f"information_lost_{by}" for by in ("coarser", "suppressed", "changed")]
SHARES |= {*LOST, "mutual_information_kept", "journalist_highest", "individual_highest", "contribution"}
# The most cells of a published table that a report lists, the bounds of a suppressed cell, and headings of its facts.
MOST_CELLS = 1_000
BOUNDS = ("lower", "upper", "disclosed")
COUNT_TABLE = {
    "base": "base of rounding",
    "primary": "cells suppressed by the rules",
    "secondary": "cells suppressed to protect those",
    "totals_suppressed": "totals among them",
    "mean_change": "mean change of a figure",
    "cells": "cells with totals",
    "suppressed": "suppressed cells",
    "computed": "suppressed cells that can be computed",
    "disclosed": "suppressed cells that are bounded too closely",
    "width": "least width asked for",
}
# Keys of numbers that count nothing.
NUMBERED = {"row", "number"}
# Probabilities of all values sum to 1 up to this.
ROUNDING = 1e-9
# Headings of tables by key, if they are not the key itself.
HEADINGS = {
    "distinct_values": "values",
    "prior_entropy": "entropy, bits",
    "fig": "FIG, bits",
    "cig": "CIG, bits",
    "cig_mean": "mean CIG, bits",
    "cig_median": "median CIG, bits",
    "cig_p95": "95 % CIG, bits",
    "cig_max": "highest CIG, bits",
    "csf": "CSF",
    "csf_mean": "mean CSF",
    "csf_max": "highest CSF",
    "reidentification_risk_mean": "mean risk of re-identification",
    "reidentification_risk_max": "highest risk of re-identification",
    "individual_risk_mean": "mean individual risk",
    "individual_risk_max": "highest individual risk",
    "unique_mean": "rows alone in their class",
    "class_size_min": "smallest class, rows",
    "weight": "entropy left (weight of wCIG)",
    "row": "row, from 0",
    "people": "people, estimated",
    "k_map": "people of the smallest class there",
    "journalist_highest": "journalist risk there, highest",
    "individual_highest": "individual risk, highest",
    "reidentifications": "re-identifications expected, rows",
    "index": "label",
    "cohort_size": "cohort, rows",
    **{f"pif_{share}": f"PIF {share}, bits" for share in (50, 95, 99, 100)},
    "k": "k, rows of the smallest class",
    "classes": "equivalence classes",
    "uniques": "rows alone in their class",
    "unique_share": "share of rows alone in their class",
    "highest": "highest risk of a row (prosecutor)",
    "average": "mean risk of a row (prosecutor)",
    "marketer": "rows found by an attack on all (marketer)",
    "distinct_l": "distinct l",
    "alpha": "alpha, highest share",
    "recursive_c": "c of recursive (c,l)",
    "homogeneous_classes": "classes of several rows and one value",
    "certain_rows": "certain rows",
    "quasi_identifiers": "class",
    "worst": "figure",
    "equally_bad": "equally bad classes",
    "column_1": "column",
    "value_1": "its value",
    "column_2": "other column",
    "value_2": "the other's value",
    "count": "rows",
    "expected": "rows if independent",
    "rarity": "rarity, bits",
    "bits": "bits given up per row",
    "bought": "risk taken away",
    "bought_per_bit": "risk taken away per bit given up",
    "lost": "lost, bits",
    "entropy": "entropy, bits",
    "entropy_before": "entropy before, bits",
    "entropy_after": "entropy after, bits",
    "entropy_lost": "entropy lost, bits per row",
    "information_lost_coarser": "information lost by coarser values",
    "information_lost_suppressed": "information lost by suppressed cells",
    "information_lost_changed": "information lost by changed values",
    "mutual_information_kept": "mutual information kept, cells in both tables",
    "neighbours": "neighbouring tables",
    "contributions": "rows of a person, at most",
    "group": "persons protected together",
    "spent": "epsilon spent",
    "left": "epsilon left",
    "name": "gate",
    "number": "run",
    "started": "began, UTC",
    "pif95": "PIF 95, bits",
    "size": "columns together",
    "msus": "MSUs",
    "smallest": "rows with none smaller",
    "contribution": "share of all scores from MSUs with it",
    "suda": "SUDA score",
    "dis_suda": "DIS-SUDA, 0 to 1",
}
Record = Mapping[str, Any]


class Cell(NamedTuple):
    """A cell of a table. text: as it is shown. number: what it is sorted by; None for text."""

    text: str
    number: float | None = None


@dataclass(frozen=True)
class Table:
    """A table of a report. tools: whether it can be sorted, filtered and exported."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    tools: bool = False


@dataclass(frozen=True)
class Section:
    """A section of a report. notes: paragraphs."""

    title: str
    notes: Sequence[str] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = field(default_factory=list)


RIG_SAID = "RIG is the sum of a row's CIG. PIF 95 is its 95th percentile: 95 % of rows have no more."
# The title of the section of disclosure measures.
OF_ATTRIBUTES = "k, l, t and their worst class"
# The keys of figures of rows, and of the riskiest cells.
OF_ROWS = "reidentification_risk_mean reidentification_risk_max unique_mean class_size_min"
BUDGET = "epsilon delta neighbours contributions group spent left"
CELLS = "row index column value cells cig csf prior posterior cohort_size known attacker"


class Sections:
    """Makes the sections of documents. redact: whether values of the table are hidden."""

    def __init__(self, redact: bool) -> None:
        self._redact, self._rows = redact, 0

    def of(self, document: Document) -> list[Section]:
        """Return the sections of a document. Raises InputError for one that is not as gpupif makes it."""
        kind = kind_of(document)
        # Rows that are left after a treatment tell as little of their figures.
        of = next(iter(document["attackers"].values())) if kind == "attackers" else document
        self._rows = (of.get("rows") or 0) - (of.get("rows_taken_away") or 0)
        make: Callable[[Document], Iterable[Section]] = getattr(self, f"_{kind}")
        try:
            return list(make(document))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"report: the document of {kind} is damaged ({type(error).__name__}: {error}). Make it again."
            ) from error

    def _table(
        self,
        caption: str,
        records: Iterable[Record],
        keys: str,
        tools: bool = False,
        headings: Mapping[str, str] = MappingProxyType({}),
        hidden: str = "",
    ) -> list[Table]:
        """Return a table of records, with those of its columns that any record fills; no table without records.

        headings: in place of `HEADINGS`. hidden: keys of figures that tell values, which a redacted report hides, too.
        """
        rows = list(records)
        used = [key for key in keys.split() if any(row.get(key) is not None for row in rows)]
        cells = [[self._cell(key, row.get(key), hidden) for key in used] for row in rows]
        return [Table(caption, [headings.get(key) or _heading(key) for key in used], cells, tools)] if rows else []

    def _facts(
        self,
        caption: str,
        document: Document,
        keys: str,
        headings: Mapping[str, str] = MappingProxyType({}),
        hidden: str = "",
    ) -> list[Table]:
        """Return a table with a line for each figure of a document that it has. headings, hidden: see `_table`."""
        used = [key for key in keys.split() if document.get(key) is not None]
        lines = [[Cell(headings.get(key) or _heading(key)), self._cell(key, document[key], hidden)] for key in used]
        return [Table(caption, ["what", "figure"], lines)]

    def _cell(self, key: str, value: Any, hidden: str = "") -> Cell:
        if self._redact and (key in VALUES or key in hidden.split()):
            return Cell(HIDDEN)
        if value is None:
            # A value of a table that is missing, or a figure that there is not.
            return Cell(as_text(None) if key in MAY_MISS else "")
        if isinstance(value, bool):
            return Cell("yes" if value else "no")
        if isinstance(value, Mapping):
            return Cell(", ".join(f"{as_text(name)} = {as_found(own)}" for name, own in value.items()))
        if isinstance(value, int | float) and key not in VALUES:
            if self._redact and key in COUNTED:
                return Cell(as_count(int(value), self._rows if value <= self._rows else math.inf))
            if self._redact and isinstance(value, float):
                # What is embedded has no more digits than what is shown.
                if key not in EXACT and math.isfinite(value):
                    rows = rows_of_percentile(self._rows, key[4:]) if key.startswith("pif_") else self._rows
                    text = as_interval(value, rows, key in SHARES)
                    return Cell(text) if text == HIDDEN else Cell(text, lower_end(value, rows))
                value = float(f"{value:.4g}")
            shown = as_part(value) if key in SHARES else as_text(value) if key in NUMBERED else as_cell(value)
            return Cell(shown, float(value))
        return Cell(as_found(value))

    def _scores(self, document: Document) -> Iterable[Section]:
        bands, cells = document.get("landscape"), document.get("histograms", {})
        if self._redact:
            yield from self._hidden_scores(document, bands)
        elif bands is not None and len(bands.rows):
            notes = [
                f"Every row of the table, sorted by its row information gain (RIG) and gathered into {len(bands.rows)} "
                "bands of about equally many rows; rows with equal RIG share a band. Columns are sorted by FIG. The "
                "further a colour is from the background, the higher the median CIG of the band's cells.",
                f"Medians are exact to {bands.step:g} bits, of an even number of cells the lower one in the middle. "
                "Highest values are exact."
                + f" {bands.unknown_rows:,} rows with a cell without a score are in no band." * bool(bands.unknown_rows)
                + f" Shown are the {figures.MOST_COLUMNS} columns of the highest FIG."
                * (len(bands.columns) > figures.MOST_COLUMNS),
            ]
            yield Section("Risk landscape", notes, figures.landscape(bands))
            yield Section(
                "Risk of rows",
                [RIG_SAID],
                figures.gains(bands.gains, bands.gain_step, document["pif"]),
            )
        yield self._columns(document, bands, cells)
        yield from self._riskiest(document)

    def _hidden_scores(self, document: Document, bands: Any) -> Iterable[Section]:
        """Return the sections on the risk of rows in a redacted report."""
        if bands is not None and bands.rows.max(initial=0) >= figures.FEWEST_ROWS:
            note = (
                "Rows sorted by their row information gain (RIG), and gathered into bands, drawn equally high whatever "
                "their number of rows. Medians are rounded down to whole bits; those of fewer than "
                f"{figures.FEWEST_ROWS} rows are hidden."
            )
            order = [row["column"] for row in document["columns"]]
            yield Section("Risk landscape", [note], figures.landscape(bands, order))
        if document["pif"]:
            shares = {f"pif_{share}": bits for share, bits in document["pif"].items()}
            tables = self._facts("Percentiles of RIG", shares, " ".join(shares), hidden=OF_ONE)
            yield Section("Risk of rows", [RIG_SAID], [], tables)

    def _columns(self, document: Document, bands: Any, cells: Mapping[str, Any]) -> Section:
        """Return the section on the risk of each column."""
        records = document["columns"]
        drawn: list[Figure] = []
        notes = []
        if records and "fig" in records[0]:
            series = {
                "entropy H(X)": [row["prior_entropy"] for row in records],
                "FIG per row (mean CIG)": [row["cig_mean"] for row in records],
            }
            said = "Narrow bars: the FIG of each column, per row. Wide bars: the entropy of the column."
            drawn += self._bars(said, [row["column"] for row in records], series, "bits per row", "overlay")
            notes.append("FIG per row beside the entropy of the column, which is what there is to learn on average.")
        boxes = {} if self._redact else {**({} if bands is None else {"cig": bands.cells}), **cells}
        for measure, unit in (("cig", ", bits"), ("csf", "")):
            if measure in boxes:
                drawn += figures.boxes(boxes[measure], [row["column"] for row in records], unit, measure.upper())
        if boxes:
            notes.append("Boxes: the middle half of the cells, a line at the median, whiskers from 5 to 95 % of cells.")
        keys = "column distinct_values prior_entropy fig cig_mean cig_median cig_p95 cig_max csf_mean csf_max weight "
        keys += f"{OF_ROWS} individual_risk_mean individual_risk_max"
        tables = self._table("Columns", records, keys, tools=True, hidden=OF_ONE)
        return Section("Risk of columns", notes, drawn, tables)

    def _bars(self, said: str, names: Sequence[Any], series: Mapping[str, Any], unit: str, mode: str = "group") -> Any:
        """Return bars, see `figures.bars`; of a redacted report rounded down, and none of few rows."""
        if self._redact:
            if as_interval(0.0, self._rows) == HIDDEN:
                return []
            said = f"{said} All are rounded down."
            series = {name: [lower_end(value, self._rows) for value in own] for name, own in series.items()}
        return figures.bars(said, names, series, unit, mode)

    def _riskiest(self, document: Document) -> Iterable[Section]:
        """Return the section on the riskiest cells.

        In a redacted report there is none: the figures of a cell tell its value to who knows how frequent values are.
        """
        top = [] if self._redact else document.get("top") or []
        cells: dict[str, dict[str, tuple[Any, Any]]] = {}
        for cell in top:
            if cell.get("posterior") is not None and cell.get("prior") is not None:
                value = f" = {self._cell('value', cell['value']).text}" if "value" in cell else ""
                by = f", {as_cell(cell['cig'])} bits" if cell.get("cig") is not None else ""
                name = f"row {cell['row']}, {as_text(cell['column'])}{value}{by}"
                cells[name if name not in cells else f"{name} ({len(cells) + 1})"] = self._values(cell)
        said = "Bars: the probability of each value before (prior) and after (posterior) the attack on"
        drawn = figures.chosen(said, cells) if cells else []
        notes = [
            "Prior: how probable the cell's value is to somebody who knows the column's distribution alone. "
            "Posterior: to the attacker. Cohort: the rows that agree with the cell's row on what the attacker knows."
        ]
        if any((cell.get("posterior") or 0) < (cell.get("prior") or 0) for cell in top):
            notes.append(
                "CIG counts all that the attacker learns, also what is wrong: where the posterior is below the prior, "
                "the attacker is led away from the cell's value."
            )
        tables = self._table("Riskiest cells", top, CELLS, tools=True)
        if tables:
            notes = notes * bool(cells)
            if of := document.get("top_of"):
                listed = ", ".join(map(as_text, of))
                notes.insert(0, f"Only cells of columns that the attacker does not know are listed: {listed}.")
            yield Section("Riskiest cells and values", notes, drawn, tables)

    def _values(self, cell: Record) -> dict[str, tuple[Any, Any]]:
        """Return prior and posterior by value of a cell's column, the rest of the values as one."""
        spread = cell.get("spread")
        shown = spread if isinstance(spread, list) else [cell]
        values = {}
        for place, one in enumerate(shown):
            text = self._cell("value", one.get("value")).text
            if not place:
                text = f"{text} (this cell)" if "value" in one else "the cell's value"
            values[text if text not in values else f"{text} ({place + 1})"] = (one["prior"], one["posterior"])
        rest = tuple(max(0.0, 1 - sum(one[key] for one in shown)) for key in ("prior", "posterior"))
        return values | ({"all other values": rest} if max(rest) > ROUNDING else {})

    def _attackers(self, document: Document) -> Iterable[Section]:
        attackers = document["attackers"]
        records = [
            {**own, "attacker": name, "knows": ", ".join(map(as_text, own["known"]))} for name, own in attackers.items()
        ]
        keys = f"attacker knows fig pif_50 pif_95 pif_99 pif_100 csf_mean csf_max {OF_ROWS}"
        columns = next(iter(attackers.values()))["columns"]
        drawn: list[Figure] = []
        if columns and "cig_mean" in columns[0]:
            series = {name: [column["cig_mean"] for column in own["columns"]] for name, own in attackers.items()}
            drawn = self._bars(
                "Bars: the mean CIG of each column against each attacker.",
                [column["column"] for column in columns],
                series,
                "mean CIG, bits",
            )
        yield Section("Attackers side by side", [], drawn, self._table("Attackers", records, keys, hidden=OF_ONE))
        if "columns" in document:
            yield from self._scores(document)

    def _risk(self, document: Document) -> Iterable[Section]:
        classes = {**document["classes"], **document["classes"]["prosecutor"]}
        facts = "k classes uniques unique_share rows_below highest average marketer"
        sizes = document.get("class_sizes") or []
        names = [
            f"{band['least']}" if band["least"] == band["most"] else f"{band['least']}-{band['most']}" for band in sizes
        ]
        said = "Bars: the number of rows by the size of their equivalence class."
        drawn = (
            figures.columns(said, names, [band["rows"] for band in sizes], "rows of the class", "rows") if sizes else []
        )
        known = ", ".join(map(as_text, document["quasi_identifiers"]))
        tables = self._facts(
            "Classes", classes, facts, {"rows_below": f"rows in classes of fewer than {classes['wanted_k']}"}
        )
        if document.get("estimated") is not None:
            estimated = document["estimated"]
            people = {
                f"{name}_highest": estimated[name]["highest"] for name in ("journalist", "individual")
            } | estimated
            facts = "people k_map journalist_highest individual_highest reidentifications"
            hidden = "k_map journalist_highest individual_highest"
            tables += self._facts("In the population that the weights estimate", people, facts, hidden=hidden)
        yield Section("Class sizes", [f"Classes of rows that agree on {known}."], drawn, tables)
        models = "distinct_l entropy_l recursive_c t alpha basic_beta enhanced_beta delta homogeneous_classes"
        attributes = document["attributes"]
        if self._redact:
            attributes = [
                row | {"certain_rows": as_certain(row["certain_rows"], classes) if "certain_rows" in row else None}
                for row in attributes
            ]
        keys = f"attribute values {models} certain_rows"
        tables = self._table("Each figure is that of the worst class", attributes, keys, hidden=models)
        caption = "The worst class for k, distinct l and t; of equal ones the first"
        keys = "measure attribute worst quasi_identifiers rows equally_bad"
        worst = [
            {**own, "measure": own["measure"].replace("_", " "), "worst": own["value"], "equally_bad": own["classes"]}
            for own in (not self._redact and document.get("worst_classes")) or []
        ]
        tables += self._table(caption, worst, keys)
        caption = "The worst classes of several rows: their attribute is known without finding anybody"
        groups = [] if self._redact else document.get("groups") or []
        tables += self._table(caption, groups, "quasi_identifiers attribute value rows share entropy", True)
        if tables:
            yield Section(OF_ATTRIBUTES, [], [], tables)

    def _pairs(self, document: Document) -> Iterable[Section]:
        pairs = document["pairs"]
        keys = "column_1 value_1 column_2 value_2 count expected rarity"
        counted = "rows" if document.get("people") is None else "people"
        said = f"Matrix: the share of {counted} that are unique on two columns."
        headings = {"count": counted, "expected": f"{counted} if independent"}
        hidden = "count expected rarity"
        values = document["values"]
        if self._redact:
            # Each two columns once: how many of their values are rare together tells how many rows have these.
            values = list({(row["column_1"], row["column_2"]): row for row in values}.values())
        tables = self._table("Values that are rarest together", values, keys, True, headings, hidden)
        note = f"Colour: the share of {counted} that no other row agrees with on the two columns. " + (
            f"Shown are the first {len(pairs):,} of {document['pairs_in_all']:,} pairs."
            if len(pairs) < document["pairs_in_all"]
            else ""
        )
        # The counts of two columns together tell those of each.
        drawn = [] if self._redact else figures.matrix(said, pairs, "unique_share")
        note = "Which pairs tell how much is hidden." if self._redact else note
        yield Section("Toxic pairs", [note.strip()], drawn, tables)

    def _special_uniques(self, document: Document) -> Iterable[Section]:
        sizes, columns = [row for row in document["sizes"] if row["msus"]], document["columns"]
        if self._redact:
            # A size that has no MSUs tells nothing else than one that has few.
            sizes = [row | {"rows": as_count(row["rows"], document["rows"])} for row in document["sizes"]]
            columns = [row | {"contribution": HIDDEN} for row in columns]
        tables = self._table("By number of columns", sizes, "size msus rows smallest")
        tables += self._table("Columns", columns, "column msus contribution", tools=True)
        numbers = " ".join(f"msu_{row['size']}" for row in sizes)
        top = [] if self._redact else document["top"]
        tables += self._table("Rows at the highest risk", top, f"row index suda dis_suda {numbers}", True)
        note = (
            "A minimal sample unique (MSU) is a set of values that only one row has, and of which none can be spared. "
            "It counts for each of its columns, so that the shares of columns add up to more than 100 %."
        )
        yield Section("Special uniques", [note], [], tables)

    def _advice(self, document: Document) -> Iterable[Section]:
        before = document["before"]
        changes = [
            {"change": "drop" if row["do"] == "drop" else f"level {row['level']} of {row['height']}"} | row
            for row in document["changes"]
        ]
        # The bits of a change are those of its groups; so are all figures if no other column is known.
        hidden = "bits bought bought_per_bit"
        if len({row["column"] for row in changes}) == 1:
            hidden += f" {' '.join(before)}"
        if self._redact:
            few = {*hidden.split()}
            changes = [
                row | {name: named_figure(name, row[name], self._rows) for name in before if name not in few}
                for row in changes
            ]
            before = {name: named_figure(name, value, self._rows) for name, value in before.items()}
        # Figures that no change changes are said once.
        named = [name for name, value in before.items() if any(row[name] != value for row in changes)]
        now = "; ".join(
            f"{_heading(name)}: {self._cell('before', value).text}{' after each change too' * (name not in named)}"
            for name, value in before.items()
        )
        notes = [
            f"Now: {now}. Each line is one change of one column, measured anew. The change that buys most per bit "
            "comes first. Changes that buy less than 1 % come last.",
            *self._next_steps(document),
        ]
        keys = f"column change groups bits bought bought_per_bit {' '.join(named)}"
        tables = self._table("Changes of single columns", changes, keys, tools=True, hidden=hidden)
        yield Section("What to do next", notes, [], tables)

    def _protection(self, document: Document) -> Iterable[Section]:
        values = [{"criterion": one["criterion"], "before": one["value"]} for one in document["before"]]
        for row, after in zip(values, document["risk"], strict=False):
            row |= {"after": after["value"], "met": after["is_met"]}
        if self._redact:
            left = self._rows - document["suppressed_rows"] * (not document["suppressed_cells"])
            for row in values:
                both = ("before", "after")
                row |= {key: named_figure(row["criterion"], row[key], left) for key in both if key in row}
        for name, rows in {} if self._redact else document["certain_rows"].items():
            before = document["certain_rows_before"][name]
            values.append({"criterion": f"rows whose {name} is certain", "before": before, "after": rows})
        single = document["singled_out"].items()
        if self._redact:
            single = [(name, as_count(rows, self._rows)) for name, rows in single]
        values += [{"criterion": f"rows unique by {name} alone", "after": rows} for name, rows in single]
        tables = self._table("Criteria before and after", values, "criterion before after met")
        heights, named, losses = (document[key] for key in ("heights", "groups", "losses"))
        levels = [
            {"column": name, "level": f"{level} of {heights[name]}", "groups": named[name], "lost": losses[name]}
            for name, level in document["levels"].items()
        ]
        caption = "Level of each column in the plan"
        tables += self._table(caption, levels, "column level groups lost", hidden="lost")
        frontier, drawn = document["frontier"], []
        shown = [{**node["values"], "suppressed rows": node["suppressed_rows"]} for node in frontier]
        # A figure that is the same everywhere is no axis.
        axes = [name for name in (shown[0] if shown else ()) if len({own[name] for own in shown}) > 1]
        # The loss of a level tells its groups.
        for criterion in [] if self._redact else axes:
            groups: dict[str, list[tuple[Any, Any, str]]] = {"meets all criteria": [], "does not": [], "the plan": []}
            for node, own in zip(frontier, shown, strict=True):
                name = "meets all criteria" if node["is_met"] else "does not"
                name = "the plan" if node["levels"] == document["levels"] else name
                text = ", ".join(f"{as_text(column)} {level}" for column, level in node["levels"].items())
                groups[name].append((node["loss"], own[criterion], f"levels {text}"))
            said = f"Points: loss against {criterion}, of the best plans that were checked."
            drawn += figures.points(said, groups, f"loss, {document['unit']}", criterion)
        names = document["unmeasured"]
        notes = [f"Released as they are, and not measured: {listed(names, 20, as_text)}."] * bool(names)
        yield Section("What protection costs and buys", [*notes, *self._next_steps(document)], drawn, tables)

    def _comparison(self, document: Document) -> Iterable[Section]:
        records = [{"figure": row["name"], **row} for row in document["risk"].values()]
        pifs = [row for name, row in zip(document["risk"], records, strict=True) if name.startswith("pif")]
        series = {when: [row[when] for row in pifs] for when in ("before", "after")}
        said = "Bars: PIF_n before and after the treatment."
        if self._redact:
            for name, row in zip(document["risk"], records, strict=True):
                row |= {when: named_figure(name, row[when], self._rows) for when in series}
            pifs = []
        drawn = figures.bars(said, [row["figure"] for row in pifs], series, "bits") if pifs else []
        tables = self._table("Risk", records, "figure before after")
        numbers = document["continuous"] or {}
        linked = [("all values", document["linkage"])]
        linked += [(f"numbers, by {by}", numbers.get(f"by_{by}")) for by in ("distance", "rank")]
        found = [{"attacker_has": what, "rows": own["rows"], "share": own["share"]} for what, own in linked if own]
        if self._redact:
            found = [{**own, "rows": as_count(own["rows"], self._rows), "share": HIDDEN} for own in found]
        caption = "Rows that an attacker who has their values before finds again, as the nearest"
        tables += self._table(caption, found, "attacker_has rows share")
        yield Section("Before and after", [], drawn, tables)
        changed = "cells_changed cells_suppressed"
        kept = " ".join(["information_kept", *LOST])
        keys = f"{kept} entropy_lost mutual_information_kept total_variation {changed} rows_suppressed"
        # A sum over columns tells more than its parts, since a reader knows the entropies of some.
        tables = self._facts(
            "Utility", document["utility"], keys, hidden=f"{kept} entropy_lost mutual_information_kept"
        )
        keys = f"column detail entropy_before entropy_after information_kept total_variation {changed}"
        tables += self._table("Columns", document["columns"], keys, tools=True)
        yield Section("What is left to analyse", document.get("notes", []), [], tables)

    def _treatment(self, document: Document) -> Iterable[Section]:
        records = [
            {
                "treatment": own["do"].replace("_", " "),
                "columns": ", ".join(map(as_text, own.get("columns_dropped") or (own.get("cells_changed") or {}))),
                "cells_changed": sum((own.get("cells_changed") or {}).values()),
                "cells_suppressed": sum((own.get("cells_suppressed") or {}).values()),
                "rows_removed": own.get("rows_removed") or 0,
            }
            for own in document["treatments"]
        ]
        keys = "treatment columns cells_changed cells_suppressed rows_removed"
        yield Section("Treatments", [], [], self._table("In order", records, keys))

    def _release(self, document: Document) -> Iterable[Section]:
        tables = self._facts("Budget", document["budget"], BUDGET)
        answers = [
            {
                **own,
                "answer": own["name"],
                "result": own.get("value"),
                "cells": len(own["table"]) if "table" in own else None,
            }
            for own in document["answers"]
        ]
        answers = [own | {"result": HIDDEN} if self._redact and "value" in own else own for own in answers]
        keys = "answer ask epsilon delta mechanism result cells standard_error threshold"
        tables += self._table("Answers", answers, keys, headings={"result": "value"})
        yield Section("Answers with noise", [], [], tables)
        for own in document["answers"]:
            # A count tells its value: a redacted report has neither.
            cells = [] if self._redact else own.get("table")
            if cells:
                lines = [[self._cell(key if key == "count" else "value", row[key]) for key in row] for row in cells]
                yield Section(as_text(own["name"]), [], [], [Table("Counts", [*map(as_text, cells[0])], lines, True)])

    def _budget(self, document: Document) -> Iterable[Section]:
        tables = self._facts("Budget", {**document, "spent": document["spent"]["least"]}, BUDGET)
        caption = "Epsilon spent, by each theorem; the smallest holds"
        names = {"sum": "sum of all", "zcdp": "zero-concentrated DP", "rdp": "Renyi DP", "pld": "loss distributions"}
        tables += self._facts(caption, document["spent"], " ".join(names), names)
        charges = [{**own, "what": "; ".join(map(as_text, own["what"]))} for own in document["charges"]]
        tables += self._table("Charges", charges, "number what epsilon delta time", tools=True)
        yield Section("Privacy budget", [], [], tables)

    def _audit(self, document: Document) -> Iterable[Section]:
        findings = [{**own, "rows_told_apart": own.get("group")} for own in document["findings"]]
        if self._redact:
            # Differences of means name how many rows a group has.
            findings = [own | {"by": without_sizes(own["by"])} for own in findings]
        keys = "finding column rows rows_told_apart by low high"
        tables = self._table("Findings, the worst first", findings, keys, hidden="rows")
        yield Section("What the queries give away", [], [], tables)

    def _count_table(self, document: Document) -> Iterable[Section]:
        by, figure = document["by"], document["figure"]
        cells = [
            {"quasi_identifiers": {name: row[name] for name in by}, figure: row[figure]}
            | {"suppressed": "suppressed" if row[figure] is None else None}
            for row in document["counts"][:MOST_CELLS]
        ]
        # How many cells the rules suppressed, and how much rounding changed, narrow down the true figures.
        keys = "method base" + " primary secondary totals_suppressed mean_change" * (not self._redact)
        tables = self._facts("Protection", document, keys, COUNT_TABLE)
        caption = "Cells" if len(cells) == len(document["counts"]) else f"The first {MOST_CELLS} cells"
        if not self._redact:
            # Figures tell the values that they are of, and so does the order of cells.
            tables += self._table(caption, cells, f"quasi_identifiers {figure} suppressed", tools=True)
        yield Section("Published table", [], [], tables)
        if document["audit"] is not None:
            yield from self._table_audit(document["audit"])

    def _table_audit(self, document: Document) -> Iterable[Section]:
        note = "Bounds of each suppressed cell, by two linear programs, for a reader who knows all published cells."
        bounds = [
            {"quasi_identifiers": {name: own for name, own in row.items() if name not in BOUNDS}}
            | {name: row[name] for name in BOUNDS}
            for row in document["bounds"][:MOST_CELLS]
        ]
        tables = self._facts("Audit", document, "cells suppressed computed disclosed width", COUNT_TABLE)
        if not self._redact:
            # Bounds are for a reader of the exact figures.
            tables += self._table("Suppressed cells", bounds, "quasi_identifiers lower upper disclosed", tools=True)
        yield Section("Audit of suppressed cells", [note] * (not self._redact), [], tables)

    def _night(self, document: Document) -> Iterable[Section]:
        gates = [
            {
                **gate,
                "gate_value": gate["value"],
                "last_good_run": gate["before"],
                "limits": ", ".join(f"{name.replace('_', ' ')} {as_cell(own)}" for name, own in gate["limits"].items()),
            }
            for gate in document["gates"]
        ]
        keys = "name verdict why gate_value unit limits last_good_run column attacker"
        if self._redact:
            # A gate tells no more than the figure that it is of.
            for gate in gates:
                figures_of = [key for key in ("gate_value", "last_good_run") if gate[key] is not None]
                gate |= {key: named_figure(gate["kind"], gate[key], self._rows) for key in figures_of}
        yield Section(f"Gates of run {document['number']}", [], [], self._table("Gates", gates, keys))
        for part in (document["summary"], document["risk"]):
            if part is not None and kind_of(part) is not None:
                yield from self.of(part)

    def _history(self, document: Document) -> Iterable[Section]:
        runs = document["runs"]
        if self._redact:
            runs = [run | {"pif_95": named_figure("pif95", run["pif_95"], run["rows"] or 0)} for run in runs]
        keys = "number started status rows pif_95 gates_passed gates_failed seconds"
        seen = [
            (run["number"], float(run["pif_95"]), f"run {run['number']}, {run['status']}")
            for run in ([] if self._redact else runs)
            if run["pif_95"]
        ]
        said = "Line: PIF 95 of each run."
        drawn = figures.points(said, {"PIF 95": seen}, "run", "PIF 95, bits", lines=True) if seen else []
        yield Section("History", [], drawn, self._table("Runs", runs, keys, tools=True))

    def _next_steps(self, document: Document) -> list[str]:
        """Return a paragraph with the commands to go on with; none if the document has none."""
        commands = [*map(without_folders, document.get("commands") or ())] if self._redact else document.get("commands")
        return [f"To go on: {'; then '.join(commands)}"] if commands else []


def file_name(path: object) -> str:
    """Return the name of a file without its folder."""
    return PurePath(str(path)).name or "a table"


def without_folders(command: str) -> str:
    """Return a command with the names of files in place of their paths."""
    words = shlex.split(command)
    kept = (word if option in NO_PATHS else file_name(word) for option, word in pairwise(["", *words]))
    return shlex.join(kept)


def _heading(key: str) -> str:
    return HEADINGS.get(key, key.replace("msu_", "MSUs of ").replace("_", " "))
