"""Roles of columns, and files of them: TOML, to be edited by hand."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, did_you_mean
from ..frames.open import held_table, table_names
from ..io.documents import read_document, toml_comment, toml_key, toml_text
from ..io.write import check_output, write_text
from ..utils.validation import Columns, as_columns, brief, check_exist, check_path
from .arguments import as_attackers, as_known
from .attackers import AnyKnown, Known

# The roles of columns, and the meaning of each.
IDENTIFIER, QUASI, SENSITIVE, WEIGHT, LEFT_OUT = "identifier", "quasi-identifier", "sensitive", "weight", "leave out"
ROLES: Mapping[str, str] = {
    IDENTIFIER: "names a person, by itself or nearly so: nothing reads it, and it is not to be published",
    QUASI: "others may know it of a person: what an attacker knows",
    SENSITIVE: "what an attacker would learn",
    WEIGHT: "how many people a row stands for; one column at most",
    LEFT_OUT: "nothing reads it",
}


@dataclass(frozen=True, eq=False)
class Roles(Mapping[Hashable, str]):
    """The role of each column of a table, by its name, in the order of the table.

    Made by `gpupif.read_roles`, or, as proposals, by `gpupif.inspect`. A role is one of "identifier",
    "quasi-identifier", "sensitive", "weight" and "leave out". Raises InputError for another one, and for two weights.

    of: role by column. origin: the file that they are of, None for none; errors name it.
    """

    of: Mapping[Hashable, str]
    origin: Path | None = None

    def __post_init__(self) -> None:
        for name, role in self.of.items():
            if not isinstance(role, str) or role not in ROLES:
                listed = ", ".join(map(repr, ROLES))
                hint = did_you_mean(role, ROLES) if isinstance(role, str) else ""
                raise InputError(f"{self.said}: column {name!r}: expected one of {listed}; got {brief(role)}.{hint}")
        weights = self.having(WEIGHT)
        if len(weights) > 1:
            listed = ", ".join(map(repr, weights))
            raise InputError(
                f"{self.said}: expected one column of weights at most, got {listed}. Make the others {LEFT_OUT!r}."
            )

    def __getitem__(self, column: Hashable) -> str:
        return self.of[column]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.of)

    def __len__(self) -> int:
        return len(self.of)

    @property
    def said(self) -> str:
        """The words that begin errors about these roles."""
        return "roles" if self.origin is None else f"roles: {self.origin}"

    def having(self, role: str) -> list[Hashable]:
        """Return the columns that have a role, in their order."""
        return [name for name, own in self.of.items() if own == role]

    @property
    def identifiers(self) -> list[Hashable]:
        """The columns that name persons."""
        return self.having(IDENTIFIER)

    @property
    def quasi_identifiers(self) -> list[Hashable]:
        """The columns that an attacker may know."""
        return self.having(QUASI)

    @property
    def sensitive(self) -> list[Hashable]:
        """The columns that an attacker would learn."""
        return self.having(SENSITIVE)

    @property
    def weight(self) -> Hashable:
        """The column of sampling weights; None if there is none."""
        return next(iter(self.having(WEIGHT)), None)

    @property
    def left_out(self) -> list[Hashable]:
        """The columns that no function reads."""
        return self.having(LEFT_OUT)

    @property
    def scored(self) -> list[Hashable]:
        """The columns that an attacker may know or would learn, in their order."""
        return [name for name, role in self.of.items() if role in (QUASI, SENSITIVE)]

    def check(self, names: Sequence[Hashable], labels: Sequence[Hashable] = ()) -> Roles:
        """Return the roles of the columns of a table, which may lack identifiers and columns that are left out.

        labels: columns that only label rows. They need no role. Raises InputError for a column without a role, and
        ColumnNotFoundError for another column that the table lacks.
        """
        there = list(dict.fromkeys([*names, *labels]))
        # A treated table has them no more.
        own = {name: role for name, role in self.of.items() if name in there or role not in (IDENTIFIER, LEFT_OUT)}
        check_exist(self.said, own, there)
        lacking = [name for name in names if name not in self.of and name not in labels]
        if lacking:
            listed = ", ".join(map(repr, lacking))
            raise InputError(f"{self.said}: expected a role for each column, got none for {listed}. Add what it is.")
        return replace(self, of=own)

    def known(self) -> list[Hashable]:
        """Return the quasi-identifiers. Raise InputError if there are none."""
        if not self.quasi_identifiers:
            raise InputError(
                f"{self.said}: expected at least one column to be a {QUASI!r}, got none. Say which ones others know."
            )
        return self.quasi_identifiers

    def to_toml(self, reasons: Mapping[Hashable, str] | None = None, title: str = "Roles of columns.") -> str:
        """Return a document with comments for `gpupif.read_roles`, to be edited.

        reasons: by column, a comment on its role. title: the first line. Raise OutputError for names that are no text.
        """
        lines = [
            toml_comment(title),
            toml_comment("Edit what is wrong; the commands of gpupif that read or treat a table take this by --roles."),
            "#",
            *(toml_comment(f"{toml_text(role)}: {meaning}") for role, meaning in ROLES.items()),
            "",
            "[roles]",
        ]
        for name, role in self.of.items():
            if reasons is not None:
                lines.append(toml_comment(reasons[name]))
            lines.append(f"{toml_key(name)} = {toml_text(role)}")
        return "\n".join(lines) + "\n"

    def write(
        self,
        path: str | os.PathLike[str],
        overwrite: bool = False,
        reasons: Mapping[Hashable, str] | None = None,
        title: str = "Roles of columns.",
    ) -> None:
        """Write `to_toml` to a file. Raise OutputError, also if the file exists and `overwrite` is not set."""
        check_path("path", path, "a .toml file")
        text = self.to_toml(reasons, title)
        check_roles_output(path, overwrite)
        write_text(text, path, overwrite)


def as_roles(given: Any) -> Roles:
    """Return roles from themselves, from a dictionary of them by column, or from the path of a file.

    Raises InputError.
    """
    if isinstance(given, Roles):
        return given
    if isinstance(given, Mapping):
        return Roles(dict(given))
    if isinstance(given, str | os.PathLike):
        return read_roles(given)
    raise InputError(
        f"roles: expected a file of roles, or a dictionary of the role of each column, got {brief(given)}."
    )


def with_roles(table: Any, roles: Any) -> tuple[Any, Roles]:
    """Return a table, to be read again, and its roles, as `as_roles` takes them, checked against its columns.

    Raises InputError for roles of another table.
    """
    found, held = as_roles(roles), held_table(table)
    return held, found.check(*table_names(held))


def score_by_roles(
    roles: Roles, columns: Columns | None, known: Any, attackers: Any, weights: Hashable
) -> tuple[Columns, Any, Any, Hashable]:
    """Return arguments of `gpupif.score`, in their order here, completed from roles if they are not given.

    Scored are quasi-identifiers and sensitive attributes; the attacker knows the quasi-identifiers, or any few of
    these. Raises InputError for roles without quasi-identifiers.
    """
    weights = roles.weight if weights is None else weights
    columns = [name for name in roles.scored if name != weights] if columns is None else columns
    pool = [name for name in roles.known() if name != weights]
    if attackers is not None:
        several = as_attackers(attackers, known) or {}
        return columns, None, {name: _among(one, pool) for name, one in several.items()}, weights
    one = as_known("known", known)
    return columns, pool if one is None else _among(one, pool), None, weights


class FilledArguments:
    """The columns that roles give to arguments that were not given.

    given: columns to which some argument gives a role, which they have then. taken: by argument, the columns that came
    from roles.
    """

    def __init__(
        self, roles: Roles, given: Iterable[Hashable | None] = (), among: Iterable[Hashable] | None = None
    ) -> None:
        """Set the roles. among: the columns that are looked at; None for all."""
        self.roles = roles
        self.given = set(given)
        self.taken: dict[str, list[Any]] = {}
        self._among = set(roles) if among is None else set(among)

    def take(self, argument: str, given: Any, *roles: str) -> Any:
        """Return an argument: as it was given, or else the columns that have one of some roles, None for no column."""
        if given is not None:
            return given
        columns = [
            name
            for name, role in self.roles.items()
            if role in roles and name not in self.given and name in self._among
        ]
        if columns:
            self.taken[argument] = columns
        return columns or None

    def quasi_identifiers(self, argument: str, given: Any) -> Any:
        """Return an argument as `take` does, by roles the quasi-identifiers; raises InputError if there is none."""
        if given is None:
            self.roles.known()
        filled = self.take(argument, given, QUASI)
        if filled is None:
            raise InputError(
                f"{self.roles.said}: expected a quasi-identifier among the columns that are looked at, to which "
                "nothing else gives another role; got none. Name others."
            )
        return filled


def classes_by_roles(
    table: Any, quasi_identifiers: Any, sensitive: Any, roles: Any, columns: Any = None
) -> tuple[Any, Any, Any, Roles | None]:
    """Return a table, its quasi-identifiers and its sensitive attributes, by roles if they are not given.

    Columns that are given have the role that they are given. columns: the columns that are looked at, None for all.
    The roles come last, None for none. Raises InputError for roles of another table, and for roles that name no
    quasi-identifier among these columns.
    """
    if roles is None:
        return table, quasi_identifiers, sensitive, None
    table, own = with_roles(table, roles)
    given = {
        name
        for argument, names in (("quasi_identifiers", quasi_identifiers), ("sensitive", sensitive))
        if names is not None
        for name in as_columns(argument, names, table, empty=True)
    }
    filled = FilledArguments(own, given, None if columns is None else as_columns("columns", columns, table))
    quasi_identifiers = filled.quasi_identifiers("quasi_identifiers", quasi_identifiers)
    return table, quasi_identifiers, filled.take("sensitive", sensitive, SENSITIVE), own


def _among(known: Known, pool: Sequence[Hashable]) -> Known:
    """Return the knowledge of an attacker. If any few columns are known and no pool is given, the pool is `pool`."""
    return replace(known, among=pool) if isinstance(known, AnyKnown) and known.among is None else known


def check_roles_output(path: str | os.PathLike[str], overwrite: bool) -> None:
    """Raise OutputError if roles cannot be written to a file."""
    check_output(path, overwrite, endings=(".toml",))


def read_roles(path: str | os.PathLike[str]) -> Roles:
    """Read the roles of columns from a file, as `gpupif.inspect` writes it and people edit it.

    Parameters
    ----------
    path:
        A file of TOML with a table ``[roles]``: for each column its name, in quotes unless it is made of A-Z, a-z, 0-9,
        ``_`` and ``-``, and its role, one of "identifier", "quasi-identifier", "sensitive", "weight", "leave out".

    Returns
    -------
    Roles
        A mapping of columns to roles, with ``.quasi_identifiers``, ``.sensitive``, ``.weight`` (None for none),
        ``.identifiers`` and ``.left_out``, in the order of the file; ``.check(table.columns)`` raises where it does not
        fit a table.

    Raises
    ------
    InputError
        No such file, no TOML, no table of roles, no role that there is, or two weights.

    Examples
    --------
    >>> import gpupif
    >>> table = gpupif.datasets.pif_example()
    >>> gpupif.inspect(table).write("roles.toml")
    >>> roles = gpupif.read_roles("roles.toml")
    >>> roles.quasi_identifiers
    ['gender', 'eye_color']
    >>> gpupif.risk(table, roles=roles).k
    1

    """
    check_path("roles", path, "a file of roles")
    file = Path(path)
    document = read_document("roles", file, "TOML")
    return Roles(_roles_in(document, file), file)


def _roles_in(document: Mapping[str, Any], file: Path) -> Mapping[Hashable, str]:
    roles = document.get("roles")
    if not isinstance(roles, dict):
        raise InputError(f"roles: {file}: expected a table [roles] of columns, got none. gpupif inspect writes one.")
    others = [name for name in document if name != "roles"]
    if others:
        raise InputError(
            f"roles: {file}: expected nothing beside [roles], got {others[0]!r}. Move it there, or remove it."
        )
    for name, role in roles.items():
        if isinstance(role, dict):
            inner = next(iter(role), "...")
            raise InputError(
                f"roles: {file}: column {name!r}: expected a role, got a table. A name with a full stop stands in "
                f"quotes: {toml_text(f'{name}.{inner}')}."
            )
    return roles
