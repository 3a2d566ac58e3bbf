"""The public `inspect`: the values of a new table's columns, their likely meanings, and their possible roles."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..attack.roles import ROLES, Roles
from ..errors import listed
from ..frames.open import held_table, table_names, with_labels
from ..marginals.request import CountRequest
from ..utils.display import (
    Displayable,
    Heading,
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
from ..utils.progress import Reporter, announce_compilation
from ..utils.validation import Columns
from .proposal import may_name_persons, propose
from .table_facts import find_facts

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


# The roles that a verdict names.
ASKED_OF = ("identifier", "quasi-identifier", "sensitive")
NOTE = "These are proposals, by names and values alone; nothing is applied until you say so. Check each."


# The columns that are printed, by their names in `Inspection.columns`.
HEADINGS = {
    "column": Heading("column", text=True),
    "type": Heading("type", text=True),
    "values": Heading("values"),
    "missing_share": Heading("missing rows", show=as_percent),
    "unique_share": Heading("unique rows", show=as_percent),
    "alpha_distinction": Heading("distinct values / rows", show=as_percent),
    "entropy": Heading("entropy, bits", show="{:.2f}".format),
    "looks_like": Heading("looks like", text=True, show=lambda value: "" if value is None else as_text(value)),
}


@dataclass(frozen=True)
class Inspection(Displayable):
    """The facts of the columns of a table, and the roles that are proposed for them; made by `gpupif.inspect`.

    rows: int. Rows of the table.
    columns: pandas DataFrame. One row for each column of the table, in its order; see below.
    roles: Roles. The proposed roles.
    seconds: float. The wall time of the inspection.

    The columns of `columns` are:

    column: the name.
    type: "category", "text", "whole number", "number", "boolean", "date", "date and time", "time", "time span",
        "nothing", or "other" for lists and the like, of which nothing else is found.
    values: number of distinct values, without missing values.
    missing: rows without a value.
    unique_share: share of the rows whose value no other row has.
    alpha_distinction: distinct values (missing values are one value) over rows. It is the largest share of the rows
        that can be kept so that all differ (Motwani and Xu 2008).
    entropy: bits, as in `gpupif.information.entropy`.
    looks_like: the likely meaning in words; None if unknown.
    missing_code: a text among the values that may stand for a missing value, such as "?"; None if there is none.
    hipaa: the letter of the kind of identifier in 45 CFR 164.514(b)(2)(i); None for no identifier of that list.
    role: the proposed role.
    evidence: "name", "values", "name and values", "distinction" or "nothing else".
    reason: the reason for the role in words.
    """

    rows: int
    columns: pd.DataFrame
    roles: Roles
    seconds: float

    def __repr__(self) -> str:
        return f"<Inspection of {self.rows:,} rows x {len(self.columns)} columns>"

    def verdict(self, redact: bool = False) -> list[str]:
        """See `Displayable.verdict`."""
        size = f"{self.rows:,} {plural(self.rows, 'row')} x {len(self.columns)} {plural(len(self.columns), 'column')}"
        named: dict[str, list[Any]] = {role: [] for role in ROLES}
        for name, role in self.roles.items():
            named[role].append(name)
        said = [f"{role} {listed(own, 4, quoted)}" for role, own in named.items() if own and role in ASKED_OF]
        found = f"Proposed as {'; '.join(said)}." if said else "No column looks like an identifier or a known trait."
        most = self.columns["unique_share"].max()
        unique = round(most * self.rows)
        name = quoted(self.columns["column"].iloc[highest_place(self.columns["unique_share"])])
        alone = f"{name} alone is unique in {unique:,} {plural(unique, 'row')} ({as_part(most)})."
        if not self.columns["unique_share"].any():
            alone = "No row is unique by one column alone."
        return [f"{size}: the likely meaning and role of each column.", found, alone]

    def draw(self, console: Console) -> None:
        rows = self.rows
        draw_verdict(self, console)
        console.print()
        records: list[dict[str, Any]] = self.columns.to_dict("records")  # type: ignore[assignment]
        for record in records:
            record["missing_share"] = record["missing"] / rows
            if record["hipaa"]:
                # The letter of HIPAA's kind of identifier.
                record["looks_like"] = f"{record['looks_like']} ({record['hipaa']})"
        some_missing = any(record["missing"] for record in records)
        shown = {key: heading for key, heading in HEADINGS.items() if some_missing or key != "missing_share"}
        console.print(
            draw_table("Columns", list(shown.values()), ([record[key] for key in shown] for record in records))
        )
        if any(record["hipaa"] for record in records):
            draw_line(
                console, "(A) to (R): the kind of identifier in HIPAA's Safe Harbor, 45 CFR 164.514(b)(2)(i).", "dim"
            )
        codes = {quoted(record["column"]): record["missing_code"] for record in records if record["missing_code"]}
        if codes:
            some = listed(sorted(set(codes.values())), 4, as_text)
            draw_line(
                console,
                f"{some} in {listed(list(codes), 4, str)} may stand for missing values, but counts as a value. If so, "
                "leave these cells empty before you go on.",
                "yellow",
            )
        console.print()
        headings = [Heading(name, text=True) for name in ("proposed role", "column", "because")]
        proposed = []
        for role in ROLES:
            own = [record for record in records if record["role"] == role]
            proposed += [
                ["" if place else role, record["column"], record["reason"]] for place, record in enumerate(own)
            ]
        console.print(draw_table("Roles", headings, proposed))
        draw_line(console, NOTE)
        draw_line(console, f"Looked at in {self.seconds:.2f} s")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON; "roles" is by column."""
        roles = {str(name): role for name, role in self.roles.items()}
        return {
            "rows": self.rows,
            "columns": as_json(self.columns),
            "roles": roles,
            "seconds": json_value(self.seconds),
        }

    def write(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write the proposed roles, each with its reason, to a file to edit, which `gpupif.read_roles` reads.

        path: a .toml file. overwrite: True to replace an existing file. Default False. Raises OutputError, also for
        column names that are no text.
        """
        reasons = dict(zip(self.columns["column"], self.columns["reason"], strict=True))
        self.roles.write(path, overwrite, reasons, f"Proposed roles of the columns of a table of {self.rows:,} rows.")


def inspect(table: Any, columns: Columns | None = None) -> Inspection:
    """Inspect a new table: the values of its columns, their likely meanings, and the roles that they may have.

    This is the first step with an unknown table. The words of a column's name (English, some German, French and
    Spanish) and patterns of its values, with their check digits, tell its likely meaning. Known meanings are the 18
    kinds of identifiers of HIPAA's Safe Harbor, the special categories of the GDPR, sampling weights, household and row
    numbers, free text, and traits that others may know of a person. From its meaning, and from the number of its
    distinct values, a role is proposed for each column, with the reason in words. Nothing is applied: whoever knows the
    table decides.

    Parameters
    ----------
    table:
        As in `gpupif.score`: a pandas, Polars or cuDF DataFrame, a pyarrow Table, the path of a file, a folder or a
        pattern, or a Dask DataFrame, which is computed at once. Files that do not fit into memory are read in streams;
        only the distinct values of their columns are kept, on disk, for any number of values. On Dask the distinct
        values of a column have to fit into the memory of a worker. The result is the same for every kind of table, and
        for any order of the rows.
    columns:
        Columns to inspect. Default: all. Row labels, such as an index, are then inspected only if they look like an
        identifier or free text.

    Returns
    -------
    Inspection
        ``.columns``, a pandas DataFrame; ``.roles``, a `gpupif.results.Roles`; prints as tables; ``.to_dict()``,
        ``.to_json()``; ``.write("roles.toml")`` for a file to edit, which `gpupif.read_roles` reads.

    Raises
    ------
    InputError
        No rows, no such column, columns of the same name; too little memory.
    TableReadError
        A file that cannot be read, or changes meanwhile.
    OutputError
        No place for temporary files.

    Notes
    -----
    Patterns are tried on all distinct values of a column. If there are more than 1,000, patterns are tried on the 1,000
    values with the lowest hashes: the same in every way to run, and as good as drawn at random. Missing values are one
    value in alpha_distinction and entropy; they are not counted in values.

    References
    ----------
    Code of Federal Regulations, title 45, 164.514(b)(2)(i). Regulation (EU) 2016/679, articles 9 and 10. Motwani and
    Xu, Efficient algorithms for masking and finding quasi-identifiers, SIAM workshop on practical privacy-preserving
    data mining (2008).

    Examples
    --------
    >>> import gpupif
    >>> found = gpupif.inspect(gpupif.datasets.pif_example())
    >>> found.columns[["column", "type", "values", "looks_like", "role"]]
          column      type  values      looks_like              role
    0     gender  category       2   sex or gender  quasi-identifier
    1       name      text       5           names        identifier
    2  eye_color  category       2  visible traits  quasi-identifier
    >>> print(found.columns.reason[1])
    its name says names: HIPAA (A)

    """
    import pandas as pd

    started = time.perf_counter()
    table = held_table(table)
    _, labels = table_names(table)
    with Reporter() as report, announce_compilation():
        facts = find_facts(with_labels(table, labels), CountRequest(columns, labels=True), report)
    proposals = propose(facts)
    if columns is None:
        proposals = {
            name: one for name, one in proposals.items() if name not in labels or may_name_persons(facts[name], one)
        }
        facts = {name: facts[name] for name in proposals}
    records = [
        {
            "column": name,
            "type": one.type,
            "values": one.distinct,
            "missing": one.missing,
            "unique_share": one.unique_share,
            "alpha_distinction": one.alpha_distinction,
            "entropy": one.entropy,
            "looks_like": None if proposal.meaning is None else proposal.meaning.label,
            "hipaa": proposal.hipaa or None,
            "missing_code": one.missing_code,
            "role": proposal.role,
            "evidence": proposal.evidence,
            "reason": proposal.reason,
        }
        for (name, one), proposal in zip(facts.items(), proposals.values(), strict=True)
    ]
    frame = pd.DataFrame.from_records(records)
    for key in ("column", "looks_like", "hipaa", "missing_code"):
        # The type object keeps names as they are, and None as None, in all versions of pandas.
        frame[key] = pd.Series([record[key] for record in records], dtype=object)
    rows = next(iter(facts.values())).rows
    roles = Roles({name: proposal.role for name, proposal in proposals.items()})
    return Inspection(rows, frame, roles, time.perf_counter() - started)


def next_commands(
    table: str, roles: Roles, file: str, written: bool, options: Sequence[str] = (), on_cluster: bool = False
) -> list[str]:
    """Return the commands to run once columns have roles, in a sensible order, quoted for a shell.

    table: path of the table. roles: its roles. file: path of the file of roles. written: True if that file exists.
    options: options that say how the table is read. on_cluster: True if scores are written to a folder.
    """
    how = [*options]
    commands = [] if written else [["inspect", table, "-o", file, *how]]
    with_roles = [table, "--roles", file, *how]
    if roles.quasi_identifiers:
        commands += [["risk", *with_roles], ["suda", *with_roles]]
        if len(roles.quasi_identifiers) > 1:
            commands.append(["toxic", *with_roles])
        commands.append(["score", *with_roles, "-o", "scores" if on_cluster else "scores.parquet"])
        commands.append(["protect", *with_roles, "--require", "k>=5", "--suppress", "0.05", "-o", "plan.toml"])
    return [shlex.join(["gpupif", *command]) for command in commands]
