"""Texts of options as the values that Python's functions take, and the file of roles that fills in for options."""

from __future__ import annotations

import csv
import io
import math
import re
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


def as_game(benefit: float | None, given: Any) -> Any:
    """Return the amounts of the four options, of which those that are not given are the defaults; None for none."""
    from ..disclosure.attack_game import Game

    amounts = {name: given.get(name) for name in ("publisher_loss", "adversary_gain", "adversary_cost")}
    stakes = {name: amount for name, amount in (amounts | {"publisher_benefit": benefit}).items() if amount is not None}
    return Game(**stakes) if stakes else None


def as_interactions(text: str | None) -> Any:
    """Return a word as it is, or the interactions that A:B,A:C names."""
    if text is None or ":" not in text:
        return text
    return [pair.split(":") for pair in as_names(text, "interactions") or []]


def as_dominance(text: str | None) -> tuple[float, float] | None:
    """Return the two numbers of a text N,K. Raises InputError."""
    if text is None:
        return None
    try:
        n, k = map(float, text.split(","))
    except ValueError:
        raise InputError(
            f"dominance: expected N,K, such as 2,85; got {brief(text)}{decimal_comma_hint(text)}."
        ) from None
    return n, k


def as_bounds(text: str) -> tuple[str, tuple[float | None, float | None]]:
    """Return the column and the bounds in a text. Raises InputError."""
    name, _, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    try:
        pair = float(low) if low else None, float(high) if high else None
    except ValueError:
        colon = ""
    if not name or not colon:
        raise InputError(f"bound: expected COLUMN=LOW:HIGH, such as salary=0: or age=0:120; got {brief(text)}.")
    return name, pair


def as_linkage(text: str) -> str | int | None:
    """Return a number of rows, None for "none", or another word as it is."""
    return None if text == "none" else int(text) if re.fullmatch(r"\d{1,20}", text) else text


def read_priors(file: Path | None) -> Any:
    """Return the priors of a file. Raises InputError."""
    from ..attack.prior_files import as_priors, check_ending

    if file is None:
        return None
    check_ending("priors", file)
    return as_priors(file)


def read_accuracies(file: Path | None, texts: Iterable[str]) -> dict[Hashable, float]:
    """Return accuracies by column, from a file and from texts COLUMN=NUMBER. Raises InputError."""
    from ..attack.prior_files import as_accuracies, check_ending

    for text in texts:
        if "=" in text.rpartition("=")[0] and "," in text:
            raise InputError(f"--accuracy: expected one COLUMN=NUMBER, got {text!r}. Give the option once per column.")
    if file is not None:
        check_ending("accuracies", file)
    accuracies: dict[Hashable, float] = dict(as_accuracies(file) or {})
    for column, accuracy in as_numbers("--accuracy", texts, "age=0.9").items():
        if column in accuracies:
            raise InputError(f"--accuracy: column {column!r} is named twice.")
        accuracies[column] = accuracy
    return accuracies


# The kinds of options: the type that Typer makes of a text, and what that becomes, from it, the name of the parameter,
# and what else was given (`options.Given`). None: it stays as it is.
KINDS: dict[str, tuple[Any, Callable[[Any, str, Any], Any] | None]] = {
    "text": (str, None),
    "texts": (list[str], None),
    "settings": (list[str], lambda texts, *_: texts or ()),
    "int": (int, None),
    "float": (float, None),
    "path": (Path, None),
    "flag": (bool, None),
    "off": (bool, lambda flag, *_: not flag),
    "names": (str, lambda text, name, _: as_names(text, name)),
    "seconds": (float, lambda seconds, *_: None if seconds == math.inf else seconds),
    "distances": (list[str], lambda texts, *_: as_distances(texts)),
    "importance": (list[str], lambda texts, *_: as_numbers("--importance", texts or (), "age=2") or None),
    "attackers": (list[str], lambda texts, _, given: as_attackers(texts, given.attacker_any, int)),
    "population": (Path, lambda path, _, given: as_population(path, given.population_lacks)),
    "game": (float, lambda benefit, _, given: as_game(benefit, given)),
    "priors": (Path, lambda path, *_: read_priors(path)),
    "accuracies": (Path, lambda path, _, given: read_accuracies(path, given.accuracy or ())),
    "interactions": (str, lambda text, *_: as_interactions(text)),
    "linkage": (str, lambda text, *_: as_linkage(text)),
    "dominance": (str, lambda text, *_: as_dominance(text)),
    "bounds": (list[str], lambda texts, *_: dict(map(as_bounds, texts or ()))),
}
