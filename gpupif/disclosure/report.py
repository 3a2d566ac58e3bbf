"""Disclosure risk drawn for a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ..utils.display import as_found, as_text

if TYPE_CHECKING:
    from rich.console import Console

    from .risk import DisclosureRisk

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


def print_risk(found: DisclosureRisk, console: Console) -> None:
    """Print the classes by size with their risk, the measures by sensitive attribute, and the homogeneous classes."""
    spent = ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in found.seconds.items())
    console.print(
        f"[bold]{found.rows:,}[/] rows, {len(found.quasi_identifiers)} quasi-identifiers: "
        f"[bold]{found.classes.classes:,}[/] equivalence classes, device [bold]{found.device}[/], {spent}",
        highlight=False,
    )
    console.print()
    console.print(_classes(found))
    if len(found.attributes):
        console.print()
        console.print(_attributes(found))
    if found.groups:
        console.print()
        console.print(_groups(found))


def _classes(found: DisclosureRisk) -> Table:
    """Sizes of classes, and the risk of re-identification."""
    classes, people, uniques = found.classes, found.population, found.uniques
    below = f"fewer than {classes.wanted_k} rows"
    facts = [
        ("k, rows of the smallest class", f"{classes.k:,}"),
        ("rows of the largest class", f"{classes.largest:,}"),
        ("rows a class", f"{classes.average_size:,.2f}"),
        ("unique rows", f"{classes.uniques:,} ({_percent(classes.unique_share)})"),
        (f"classes of {below}", f"{classes.classes_below:,}, {classes.rows_below:,} rows"),
        ("prosecutor risk, highest", _percent(classes.prosecutor.highest)),
        ("prosecutor risk, average", _percent(classes.prosecutor.average)),
        (f"rows at risk (above {classes.threshold:.3g})", _percent(classes.prosecutor.at_risk)),
        ("marketer risk", _percent(classes.marketer)),
        ("discernibility", f"{classes.discernibility:,}"),
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


def _attributes(found: DisclosureRisk) -> Table:
    """The measures of each sensitive attribute."""
    of_l = "" if found.l_values is None else f" (c for l = {found.l_values})"
    table = _table(f"Sensitive attributes, the worst class of each{of_l}")
    table.add_column("attribute", overflow="fold")
    keys = list(found.attributes.columns)
    for key in keys:
        table.add_column(HEADS[key], justify="right", overflow="fold")
    for name, row in zip(found.attributes.index, found.attributes.to_dict("records"), strict=True):
        table.add_row(Text(as_text(name)), *(_number(row[key]) for key in keys))
    return table


def _groups(found: DisclosureRisk) -> Table:
    """The most homogeneous classes."""
    table = _table("Most homogeneous classes of several rows: whoever is in one need not be told from the others")
    for head in ("class", "attribute", "value"):
        table.add_column(head, overflow="fold")
    for head in ("rows", "share", "entropy"):
        table.add_column(head, justify="right")
    for group in found.groups:
        values = ", ".join(f"{as_text(name)}={as_found(value)}" for name, value in group.quasi_identifiers.items())
        named = [Text(values), Text(as_text(group.attribute)), Text(as_found(group.value))]
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
