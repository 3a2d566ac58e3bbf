"""What changed between two runs, drawn for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...utils.display import Heading, as_text, draw_table, plural

if TYPE_CHECKING:
    from rich.table import Table

    from ..outcome import InputChanges
    from .changes import CellChange, ColumnChange, ComparedRun, FigureChange, GateChange, ScoreChanges

# Files, and figures of columns, that are listed of each kind.
LISTED_FILES, LISTED_FIGURES = 5, 20


def headings(before: ComparedRun, after: ComparedRun, config_changed: bool) -> list[str]:
    """Which runs are compared, in rich's markup."""
    compared = (
        f"Run [bold]{before.number}[/] ({before.started}, {before.status}) to run [bold]{after.number}[/] "
        f"({after.started}, {after.status})"
    )
    return [compared, *(["[yellow]The configuration changed in between.[/]"] if config_changed else [])]


def files_line(inputs: InputChanges) -> str:
    """How files differ, in words."""
    several = {
        "added": inputs.added,
        "removed": inputs.removed,
        "changed": inputs.changed,
        "renamed": [f"{old} to {new}" for old, new in inputs.renamed],
    }
    said = [f"{len(paths)} {kind} ({_some(paths)})" for kind, paths in several.items() if paths]
    return f"Files: {', '.join([*said, f'{inputs.unchanged} unchanged'])}"


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - LISTED_FILES} more"] if len(names) > LISTED_FILES else []
    return ", ".join([*names[:LISTED_FILES], *more])


def tables(
    schema: Sequence[ColumnChange],
    gates: Sequence[GateChange],
    table: Sequence[FigureChange],
    columns: Sequence[FigureChange],
) -> list[Table]:
    """Of all that changed but scores."""
    tables = []
    if schema:
        headings = [Heading(name, text=True, show=_or_none) for name in ("column", "type before", "type after")]
        types = [(column.name, column.before, column.after) for column in schema]
        tables.append(draw_table("Columns that came, went, or changed their type", headings, types))
    if gates:
        headings = [Heading("gate", text=True), Heading("before", show=_number), Heading("after", show=_number)]
        headings += [Heading("unit", text=True)]
        headings += [Heading(name, text=True, show=_or_none) for name in ("verdict before", "verdict")]
        rows = [(gate.name, gate.before, gate.after, gate.unit, gate.verdict_before, gate.verdict) for gate in gates]
        tables.append(draw_table("Gates", headings, rows))
    if table:
        tables.append(_figures("The table: what changed", table, with_column=False))
    if columns:
        first = sorted(columns, key=lambda one: -abs(one.change or 0))[:LISTED_FIGURES]
        left = len(columns) - len(first)
        more = f"; {left} more {plural(left, 'figure')} in JSON" if left else ""
        tables.append(_figures(f"Columns: what changed most{more}", first, with_column=True))
    return tables


def _figures(title: str, figures: Sequence[FigureChange], with_column: bool) -> Table:
    attackers = any(one.attacker is not None for one in figures)
    headings = [Heading("column", text=True)] if with_column else []
    headings += [Heading("figure", text=True)]
    headings += [Heading("attacker", text=True, show=_or_none)] if attackers else []
    headings += [Heading(name, show=_number) for name in ("before", "after", "change")]
    rows = [
        (
            *((one.column,) if with_column else ()),
            f"{one.name}{f', {one.unit}' if one.unit and not one.name.endswith(one.unit) else ''}",
            *((one.attacker,) if attackers else ()),
            *(one.before, one.after, one.change),
        )
        for one in figures
    ]
    return draw_table(title, headings, rows)


def score_lines(scores: ScoreChanges) -> list[str]:
    """Rows that became unique, and how many cells rose, in rich's markup."""
    lines = []
    unique = scores.newly_unique
    if unique is not None:
        listed = ", ".join(map(str, unique.rows))
        places = f": {listed}{', ...' if unique.count > len(unique.rows) else ''} (from 0)" if unique.rows else ""
        lines.append(f"Newly unique rows: [bold]{unique.count:,}[/]{places}")
    compared = f"{scores.compared:,} cells compared by {scores.by}"
    return [*lines, f"{compared}: {scores.rose:,} rose, {scores.fell:,} fell ({scores.measure})"]


def cell_table(cells: Sequence[CellChange]) -> Table:
    """The cells whose risk rose most."""
    keys = list(dict.fromkeys(name for cell in cells for name in cell.key or {}))
    values = any(cell.value is not None for cell in cells)
    headings = [
        Heading("row"),
        *(Heading(name, text=True, show=as_text) for name in keys),
        Heading("column", text=True),
    ]
    headings += [Heading("value", text=True, show=as_text)] if values else []
    headings += [Heading(name) for name in ("before", "after", "rise")]
    rows = [
        (
            cell.row,
            *((cell.key or {}).get(name) for name in keys),
            cell.column,
            *((cell.value,) if values else ()),
            *(cell.before, cell.after, abs(cell.after - cell.before)),
        )
        for cell in cells
    ]
    return draw_table("Cells whose risk rose most", headings, rows)


def _number(value: Any) -> str:
    """A number that may not be known."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _or_none(value: Any) -> str:
    return "" if value is None else str(value)
