"""The result of `protect`: a plan, its loss, and the risk before and after; printed as tables."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..treatment.plan import Plan
from ..utils.display import Displayable, Heading, as_part, as_percent, draw_line, draw_table, json_value, plural
from .column_levels import ColumnLevels
from .lattice import with_ties

if TYPE_CHECKING:
    from rich.console import Console

# What the printed result says of identifiers, by what the plan does with them.
IDENTIFIERS = {
    "drop": "Identifiers dropped",
    "pseudonymise": "Identifiers that get pseudonyms, by the secret key that the table is treated with",
    "keep": "Identifiers kept as they are",
}
# How many nodes of the frontier are printed.
SHOWN_NODES = 12


@dataclass(frozen=True)
class FrontierNode:
    """A node that was checked, and that no other checked node equals or beats in loss and in all criteria.

    levels: by column. loss: bits, each times the importance of its column. values: by criterion its value at the node.
    is_met: whether all criteria are met there.
    """

    levels: Mapping[Hashable, int]
    loss: float
    values: Mapping[str, float]
    is_met: bool


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
    levels: by column its level in the treated table. heights: by column the highest level.
    losses: by column the loss, in bits over all rows. loss: their sum, each times the importance of the column.
    loss_share: the loss as a share of the loss with every column at its top.
    risk: the value of each criterion in the treated table, which was treated by the plan and measured like any table.
    before: the value of each criterion in the table before.
    searched: the values of the criteria by whose classes rows are suppressed, as the search compares these classes:
        with the whole table, suppressed rows among them, as ARX does. Empty unless the plan suppresses whole rows.
    checks: how many nodes were checked. nodes: how many there are.
    optimal: whether no node that meets the criteria costs less.
    gap: how much cheaper another plan could be at most, as a share of the loss; 0 if this plan is optimal.
    frontier: the best nodes that were checked, the cheapest first.
    proposed: the columns whose hierarchies were proposed.
    identifiers: by column what the plan does with it: "drop", "pseudonymise" (by the key that the table is treated
        with) or "keep".
    device: where the search ran. seconds: wall time by stage.
    attacker: what the attacker knows, in words, unless a criterion says otherwise.
    """

    plan: Plan
    rows: int
    suppressed_rows: int
    suppressed_cells: int
    rows_with_cells: int | None
    cells_unreached: bool
    levels: Mapping[Hashable, int]
    heights: Mapping[Hashable, int]
    losses: Mapping[Hashable, float]
    loss: float
    loss_share: float
    risk: Sequence[CriterionValue]
    before: Sequence[CriterionValue]
    searched: Sequence[CriterionValue]
    checks: int
    nodes: int
    optimal: bool
    gap: float
    frontier: Sequence[FrontierNode]
    proposed: Sequence[Hashable]
    identifiers: Mapping[Hashable, str]
    device: str
    seconds: Mapping[str, float]
    attacker: str

    @property
    def is_met(self) -> bool:
        """Return whether the treated table, measured as it is, meets all criteria.

        It should, unless rows are suppressed by a criterion that compares classes with the table: see `differing`.
        """
        return all(value.is_met for value in self.risk)

    @property
    def differing(self) -> list[tuple[CriterionValue, CriterionValue]]:
        """Return the values of criteria as the search read them, and in the treated table, where the two differ."""
        after = {value.criterion: value for value in self.risk}
        return [
            (own, after[own.criterion])
            for own in self.searched
            if own.value is None
            or after[own.criterion].value is None
            or not math.isclose(own.value, after[own.criterion].value or 0.0, rel_tol=1e-9)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        document = {**super().to_dict(), "plan": self.plan.to_dict(), "is_met": self.is_met}
        document["frontier"] = [
            {**vars(node), "levels": _with_text_keys(node.levels), "values": _with_text_keys(node.values)}
            for node in self.frontier
        ]
        for name, values in (("risk", self.risk), ("before", self.before), ("searched", self.searched)):
            document[name] = [
                {
                    "criterion": str(value.criterion),
                    "value": json_value(value.value),
                    "is_met": value.is_met,
                    "column": None if value.column is None else str(value.column),
                }
                for value in values
            ]
        return document

    def __repr__(self) -> str:
        bound = "optimal" if self.optimal else f"at most {as_percent(self.gap)} from the optimum"
        return f"<Protection of {self.rows:,} {plural(self.rows, 'row')}: {as_percent(self.loss_share)} lost, {bound}>"

    def draw(self, console: Console) -> None:
        bound = "the least there is" if self.optimal else f"at most {as_percent(self.gap)} above the least there is"
        draw_line(console, self.attacker)
        spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in self.seconds.items())
        console.print(
            f"[bold]{as_part(self.loss_share)}[/] of what may be lost is lost, {bound}: [bold]{self.checks:,}[/] of "
            f"{self.nodes:,} {plural(self.nodes, 'node')} checked, device [bold]{self.device}[/], {spent}",
            highlight=False,
        )
        if self.suppressed_rows:
            share = as_percent(self.suppressed_rows / self.rows)
            rows = f"{self.suppressed_rows:,} {plural(self.suppressed_rows, 'row')}"
            cells = f"{self.suppressed_cells:,} {plural(self.suppressed_cells, 'cell')}"
            done = f"{cells} suppressed, in {rows}" if self.suppressed_cells else f"{rows} suppressed"
            console.print(f"{done} ({share})", highlight=False)
        for searched, after in self.differing:
            met = "which meets it too" if after.is_met else "which does NOT meet it"
            draw_line(
                console,
                f"{searched.criterion}: {_said(searched.value)} if classes are compared with all rows, suppressed rows "
                f"among them, as the search does; {_said(after.value)} in the treated table alone, {met}",
            )
        if self.rows_with_cells is not None:
            console.print(
                f"Single cells would have been suppressed in {self.rows_with_cells:,} rows, more than may be: whole "
                "rows are instead",
                highlight=False,
            )
        if self.cells_unreached:
            console.print("No single cells meet all criteria when suppressed: whole rows are instead", highlight=False)
        if self.proposed:
            draw_line(console, f"Hierarchies proposed for: {', '.join(map(str, self.proposed))}")
        for done, said in IDENTIFIERS.items():
            named = ", ".join(str(name) for name, own in self.identifiers.items() if own == done)
            if named:
                draw_line(console, f"{said}: {named}")
        for table in self._tables():
            console.print()
            console.print(table)

    def _tables(self) -> Sequence[Any]:
        headings = [Heading("criterion", text=True), Heading("before"), Heading("after"), Heading("met", text=True)]
        before = {value.criterion: value.value for value in self.before}
        risk = [
            [str(value.criterion), before.get(value.criterion), value.value, "yes" if value.is_met else "NO"]
            for value in self.risk
        ]
        columns = [
            [name, f"{level} of {self.heights[name]}", self.losses[name], self.losses[name] / self.rows]
            for name, level in self.levels.items()
        ]
        of_columns = [Heading("column", text=True), Heading("level"), Heading("bits lost"), Heading("bits per row")]
        tables = [draw_table("Risk", headings, risk), draw_table("Levels", of_columns, columns)]
        if len(self.frontier) > 1:
            criteria = list(self.frontier[0].values)
            of_nodes = [Heading("bits lost"), *map(Heading, criteria), Heading("levels", text=True)]
            # Nodes that are evenly spread over the frontier.
            step = max(1, -(-len(self.frontier) // SHOWN_NODES))
            nodes = [
                [node.loss, *(node.values[name] for name in criteria), ",".join(map(str, node.levels.values()))]
                for node in self.frontier[::step]
            ]
            tables.append(draw_table("Loss against risk", of_nodes, nodes))
        return tables


def find_frontier(
    values: Mapping[tuple[int, ...], Mapping[Criterion, CriterionValue]],
    costs: Sequence[Sequence[float]],
    levels: Sequence[ColumnLevels],
    criteria: CriterionSet,
) -> list[FrontierNode]:
    """Return the frontier of the nodes at which every criterion has a value.

    values: by node the values of the criteria that were measured there. costs: by axis and level.
    """
    nodes = []
    for node, measured in values.items():
        known = {
            criterion: value
            for criterion in criteria.criteria
            if criterion in measured and (value := measured[criterion].value) is not None
        }
        if len(known) < len(criteria.criteria):
            continue
        loss = 0.0
        for axis, level in enumerate(node):
            loss += costs[axis][level]
        frontier_node = FrontierNode(
            {column.name: level for column, level in zip(levels, node, strict=True)},
            loss,
            {str(criterion): float(value) for criterion, value in known.items()},
            all(measured[criterion].is_met for criterion in known),
        )
        nodes.append((frontier_node, [value if criterion.at_most else -value for criterion, value in known.items()]))
    return _non_dominated(nodes)


def _non_dominated(nodes: Sequence[tuple[FrontierNode, Sequence[float]]]) -> list[FrontierNode]:
    """Return the nodes that no other node equals or beats in everything, the cheapest first.

    nodes: each with its values as risks: lower values are safer. Of nodes that are equal in everything, the node with
    the lowest levels is returned.
    """
    costs = with_ties(np.array([node.loss for node, _ in nodes]))
    best: list[tuple[FrontierNode, Sequence[float]]] = []
    for _, risks, _, node in sorted(
        ((cost, risks, tuple(node.levels.values()), node) for cost, (node, risks) in zip(costs, nodes, strict=True)),
        key=lambda ranked: ranked[:3],
    ):
        if not any(all(x <= y for x, y in zip(other, risks, strict=True)) for _, other in best):
            best.append((node, risks))
    return [node for node, _ in best]


def _said(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.6g}"


def _with_text_keys(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): json_value(value) for name, value in values.items()}
