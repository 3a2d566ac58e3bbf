"""What a search for the least treatment found."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..criteria.criterion import Criterion
from ..criteria.criterion_set import CriterionSet, CriterionValue
from ..treatment.plan import Plan
from ..utils.display import Displayable, Heading, as_part, as_percent, draw_line, draw_table, json_value, plural
from .lattice import with_ties
from .levels import ColumnLevels

if TYPE_CHECKING:
    from rich.console import Console

# What is said of identifiers, by what the plan does with them.
IDENTIFIERS = {
    "drop": "Identifiers dropped",
    "pseudonymise": "Identifiers that get pseudonyms, by the secret key that the table is treated with",
    "keep": "Identifiers kept as they are",
}
# Of the frontier that is printed.
SHOWN_NODES = 12


@dataclass(frozen=True)
class FrontierNode:
    """A node that was checked, and than which no other one checked is better in loss and in all values of criteria.

    levels: by column. loss: bits, weighted. values: by criterion what the table has there. is_met: whether all are.
    """

    levels: Mapping[Hashable, int]
    loss: float
    values: Mapping[str, float]
    is_met: bool


@dataclass(frozen=True)
class Protection(Displayable):
    """The least treatment with which a table meets criteria; made by `gpupif.protect`. Prints as tables.

    plan: the treatment, for `gpupif.treat`. rows: of the table; suppressed_rows: those that the plan takes away, or,
    where it suppresses single cells, those that have such; suppressed_cells: how many these are. rows_with_cells: where
    single cells were asked for, and would have been suppressed in more rows than may be, in how many, so that whole
    rows are taken away; else None. cells_unreached: whether single cells were asked for, and whole rows are taken away
    because no suppressed cells meet all criteria. levels: by column how coarse it becomes; heights: by column the
    highest level. losses: by column the bits over all rows that this takes; loss: these times the weights of the
    columns, added up; loss_share: of the loss with everything at its top.

    risk: what the treated table has of each criterion, measured again: the table treated by the plan, then scored as
    any is. before: the same of the table as it is.

    checks: nodes that were looked at; nodes: all there are. optimal: whether no node costs less that meets the
    criteria.
    gap: by what share of the loss a better one may be cheaper at most; 0 where it is optimal. frontier: the best nodes
    that were checked, from the cheapest on. proposed: columns whose hierarchies were proposed. attacker: what the
    attacker knows, in words, of criteria that say nothing else.

    identifiers: by column what the plan does with those that name persons: "drop", "pseudonymise" (by the key that the
    table is treated with) or "keep". seconds: wall time by stage.
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
        """Whether the treated table meets all criteria; it does, or something is wrong."""
        return all(one.is_met for one in self.risk)

    def to_dict(self) -> dict[str, Any]:
        """All of it, ready for JSON."""
        found = {**super().to_dict(), "plan": self.plan.to_dict(), "is_met": self.is_met}
        found["frontier"] = [
            {**vars(node), "levels": _texts(node.levels), "values": _texts(node.values)} for node in self.frontier
        ]
        for name in ("risk", "before"):
            found[name] = [_document(one) for one in getattr(self, name)]
        return found

    def __repr__(self) -> str:
        found = "optimal" if self.optimal else f"at most {as_percent(self.gap)} from the optimum"
        return f"<Protection of {self.rows:,} {plural(self.rows, 'row')}: {as_percent(self.loss_share)} lost, {found}>"

    def draw(self, console: Console) -> None:
        found = "the least there is" if self.optimal else f"at most {as_percent(self.gap)} above the least there is"
        draw_line(console, self.attacker)
        spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in self.seconds.items())
        console.print(
            f"[bold]{as_part(self.loss_share)}[/] of what may be lost is lost, {found}: [bold]{self.checks:,}[/] of "
            f"{self.nodes:,} {plural(self.nodes, 'node')} checked, device [bold]{self.device}[/], {spent}",
            highlight=False,
        )
        if self.suppressed_rows:
            share = as_percent(self.suppressed_rows / self.rows)
            rows = f"{self.suppressed_rows:,} {plural(self.suppressed_rows, 'row')}"
            cells = f"{self.suppressed_cells:,} {plural(self.suppressed_cells, 'cell')}"
            done = f"{cells} suppressed, in {rows}" if self.suppressed_cells else f"{rows} suppressed"
            console.print(f"{done} ({share})", highlight=False)
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
        before = {one.criterion: one.value for one in self.before}
        risk = [
            [str(one.criterion), before.get(one.criterion), one.value, "yes" if one.is_met else "NO"]
            for one in self.risk
        ]
        columns = [
            [name, f"{level} of {self.heights[name]}", self.losses[name], self.losses[name] / self.rows]
            for name, level in self.levels.items()
        ]
        said = [Heading("column", text=True), Heading("level"), Heading("bits lost"), Heading("bits per row")]
        tables = [draw_table("Risk", headings, risk), draw_table("Levels", said, columns)]
        if len(self.frontier) > 1:
            named = list(self.frontier[0].values)
            several = [Heading("bits lost"), *map(Heading, named), Heading("levels", text=True)]
            nodes = [
                [node.loss, *(node.values[name] for name in named), ",".join(map(str, node.levels.values()))]
                for node in _spread(self.frontier)
            ]
            tables.append(draw_table("Loss against risk", several, nodes))
        return tables


