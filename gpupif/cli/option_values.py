"""Texts of options as the values that Python's functions take, and the file of roles that fills in for options."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..utils.validation import LENGTH, brief
from .messages import decimal_comma_hint

if TYPE_CHECKING:
    from ..attack.arguments import Knowledge
    from ..attack.population import Population

# How many columns of a role are named in a line.
NAMED = 6


class FileRoles:
    """The columns that a file of roles gives to options that are not given.

    file: None for no file. taken: by option, the columns that came from the file.
    """

    def __init__(
        self,
        file: Path | None,
        table: Path,
        sep: str | None,
        given: Iterable[str | None] = (),
        among: Iterable[str] | None = None,
    ) -> None:
        """Read the file. given, among: see `FilledArguments`.

        Raises what `read_roles` does, and InputError for roles of another table.
        """
        self.file = file
        self.taken: dict[str, list[str]] = {}
        if file is None:
            return
        from ..attack.roles import FilledArguments, read_roles
        from ..io.paths import find_input
        from ..io.read import open_source

        source = open_source(find_input(table, sep))
        roles = read_roles(file).check(source.names, source.index_names)
        self._filled = FilledArguments(roles, given, among)
        self.taken = self._filled.taken

    def take(self, option: str, given: list[str] | None, *roles: str) -> list[str] | None:
        """Return the columns of an option, see `FilledArguments.take`."""
        found: list[str] | None = given if self.file is None else self._filled.take(option, given, *roles)
        return found

    def quasi_identifiers(self, option: str, given: list[str] | None) -> list[str] | None:
        """Return the columns of an option, see `FilledArguments.quasi_identifiers`."""
        found: list[str] | None = given if self.file is None else self._filled.quasi_identifiers(option, given)
        return found

    def sensitive(self, given: list[str] | None) -> list[str] | None:
        """Return the sensitive attributes."""
        return self.take("sensitive", given, "sensitive")

    def identifiers(self, others: Iterable[str] = (), measured_by: Iterable[str | None] = ()) -> list[str]:
        """Return the identifiers of the file, without columns to which other options give a role.

        measured_by: columns of options such as --household; they stay identifiers.
        """
        if self.file is not None:
            self._filled.given.difference_update(measured_by)
            self._filled.given.update(others)
        return self.take("identifiers", None, "identifier") or []

    def weights(self, given: str | None) -> str | None:
        """Return the column of sampling weights."""
        found = self.take("weights", None if given is None else [given], "weight")
        return None if found is None else found[0]

    def scored(self, *others: list[str] | None) -> list[str]:
        """Return the columns of options that the file has completed, as those of --columns."""
        columns = [name for names in others for name in names or ()]
        self.taken["columns"] = columns
        return columns

    def facts(self) -> dict[str, Any]:
        """Return what came from the file, for JSON; nothing if there is no file."""
        return {} if self.file is None else {"roles": {"file": str(self.file), **self.taken}}

    @property
    def described(self) -> str:
        """A sentence about the columns that came from the file; of many, the first and their number."""
        said = []
        for option, columns in self.taken.items():
            more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
            said.append(f"--{option} {shlex.quote(as_list_text(columns[:NAMED]))}{more}")
        return f"From {self.file}: {'; '.join(said) or 'nothing, for options say it all'}"


def as_names(text: str | None, argument: str = "columns") -> list[str] | None:
    """Return names separated by commas; a name with a comma in it is in double quotes. argument: its name in errors."""
    if text is None:
        return None
    lines = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    if len(lines) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a line break in {text!r}.")
    names = [name.strip() for name in lines[0]] if lines else []
    if "" in names and len(names) > 1:
        raise InputError(f"{argument}: expected names separated by commas, got a comma too many in {text!r}.")
    return names


def as_list_text(names: Iterable[str]) -> str:
    """Return names as `as_names` takes them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(names)
    return text.getvalue()


def compare_command(table: Path, treated: Path, plan: Path, roles: Path | None) -> str:
    """Return the command that compares a table with the treated table. roles: the file of roles, None for none."""
    options = [] if roles is None else ["--roles", str(roles)]
    return shlex.join(["gpupif", "compare", str(table), str(treated), "--plan", str(plan), *options])


