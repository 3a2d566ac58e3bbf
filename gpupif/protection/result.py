"""The result of `protect`: a plan, its loss, and the risk before and after; printed as tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..criteria.criterion_set import CriterionValue
from ..criteria.quantities import RiskQuantity
from ..errors import listed, printable
from ..treatment.plan import Plan
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
    json_value,
    plural,
    quoted,
)
from ..utils.redaction import HIDDEN, as_count, as_interval
from .frontier_plot import ProtectionPlots

if TYPE_CHECKING:
    from rich.console import Console

    from ..utils.printed_table import PrintedTable

# The words for what the plan does with identifiers.
IDENTIFIERS = {
    "drop": "drops {}",
    "pseudonymise": "puts pseudonyms in {}, by a secret key",
    "keep": "leaves {} unchanged",
}
# The most criteria that a verdict names.
SHOWN_CRITERIA = 4
# The largest number of nodes of the frontier that are printed.
SHOWN_NODES = 12
# The length of a bar that is as long as the highest loss.
BAR_LENGTH = 20


@dataclass(frozen=True)
class FrontierNode:
    """A node that was checked, and that no other equals or beats in loss, suppressed rows and all criteria.

    levels: by column. loss: in the unit of the objective. values: by criterion its value in the rows that are left.
    suppressed_rows: the rows of classes that break a criterion on classes, if rows may be suppressed; else 0.
    is_met: whether all criteria are met there, with no more suppressed rows than are allowed.
    """

    levels: Mapping[Hashable, int]
    loss: float
    values: Mapping[str, float]
    suppressed_rows: int
    is_met: bool


@dataclass(frozen=True)
class RecodedRows:
    """Rows that local recoding takes to other levels, in one round.

    levels: by column. rows: how many rows they are. loss: the information that they lose, in bits, without importance.
    searched: the values of the criteria on classes, over the classes of these rows, as in `Protection`.
    """

    levels: Mapping[Hashable, int]
    rows: int
    loss: float
    searched: Sequence[CriterionValue]


@dataclass(frozen=True)
class Protection(Displayable):
    """The treatment with the least loss with which a table meets criteria; made by `gpupif.protect`. Prints as tables.

    plan: the treatment, for `gpupif.treat`.
    rows: the rows of the table.
    suppressed_rows: the rows that the plan takes away or, if it suppresses single cells, the rows with such cells.
    suppressed_cells: how many single cells the plan suppresses.
    rows_with_cells: in how many rows single cells would have been suppressed, if these are more than allowed, so that
        whole rows are taken away; else None.
    cells_unreached: whether single cells were asked for, but whole rows are taken away because no suppressed cells meet
        all criteria.
    levels: by column its level in the treated table. heights: by column the highest level. groups: by column its
        groups at that level, in words.
    losses: by column the loss, in bits over all rows, for any objective.
    objective: what was minimised, such as "entropy" or "utility(income, information)". unit: the unit of its loss.
    loss: the loss. For "entropy" it is the sum of `losses`, each times the importance of the column.
    loss_share: the loss as a share of the loss with every column at its top.
    highest_loss: the loss with every column at its top. weighed: whether losses are weighed by importance.
    risk: the value of each criterion in the treated table, which was treated by the plan and measured like any table.
        Empty if Ctrl-C ended the measuring: the plan is then kept without it.
    before: the value of each criterion in the table before.
    smallest_class: the rows of the smallest equivalence class in the treated table, over the quasi-identifiers. None if
        it was not measured.
    unique_rows: how many rows of the treated table are alone in their class, None too. unique_rows_before: in the table
        before.
    certain_rows: by sensitive column the rows of the treated table that are in classes with a single value of it,
        classes of one row too: their value is certain to who knows the quasi-identifiers. Empty if it was not measured.
        certain_rows_before: in the table before.
    singled_out: by column that is no part of the criteria and stays as it is, how many rows are unique by its value
        alone; only columns where at least a tenth of the rows are.
    unmeasured: the columns that are no part of the criteria and are released as they are. Empty if it was not measured.
    unused_weights: the column of sampling weights if no criterion uses weights, as `k`, which counts rows; else None.
    searched: the values of the criteria by whose classes rows are suppressed, as the search compares these classes:
        with the whole table, suppressed rows among them, as ARX does. Empty unless the plan suppresses whole rows.
    local: the rounds of local recoding. `levels`, `losses` and `loss` are of the node at which all other rows are, as
        if all rows were there. The rows of the rounds and `suppressed_rows` together would be suppressed without it.
    local_unreached: whether local recoding was asked for, but whole rows are taken away because the recoded rows break
        a criterion.
    unmet: why the plan does not do what was asked, in sentences; None if it does. `gpupif.errors.UnmetError` carries
        such a result, the plan that came nearest.
    checks: how many nodes were checked. nodes: how many there are.
    optimal: whether no node that meets the criteria costs less.
    gap: how much cheaper another plan could be at most, as a share of the loss; 0 if this plan is optimal.
    stopped_by: what ended the search before it was complete: "time limit", "Ctrl-C", or None.
    frontier: the best nodes that were checked, the cheapest first.
    proposed: the columns whose hierarchies were proposed.
    identifiers: by column what the plan does with it: "drop", "pseudonymise" (by the key that the table is treated
        with) or "keep".
    device: where the search ran. seconds: wall time by stage.
    attacker: a sentence on what the attackers of the criteria know.
    """

    plan: Plan
    rows: int
    suppressed_rows: int
    suppressed_cells: int
    rows_with_cells: int | None
    cells_unreached: bool
    levels: Mapping[Hashable, int]
    heights: Mapping[Hashable, int]
    groups: Mapping[Hashable, str]
    losses: Mapping[Hashable, float]
    objective: str
    unit: str
    loss: float
    loss_share: float
    highest_loss: float
    risk: Sequence[CriterionValue]
    before: Sequence[CriterionValue]
    smallest_class: int | None
    unique_rows: int | None
    unique_rows_before: int
    certain_rows: Mapping[Hashable, int]
    certain_rows_before: Mapping[Hashable, int]
    singled_out: Mapping[Hashable, int]
    unmeasured: Sequence[Hashable]
    unused_weights: Hashable
    searched: Sequence[CriterionValue]
    local: Sequence[RecodedRows]
    checks: int
    nodes: int
    optimal: bool
    gap: float
    stopped_by: str | None
    frontier: Sequence[FrontierNode]
    proposed: Sequence[Hashable]
    identifiers: Mapping[Hashable, str]
    device: str
    seconds: Mapping[str, float]
    attacker: str
    weighed: bool = False
    local_unreached: bool = False
    unmet: str | None = None

    @property
    def is_met(self) -> bool:
        """Return whether the plan does what was asked, by the treated table as it was measured.

        False if the table was not measured.
        """
        return bool(self.risk) and all(value.is_met for value in self.risk) and self.unmet is None

    @property
    def differing(self) -> list[tuple[CriterionValue, CriterionValue]]:
        """Return the values of criteria as the search read them, and in the treated table, where the two differ."""
        after = {value.criterion: value for value in self.risk}
        pairs = [(own, after[own.criterion]) for own in self.searched if own.criterion in after]
        return [(own, other) for own, other in pairs if _shown(own, 6) != _shown(other, 6)]

    @property
    def plot(self) -> ProtectionPlots:
        """The plots of the search, such as ``protection.plot.frontier()``; see `ProtectionPlots`."""
        return ProtectionPlots(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        document = {**super().to_dict(), "plan": self.plan.to_dict(), "is_met": self.is_met}
        for name, values in (("risk", self.risk), ("before", self.before), ("searched", self.searched)):
            document[name] = [{key: json_value(own) for key, own in value._asdict().items()} for value in values]
        return document

    def __repr__(self) -> str:
        bound = "optimal" if self.optimal else f"at most {as_percent(self.gap)} from the optimum"
        return f"<Protection of {self.rows:,} {plural(self.rows, 'row')}: {as_percent(self.loss_share)} lost, {bound}>"

    def verdict(self, redact: bool = False) -> list[str]:
        """Return what was asked, what the plan does and costs, and what risk is left; see `Displayable.verdict`."""
        asked = f"Asked: {listed([own.criterion for own in self.before], SHOWN_CRITERIA, str)}. {self.attacker}"
        if self.unmet is not None:
            broken = [own.criterion for own in self.risk if not own.is_met]
            named = listed(broken, SHOWN_CRITERIA, str) if broken else "what was asked"
            asked = f"NOT MET: {f'{named}.' if redact else self.unmet.partition(': ')[2]}"
        done = f"Plan: {self._done(redact)}; cost: {self._cost(redact)}."
        return [*map(printable, (asked, done, f"Risk left: {self._risk_left(redact)}."))]

    def draw(self, console: Console) -> None:
        draw_verdict(self, console)
        if self.rows_with_cells is not None:
            draw_line(
                console,
                f"Single cells would have been suppressed in {self.rows_with_cells:,} rows, more than may be: whole "
                "rows are instead.",
            )
        if self.cells_unreached:
            draw_line(console, "No single cells meet all criteria when suppressed: whole rows are instead.")
        if self.local_unreached:
            draw_line(console, "Rows that are recoded further break a criterion: whole rows are suppressed instead.")
        if self.unmeasured:
            draw_line(
                console, f"Released as they are, and not measured: {listed(self.unmeasured, 10, quoted)}.", "yellow"
            )
        if self.unused_weights is not None:
            draw_line(console, f"No criterion uses the weights {quoted(self.unused_weights)}: all count rows.")
        if self.risk:
            console.print()
            console.print(self._risk_table())
            for own, _ in self.differing:
                with_all = "if classes are compared with all rows, suppressed rows among them, as in the search"
                draw_line(console, f"{own.criterion}: {_shown(own, 6)} {with_all}.", "dim")
        console.print()
        console.print(self._levels_table())
        if self.proposed:
            proposed = ", ".join(map(as_text, self.proposed))
            draw_line(console, f"Hierarchies proposed by gpupif: {proposed}. Rare values are pooled as other.", "dim")
        if len(self.frontier) > 1:
            self._draw_frontier(console)
        spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in self.seconds.items())
        nodes = f"{self.checks:,} of {self.nodes:,} {plural(self.nodes, 'node')} checked"
        draw_line(console, f"{nodes}, device {self.device}, {spent}")

    def _done(self, redact: bool) -> str:
        """Return what the plan does, in words."""
        tops = [name for name, level in self.levels.items() if level == self.heights[name] > 0]
        recoded = [
            f"{name} to level {level} of {self.heights[name]}"
            for name, level in self.levels.items()
            if 0 < level < self.heights[name]
        ]
        done = [f"recodes {_listed(recoded)}"] if recoded else []
        if tops:
            done.append(f"makes {'each of ' * (len(tops) > 1)}{_listed(tops)} one group")
        for what, said in IDENTIFIERS.items():
            named = [name for name, own in self.identifiers.items() if own == what]
            if named:
                done.append(said.format(_listed(named)))
        if self.local:
            further = sum(own.rows for own in self.local)
            done.append(
                f"recodes {further:,} of the {further + self.suppressed_rows:,} rows further that it would suppress, "
                f"in {len(self.local):,} {plural(len(self.local), 'round')}"
            )
        if self.suppressed_rows:
            rows = f"{self.suppressed_rows:,} of {self.rows:,} rows ({as_percent(self.suppressed_rows / self.rows)})"
            number = as_count(self.suppressed_cells) if redact else f"{self.suppressed_cells:,}"
            cells = f"{number} {plural(self.suppressed_cells, 'cell')} in " * (self.suppressed_cells > 0)
            done.append(f"suppresses {cells}{rows}")
        return "; ".join(done) or f"nothing{', for the table meets the criteria as it is' * (self.unmet is None)}"

    def _cost(self, redact: bool) -> str:
        """Return what the plan loses, and whether another plan may lose less, in words."""
        weighed = ", weighed by importance" * self.weighed
        # What a level loses tells its groups to who knows how frequent values are.
        part = as_part(self.loss_share)
        if redact and 0 < self.loss_share < 1:
            part = as_interval(self.loss_share, self.rows, percent=True).replace(HIDDEN, "a share")
        # In the words of `compare`, whose share of coarser values this is; it adds that of suppressed cells.
        how = "coarser values lose " * bool(self.suppressed_rows)
        lost = f"{how}{part} of the information in the quasi-identifiers{weighed}"
        if self.objective != "entropy":
            loss = "" if redact else f"{as_cell(self.loss)} ({self.unit}), "
            lost = f"objective {self.objective}: {loss}{part} of the highest"
        ended = f"{self.stopped_by} ended the search, and " if self.stopped_by else ""
        less = f"up to {as_percent(self.gap)} less" if self.gap < 1 else "less"
        if self.unmet is None:
            lost += ", the least possible" if self.optimal else f"; {ended}another plan may lose {less}"
        further = math.fsum(own.loss for own in self.local)
        return lost + f"; the rows that are recoded further lose {further:,.0f} bits" * (
            bool(self.local) and not redact
        )

    def _risk_left(self, redact: bool) -> str:
        """Return the value of each criterion, how many rows are unique, and the chance of an attacker, in words."""
        if self.smallest_class is None or self.unique_rows is None:
            return "not measured, because Ctrl-C ended the measuring"
        pairs = list(zip(self.before, self.risk, strict=True))
        said = [
            f"{after.criterion} is {'met' if after.is_met else 'NOT MET'}"
            + f": {_shown(after)} (before: {_shown(before)})" * (not redact)
            for before, after in pairs
            if len(pairs) == 1 or not after.is_met
        ]
        # Another attacker may have been asked for than the one whose chance is said.
        who = [] if any(own.criterion.of_default_attacker for own in self.risk) else ["all quasi-identifiers"]
        who += ["who is in the table"] * any(isinstance(own.criterion.quantity, RiskQuantity) for own in self.risk)
        by = f" by an attacker who knows {' and '.join(who)}" * bool(who)
        number, left = self.unique_rows, self.rows - self.suppressed_rows * (not self.suppressed_cells)
        unique = f"{number:,} {plural(number, 'row')} {'is' if number == 1 else 'are'} unique, and found for sure{by}"
        chance = f"no row is found with a chance above {as_percent(1 / self.smallest_class)}{by}"
        said = [
            *(said or [f"{'both' if len(pairs) == 2 else f'all {len(pairs)}'} criteria are met"]),
            unique if number else chance,
        ]
        name, rows = _highest(self.certain_rows)
        # Who knows the sizes of classes may count back from the number of certain rows.
        said += [f"{quoted(name)} is certain in {rows:,} rows ({as_percent(rows / left)})"] * (
            bool(rows) and not redact
        )
        name, rows = _highest(self.singled_out)
        number_of = as_count(rows, self.rows) if redact else f"{rows:,}"
        said += [f"{quoted(name)} stays as it is, and {number_of} rows are unique by it alone"] * bool(rows)
        return "; ".join(said)

    def _risk_table(self) -> PrintedTable:
        """Return the table of the criteria, and of the rows that are unique or whose sensitive value is certain."""
        lines: list[list[Any]] = [
            [str(after.criterion), before.value, after.value, "yes" if after.is_met else "NO"]
            for before, after in zip(self.before, self.risk, strict=True)
        ]
        lines.append(["unique rows", self.unique_rows_before, self.unique_rows, ""])
        for name, rows in self.certain_rows.items():
            lines.append([f"rows whose {as_text(name)} is certain", self.certain_rows_before[name], rows, ""])
        lines += [[f"rows unique by {as_text(name)} alone", "", rows, ""] for name, rows in self.singled_out.items()]
        return draw_table("Risk", [Heading("", text=True), *map(Heading, ("before", "after", "met"))], lines)

    def _levels_table(self) -> PrintedTable:
        """Return the table of the level of each column, its groups there, and the information that it loses."""
        lines = [
            [name, f"{level} of {self.heights[name]}", self.groups[name], as_cell(lost), lost / self.rows]
            for (name, level), lost in zip(self.levels.items(), self.losses.values(), strict=True)
        ]
        headings = [Heading("column", text=True), Heading("level"), Heading("groups at that level", text=True)]
        return draw_table("Levels", [*headings, *map(Heading, ("bits lost", "bits per row"))], lines)

    def _draw_frontier(self, console: Console) -> None:
        """Draw nodes that are evenly spread over the frontier, and the node of the plan."""
        step = max(1, -(-len(self.frontier) // SHOWN_NODES))
        suppressed = ["suppressed rows"] * any(node.suppressed_rows for node in self.frontier)
        figures = [*self.frontier[0].values, *suppressed]
        rows: list[list[Any]] = []
        for place, node in enumerate(self.frontier):
            if place % step == 0 or node.levels == self.levels:
                share = node.loss / self.highest_loss if self.highest_loss else 0.0
                values = [int(value) if value.is_integer() else value for value in node.values.values()]
                own = [*values, node.suppressed_rows][: len(figures)]
                name = "plan" if node.levels == self.levels else ""
                levels = ", ".join(f"{as_text(column)} {level}" for column, level in node.levels.items() if level)
                rows.append([name, as_part(share), "█" * round(share * BAR_LENGTH), *own, levels or "all 0"])
        of_all = "of all bits" if self.unit == "bits" else "of the highest loss"
        # The values of the search may differ from those of the treated table.
        compared = ", classes compared with all rows" * bool(self.differing)
        headings = [Heading("node", text=True), Heading("lost"), Heading(of_all, text=True, optional=True)]
        headings += [*map(Heading, figures), Heading("levels above 0", text=True)]
        console.print()
        console.print(
            draw_table(f"Loss against risk, of the best nodes that were checked{compared}", headings, rows, keys=2)
        )


def _highest(rows: Mapping[Hashable, int]) -> tuple[Hashable, int]:
    """Return the column of the most rows, and how many rows these are; no column and 0 for no columns."""
    return max(rows.items(), key=lambda own: own[1], default=(None, 0))


def _listed(names: Sequence[Hashable]) -> str:
    """Return names in words: "a, b and c"."""
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last


def _shown(value: CriterionValue, digits: int = 4) -> str:
    """Return the value of a criterion as text."""
    number = math.nan if value.value is None else float(value.value)
    return "not defined" if number != number else f"{number:,.0f}" if number.is_integer() else f"{number:.{digits}g}"
