"""What a table was found to hold, drawn for a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..attack.roles import ROLES, Roles
from ..utils.display import Heading, as_percent, as_text, draw_table, plural

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

NOTE = "These are proposals, by names and values alone; nothing is applied until you say so. Check each."


def _share(value: float) -> str:
    """A share of rows, nothing for none."""
    return as_percent(value) if value else ""


# What is shown of columns, by what it is called in the result.
HEADINGS = {
    "column": Heading("column", text=True),
    "type": Heading("type", text=True),
    "values": Heading("values"),
    "missing_share": Heading("missing", show=_share),
    "unique_share": Heading("unique", show=_share),
    "alpha_distinction": Heading("alpha", show="{:.3g}".format),
    "entropy": Heading("bits", show="{:.2f}".format),
    "looks_like": Heading("looks like", text=True, show=lambda value: "" if value is None else as_text(value)),
}


def print_inspection(rows: int, seconds: float, columns: pd.DataFrame, console: Console) -> None:
    """Print what columns hold, then which roles they may have, by role. columns: see `Inspection`."""
    number = len(columns)
    console.print(
        f"[bold]{rows:,}[/] {plural(rows, 'row')} x [bold]{number}[/] {plural(number, 'column')}, looked at in "
        f"{seconds:.2f} s",
        highlight=False,
    )
    console.print()
    found: list[dict[str, Any]] = columns.to_dict("records")  # type: ignore[assignment]
    records = [{**record, "missing_share": record["missing"] / rows, "looks_like": _look(record)} for record in found]
    some_missing = any(record["missing"] for record in records)
    shown = {key: heading for key, heading in HEADINGS.items() if some_missing or key != "missing_share"}
    title = "Columns: different values, rows with a value of their own, alpha-distinction, entropy"
    console.print(draw_table(title, list(shown.values()), ([record[key] for key in shown] for record in records)))
    console.print()
    headings = [Heading(name, text=True) for name in ("proposed role", "column", "because")]
    proposed = [
        [role if first else "", record["column"], record["reason"]]
        for role in ROLES
        for first, record in _marked([record for record in records if record["role"] == role])
    ]
    console.print(draw_table("Roles", headings, proposed))
    console.print(NOTE, highlight=False)


def _look(record: dict[str, Any]) -> str | None:
    """What a column looks like, with the letter of HIPAA's kind of identifier."""
    meaning: str | None = record["looks_like"]
    return meaning if meaning is None or not record["hipaa"] else f"{meaning} ({record['hipaa']})"


def _marked(records: list[dict[str, Any]]) -> list[tuple[bool, dict[str, Any]]]:
    """Each with whether it is the first."""
    return [(place == 0, record) for place, record in enumerate(records)]


SCORES, FOLDER = "scores.parquet", "scores"


def next_commands(
    table: str, roles: Roles, file: str, written: bool, options: Sequence[str] = (), on_cluster: bool = False
) -> list[str]:
    """Commands about a table, in an order that makes sense, each as a shell takes it.

    table: its path. file: of its roles; written: whether it is there. options: how the table is read, which all
    commands have to be told. on_cluster: scores are written to a folder.
    """
    how = [*options]
    commands = [] if written else [["inspect", table, "-o", file, *how]]
    with_roles = [table, "--roles", file, *how]
    if roles.quasi_identifiers:
        commands += [["risk", *with_roles], ["suda", *with_roles]]
        if len(roles.quasi_identifiers) > 1:
            commands.append(["toxic", *with_roles])
        commands.append(["score", *with_roles, "-o", FOLDER if on_cluster else SCORES])
    return [shlex.join(["gpupif", *command]) for command in commands]
