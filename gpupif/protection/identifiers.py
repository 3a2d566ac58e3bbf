"""Columns that name persons: what a plan does with them, and a warning of columns that look like them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ..attack.roles import IDENTIFIER, Roles
from ..errors import IdentifierWarning, InputError, warn
from ..frames.dask_frame import is_dask
from ..frames.open import table_names
from ..inspection.in_memory import facts_in_memory
from ..inspection.looks import FREE_TEXT
from ..inspection.proposal import propose
from ..io.read import open_source
from ..marginals.request import CountRequest
from ..treatment.base import Treatment
from ..treatment.value_maps.drop import Drop
from ..treatment.value_maps.pseudonym import Pseudonym
from ..utils.progress import Reporter
from ..utils.validation import as_columns

# What a plan does with a column that names persons.
DROP, PSEUDONYMISE, KEEP = "drop", "pseudonymise", "keep"
# The arguments that say so, of `gpupif.protect` and its command.
ARGUMENTS = {DROP: "identifiers", PSEUDONYMISE: "pseudonymise", KEEP: "keep"}
# Rows that are looked at, the first ones, and bytes of files that are read at once for them.
LOOKED_AT, BYTES = 10_000, 1 << 22


def as_identifiers(table: Any, identifiers: Any, pseudonymise: Any, keep: Any) -> dict[Hashable, str]:
    """Return what is done with each identifier, by column; arguments as of `gpupif.protect`. Raises InputError."""
    found: dict[Hashable, str] = {}
    for done, given in ((DROP, identifiers), (PSEUDONYMISE, pseudonymise), (KEEP, keep)):
        for name in [] if given is None else as_columns(ARGUMENTS[done], given, table, empty=True):
            if done == KEEP and found.get(name) == PSEUDONYMISE:
                raise InputError(f"keep: column {name!r} is to get pseudonyms too. Name it in one of them only.")
            found[name] = done
    return found


def identifiers_by_roles(
    table: Any, identifiers: Any, roles: Roles, quasi_identifiers: Any, sensitive: Any
) -> list[Hashable]:
    """Return the identifiers that are given, and those of the roles that no argument makes anything else."""
    arguments = {"identifiers": identifiers, "quasi_identifiers": quasi_identifiers, "sensitive": sensitive}
    given = {
        argument: [] if names is None else as_columns(argument, names, table, empty=True)
        for argument, names in arguments.items()
    }
    named = {name for names in given.values() for name in names}
    return [*given["identifiers"], *(name for name in roles.identifiers if name not in named)]


def treatments_of(identifiers: Mapping[Hashable, str]) -> list[Treatment]:
    """Return the treatments of a plan that drop identifiers, and put pseudonyms in the place of their values."""
    dropped = [name for name, done in identifiers.items() if done == DROP]
    pseudonyms = [Pseudonym(name, method="hmac") for name, done in identifiers.items() if done == PSEUDONYMISE]
    return [*([Drop(dropped)] if dropped else []), *pseudonyms]


def names_of(table: Any) -> list[Hashable]:
    """Return the names of the columns of a table of any kind, without those that only label rows."""
    return CountRequest().chosen(*table_names(table))


def warn_of_identifiers(table: Any, names: Sequence[Hashable], coarser: Sequence[Hashable] = ()) -> None:
    """Warn of columns that look like identifiers, or free text, as `gpupif.inspect` tells in the first rows.

    names: of the columns that are looked at. coarser: those among them that are quasi-identifiers, of whose different
    values others warn.
    """
    rows = _first_rows(table, names) if names else None
    if rows is None:
        return
    with Reporter(visible=False) as silent:
        facts = facts_in_memory(rows, CountRequest(names), silent)
    found = {
        name: FREE_TEXT.what if one.look is FREE_TEXT else one.look.what if one.look else "nearly unique values"
        for name, one in propose(facts).items()
        if one.look is FREE_TEXT or (one.role == IDENTIFIER and (one.look is not None or name not in coarser))
    }
    if not found:
        return
    listed = ", ".join(f"{name!r} ({what})" for name, what in found.items())
    several = len(found) > 1
    warn(
        f"table: column{'s' * several} {listed} look{'s' * (not several)} like identifiers, which the plan does not "
        "drop. Name in identifiers= what is to be dropped, in pseudonymise= what is to get pseudonyms by a secret key, "
        "and in keep= what may stay.",
        IdentifierWarning,
    )


def _first_rows(table: Any, names: Sequence[Hashable]) -> Any:
    """Return the first rows of a table of any kind as a table in memory, None if there are none.

    An object with `__arrow_c_stream__` is returned as it is, with all its rows.
    """
    if is_dask(table):
        parts = (table[list(names)].partitions[number] for number in range(table.npartitions))
        return next((rows for part in parts if len(rows := part.head(LOOKED_AT, npartitions=1))), None)
    if isinstance(table, str | os.PathLike):
        source = open_source(table)
        pieces = (piece for _, piece in source.read([str(name) for name in names], LOOKED_AT, BYTES))
        return next((piece for piece in pieces if piece.num_rows), None)
    if hasattr(table, "head"):
        # A DataFrame of pandas, Polars or cuDF.
        return table.head(LOOKED_AT)
    return table.slice(0, LOOKED_AT) if isinstance(table, pa.Table | pa.RecordBatch) else table
