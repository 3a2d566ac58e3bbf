"""Tasks that find, by tree reductions, what all partitions of a table come to: values, counted, and weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from . import partition, plan

if TYPE_CHECKING:
    from .graph import Graph, Result
    from .plan import ReadRequest


def add_totals(graph: Graph, request: ReadRequest, local: Sequence[Result], of: str = "") -> Result:
    """The `PartitionTotals` of a whole table. local: its partitions, encoded; of: what names of tasks end in."""
    return graph.tree(
        f"totals{of}", partial(plan.add_totals, request.read), graph.each(f"values{of}", partition.totals, local)
    )


def add_weights(
    graph: Graph, request: ReadRequest, names: list[Hashable], totals: Result, local: Sequence[Result]
) -> tuple[Any, Any]:
    """The weights of a table, and what they add up to by column and code; both None where its rows have none."""
    if request.weights is None:
        return None, None
    weights = graph.one("units", plan.find_units, request, names, totals)
    counts = graph.each("weigh", partition.weigh_partition, request, weights, local)
    return weights, graph.tree("weights-of-values", plan.add_counts, counts)