def check_goes_with(needed: str, given: Any, **others: Any) -> None:
    """Raise InputError for options that do nothing without another option.

    needed: the other option, and given: its value. others: values by option, with underscores.
    """
    for name, value in others.items():
        if given is None and value is not None and value is not False:
            raise InputError(f"--{name.replace('_', '-')}: goes with {needed}. Add that, or leave it out.")


def as_population(table: Path | None, lacks: str) -> Population | None:
    """Return the population as `gpupif.score` takes it; raises InputError for `lacks` without a table."""
    from ..attack.population import Population

    population = Population(table, lacks)
    check_goes_with("--population", table, population_lacks=lacks != "error")
    return None if table is None else population


def by_column(option: str, texts: Iterable[str], expected: str) -> Iterator[tuple[str, str]]:
    """Return column and value of each text COLUMN=VALUE. Raises InputError for other texts, and a column named twice.

    option: its name in errors. expected: what errors expect.
    """
    seen = set()
    for text in texts:
        column, equals, value = text.rpartition("=")
        if not equals or not column:
            raise InputError(f"{option}: expected {expected}; got {text!r}.")
        if column in seen:
            raise InputError(f"{option}: column {column!r} is named twice.")
        seen.add(column)
        yield column, value


def as_numbers(option: str, texts: Iterable[str], example: str) -> dict[Hashable, float]:
    """Return the number of each text COLUMN=NUMBER by column. Raises InputError. option: its name in errors."""
    numbers: dict[Hashable, float] = {}
    expected = f"COLUMN=NUMBER, such as {example}"
    for column, value in by_column(option, texts, expected):
        try:
            numbers[column] = float(value)
        except ValueError:
            hint = decimal_comma_hint(value)
            raise InputError(f"{option}: expected {expected}; got {f'{column}={value}'!r}{hint}.") from None
    return numbers


def as_distances(texts: Iterable[str] | None) -> dict[Hashable, Any] | None:
    """Return what `distances=` takes from texts COLUMN=WHAT; values in a file are known by their texts."""
    from ..attack.hierarchy_files import names_file, read_distance

    distances: dict[Hashable, Any] = {}
    expected = "COLUMN=ordered, COLUMN=nominal, COLUMN=FILE.csv or COLUMN=FILE.json"
    for column, what in by_column("--distance", texts or (), expected):
        if what not in ("ordered", "nominal") and not names_file(what):
            raise InputError(
                f"--distance: column {column!r}: expected ordered, nominal, a .csv file with a hierarchy (lines of "
                f"value;level1;...;*), or a .json file with one or with a list of its values in order; got {what!r}."
            )
        distances[column] = read_distance("--distance", what) if names_file(what) else what
    return distances or None


def as_attackers(
    by_columns: Iterable[str] | None, by_number: Iterable[str] | None, any_known: Callable[[int], Knowledge]
) -> dict[str, Knowledge] | None:
    """Return attackers by name, from texts NAME=COLUMN,COLUMN and NAME=NUMBER; None for no attacker.

    any_known: returns what an attacker knows who knows any so many columns. Raises InputError.
    """
    attackers: dict[str, Knowledge] = {}
    for option, texts, expected in (
        ("--attacker", by_columns, "NAME=COLUMN,COLUMN, such as neighbour=age,sex"),
        ("--attacker-any", by_number, "NAME=NUMBER, such as anyone=2"),
    ):
        for text in texts or ():
            name, equals, known = text.partition("=")
            name, counted = name.strip(), option == "--attacker-any"
            # Python refuses to read a number of thousands of digits.
            if not equals or not name or (counted and not (known.strip().isdecimal() and len(known) < LENGTH)):
                raise InputError(f"{option}: expected {expected}; got {brief(text)}.")
            if name in attackers:
                raise InputError(f"{option}: {name!r} is named twice. Give each another name.")
            attackers[name] = any_known(int(known)) if counted else as_names(known) or []
    return attackers or None
