"""Disclosure risk drawn for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..results.report import _exact, _text

if TYPE_CHECKING:
    import pandas as pd

    from .classes import ClassRisks
    from .estimated import EstimatedRisks
    from .homogeneity import Group
    from .journalist import PopulationRisks
    from .population_uniques import PopulationUniques

HEADS = {
    "values": "values",
    "alpha": "alpha",
    "distinct_l": "distinct l",
    "entropy_l": "entropy l",
    "recursive_c": "c",
    "t": "t",
    "basic_beta": "beta",
    "enhanced_beta": "enh. beta",
    "delta": "delta",
    "homogeneous_classes": "one value: classes",
    "homogeneous_rows": "rows",
}


def heading(rows: int, known: int, classes: int | None, device: str, seconds: Mapping[str, float]) -> str:
    """What was looked at, and in what time; classes: None where they overlap."""
    spent = ", ".join(f"{stage} {took:.2f} s" for stage, took in seconds.items())
    found = "overlapping" if classes is None else f"[bold]{classes:,}[/]"
    return (
        f"[bold]{rows:,}[/] rows, {known} quasi-identifiers: {found} equivalence classes, device [bold]{device}[/], "
        f"{spent}"
    )


def classes_table(
    classes: ClassRisks,
    estimated: EstimatedRisks | None,
    people: PopulationRisks | None,
    uniques: PopulationUniques | None,
) -> Table:
    """Sizes of classes, and the risk of re-identification."""
    below = f"{classes.rows_below:,} rows"
    shown_size = [] if classes.average_size is None else [("rows a class", f"{classes.average_size:,.2f}")]
    if classes.classes_below is not None:
        below = f"{classes.classes_below:,}, {below}"
    facts = [
        ("k, rows of the smallest class", f"{classes.k:,}"),
        ("rows of the largest class", f"{classes.largest:,}"),
        *shown_size,
        ("unique rows", f"{classes.uniques:,} ({_percent(classes.unique_share)})"),
        (f"classes of fewer than {classes.wanted_k} rows", below),
        ("prosecutor risk, highest", _percent(classes.prosecutor.highest)),
        ("prosecutor risk, average", _percent(classes.prosecutor.average)),
        (f"rows at risk (above {classes.threshold:.3g})", _percent(classes.prosecutor.at_risk)),
        ("marketer risk", _percent(classes.marketer)),
        ("discernibility", f"{classes.discernibility:,}"),
    ]
    if estimated is not None:
        facts += [
            ("people in the population, estimated", f"{estimated.people:,.4g}"),
            ("people of the smallest class there", f"{estimated.k_map:,.4g}"),
            ("journalist risk there, highest", _percent(estimated.journalist.highest)),
            ("journalist risk there, average", _percent(estimated.journalist.average)),
            ("individual risk, highest", _percent(estimated.individual.highest)),
            ("individual risk, average", _percent(estimated.individual.average)),
            ("re-identifications expected", f"{estimated.reidentifications:,.4g}"),
        ]
    if people is not None:
        facts += [
            ("k-map, people of the smallest class in the population", f"{people.k_map:,}"),
            ("journalist risk, highest", _percent(people.journalist.highest)),
            ("journalist risk, average", _percent(people.journalist.average)),
            ("marketer risk in the population", _percent(people.marketer)),
        ]
    if uniques is not None:
        shown = "no estimate" if math.isnan(uniques.uniques) else f"{uniques.uniques:,.0f}"
        facts.append((f"unique in the population of {uniques.population:,} ({uniques.model})", shown))
    table = _table("Equivalence classes and re-identification")
    table.add_column("", overflow="fold")
    table.add_column("", justify="right", overflow="fold")
    table.show_header = False
    for name, fact in facts:
        table.add_row(name, fact)
    return table


def attributes_table(attributes: pd.DataFrame, l_values: int | None) -> Table:
    """The measures of each sensitive attribute."""
    of_l = "" if l_values is None else f" (c for l = {l_values})"
    table = _table(f"Sensitive attributes, the worst class of each{of_l}")
    table.add_column("attribute", overflow="fold")
    keys = list(attributes.columns)
    for key in keys:
        table.add_column(HEADS[key], justify="right", overflow="fold")
    for name, row in zip(attributes.index, attributes.to_dict("records"), strict=True):
        table.add_row(Text(_text(name)), *(_number(row[key]) for key in keys))
    return table


def groups_table(groups: Sequence[Group]) -> Table:
    """The most homogeneous classes."""
    table = _table("Most homogeneous classes of several rows: whoever is in one need not be told from the others")
    for head in ("class", "attribute", "value"):
        table.add_column(head, overflow="fold")
    for head in ("rows", "share", "entropy"):
        table.add_column(head, justify="right")
    for group in groups:
        values = ", ".join(f"{_text(name)}={_exact(value)}" for name, value in group.quasi_identifiers.items())
        named = [Text(values), Text(_text(group.attribute)), Text(_exact(group.value))]
        table.add_row(*named, f"{group.rows:,}", _percent(group.share), f"{group.entropy:.3f}")
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", header_style="bold")


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _number(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "none" if math.isinf(value) else f"{value:.4g}"