def frontier_of(
    values: Mapping[tuple[int, ...], Mapping[Criterion, CriterionValue]],
    costs: Sequence[Sequence[float]],
    levels: Sequence[ColumnLevels],
    criteria: CriterionSet,
) -> list[FrontierNode]:
    """Return the frontier of the nodes of which each criterion's value was found; values: by node, of some criteria."""
    nodes = []
    for node, found in values.items():
        each = [
            found[criterion]
            for criterion in criteria.criteria
            if criterion in found and found[criterion].value is not None
        ]
        if len(each) < len(criteria.criteria):
            continue
        loss = 0.0
        for axis, level in enumerate(node):
            loss += costs[axis][level]
        made = FrontierNode(
            {one.name: level for one, level in zip(levels, node, strict=True)},
            loss,
            {str(one.criterion): float(one.value) for one in each if one.value is not None},
            all(one.is_met for one in each),
        )
        nodes.append(
            (made, [one.value if one.criterion.at_most else -one.value for one in each if one.value is not None])
        )
    return _non_dominated(nodes)


def _non_dominated(nodes: Sequence[tuple[FrontierNode, Sequence[float]]]) -> list[FrontierNode]:
    """Return the nodes than which no other one is at least as good in everything, the cheapest first.

    nodes: each with its values as risks, of which lower ones are safer. Of nodes that are equal in everything the one
    with the lowest levels is returned.
    """
    costs = with_ties(np.array([node.loss for node, _ in nodes]))
    best: list[tuple[FrontierNode, Sequence[float]]] = []
    for _, risks, _, node in sorted(
        ((cost, risks, tuple(node.levels.values()), node) for cost, (node, risks) in zip(costs, nodes, strict=True)),
        key=lambda one: one[:3],
    ):
        if not any(all(x <= y for x, y in zip(other, risks, strict=True)) for _, other in best):
            best.append((node, risks))
    return [node for node, _ in best]


def _spread(nodes: Sequence[FrontierNode]) -> list[FrontierNode]:
    """Some of the nodes, evenly."""
    step = max(1, -(-len(nodes) // SHOWN_NODES))
    return list(nodes[::step])


def _texts(values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): json_value(value) for name, value in values.items()}


def _document(value: CriterionValue) -> dict[str, Any]:
    return {
        "criterion": str(value.criterion),
        "value": json_value(value.value),
        "is_met": value.is_met,
        "column": None if value.column is None else str(value.column),
    }
