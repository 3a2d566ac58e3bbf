"""Columns that name persons: what a plan does with them, and a warning of columns that look like them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..attack.roles import Roles
from ..errors import IdentifierWarning, InputError, warn
from ..frames.dask_frame import is_dask
from ..frames.open import open_frame, with_labels
from ..inspection.column_facts import ColumnFacts
from ..inspection.proposal import may_name_persons, propose
from ..inspection.table_facts import facts_in_memory
from ..io.base import Source
from ..io.read import open_source
from ..marginals.request import CountRequest
from ..treatment.dropped_columns import Drop
from ..treatment.treatment import Treatment
from ..treatment.value_maps.pseudonym import Pseudonym
from ..utils.progress import Reporter
from ..utils.validation import as_columns

# What a plan does with a column that names persons.
DROP, PSEUDONYMISE, KEEP = "drop", "pseudonymise", "keep"
# The arguments that say so, of `gpupif.protect` and its command.
ARGUMENTS = {DROP: "identifiers", PSEUDONYMISE: "pseudonymise", KEEP: "keep"}
# LOOKED_AT: rows whose values are looked at. SEARCHED: first rows in which the first value of a column is looked for.
# BYTES: of a file that are read at once.
LOOKED_AT, SEARCHED, BYTES = 10_000, 1_000_000, 1 << 22


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


def identifier_treatments(identifiers: Mapping[Hashable, str]) -> list[Treatment]:
    """Return the treatments of a plan that drop identifiers, and put pseudonyms in the place of their values."""
    dropped = [name for name, done in identifiers.items() if done == DROP]
    pseudonyms = [Pseudonym(name, method="hmac") for name, done in identifiers.items() if done == PSEUDONYMISE]
    return [*([Drop(dropped)] if dropped else []), *pseudonyms]


def warn_of_identifiers(
    table: Any, names: Sequence[Hashable], labels: Sequence[Hashable] = (), coarser: Sequence[Hashable] = ()
) -> None:
    """Warn of columns that look like identifiers, or free text; arguments as of `like_identifiers`."""
    look_of = like_identifiers(table, names, labels, coarser)
    if not look_of:
        return
    listed = ", ".join(f"{name!r} ({what})" for name, what in look_of.items())
    several = len(look_of) > 1
    warn(
        f"table: column{'s' * several} {listed} look{'s' * (not several)} like identifiers, which the plan does not "
        "drop. Name in identifiers= what is to be dropped, in pseudonymise= what is to get pseudonyms by a secret key, "
        "and in keep= what may stay.",
        IdentifierWarning,
    )


def like_identifiers(
    table: Any, names: Sequence[Hashable], labels: Sequence[Hashable] = (), coarser: Sequence[Hashable] = ()
) -> dict[Hashable, str]:
    """Return the columns that look like identifiers, or free text, in the first rows, and what each looks like.

    names: the columns that are looked at. labels: columns among them that only label rows. coarser: columns among them
    that are quasi-identifiers; another warning is about how many values these have.
    """
    facts = _first_facts(table, names) if names else {}
    return {
        name: proposal.meaning.label if proposal.meaning else "nearly unique values"
        for name, proposal in propose(facts).items()
        if may_name_persons(facts[name], proposal, by_number=name not in labels, by_look_only=name in coarser)
    }


def _first_facts(table: Any, names: Sequence[Hashable]) -> dict[Hashable, ColumnFacts]:
    """Return the facts of columns in the first rows of a table of any kind; no facts if it has no rows.

    A column without a value in the first `LOOKED_AT` rows is looked at in `LOOKED_AT` rows from its first value on, if
    that value is among the first `SEARCHED` rows.
    """
    table = _to_be_read(table)
    rows = _joined(_first(_chunks(table, names, LOOKED_AT), LOOKED_AT))
    if rows is None:
        return {}
    facts = _facts(rows, names)
    empty = [name for name in names if _first_value(rows, name) is None]
    if len(rows) == LOOKED_AT and empty:
        others = _first(_chunks(table, empty, SEARCHED), SEARCHED)
        for name, further in _from_first_values(others, empty).items():
            facts |= _facts(further, [name])
    return facts


def _facts(rows: Any, names: Sequence[Hashable]) -> dict[Hashable, ColumnFacts]:
    with Reporter(visible=False) as silent:
        return facts_in_memory(rows, CountRequest(names), silent)


def _from_first_values(chunks: Iterable[Any], names: Sequence[Hashable]) -> dict[Hashable, Any]:
    """Return by column `LOOKED_AT` rows of it, or fewer, from its first value on; none without values."""
    gathered: dict[Hashable, list[Any]] = {}
    left = dict.fromkeys(names, LOOKED_AT)
    for chunk in chunks:
        for name in list(left):
            start = 0 if name in gathered else _first_value(chunk, name)
            if start is None:
                continue
            some = _rows(chunk, start, left[name])
            gathered.setdefault(name, []).append(some[[name]] if _is_pandas(some) else some.select([name]))
            left[name] -= len(some)
            if not left[name]:
                del left[name]
        if not left:
            break
    return {name: _joined(parts) for name, parts in gathered.items()}


def _first(chunks: Iterable[Any], rows: int) -> Iterator[Any]:
    """Yield chunks until they have so many rows together."""
    for chunk in chunks:
        some = _rows(chunk, 0, rows)
        yield some
        rows -= len(some)
        if not rows:
            return


def _joined(chunks: Iterable[Any]) -> Any:
    """Return chunks one below the other, None where they have no rows."""
    some = [chunk for chunk in chunks if len(chunk)]
    if len(some) < 2:
        return some[0] if some else None
    return pd.concat(some, ignore_index=True) if _is_pandas(some[0]) else pa.concat_tables(some)


def _first_value(chunk: Any, name: Hashable) -> int | None:
    """Return the row of a chunk that first has a value in a column; None where none has."""
    column = chunk[name]
    there = (column.notna() if _is_pandas(chunk) else pc.is_valid(column)).to_numpy()
    return int(there.argmax()) if there.any() else None


def _rows(chunk: Any, start: int, rows: int) -> Any:
    return chunk.iloc[start : start + rows] if _is_pandas(chunk) else chunk.slice(start, rows)


def _is_pandas(chunk: Any) -> bool:
    return isinstance(chunk, pd.DataFrame)


def _to_be_read(table: Any) -> Any:
    """Return a table as `_chunks` reads it, more than once: a path opened, a stream as the table of all its rows."""
    if isinstance(table, str | os.PathLike):
        return open_source(table)
    as_it_is = is_dask(table) or hasattr(table, "head") or isinstance(table, pa.Table)
    return table if as_it_is else open_frame(table).arrow()


def _chunks(table: Any, names: Sequence[Hashable], most: int) -> Iterator[Any]:
    """Yield chunks of some columns of a table, in pandas or Arrow, from the first row on.

    most: of the rows of a partition of a Dask frame, those that are yielded.
    """
    if isinstance(table, Source):
        yield from (chunk for _, chunk in table.read([str(name) for name in names], LOOKED_AT, BYTES))
    elif is_dask(table):
        yield from _of_partitions(with_labels(table, names)[list(names)], most)
    else:
        for start in range(0, len(table), LOOKED_AT):
            if isinstance(table, pa.Table):
                yield table.slice(start, LOOKED_AT).select(names)
            elif hasattr(table, "iloc"):
                # Of pandas, or of cuDF, whose rows come to the host.
                chunk = with_labels(table.iloc[start : start + LOOKED_AT], names)[list(names)]
                yield chunk if _is_pandas(chunk) else chunk.to_pandas()
            else:
                # Of Polars.
                yield table.slice(start, LOOKED_AT)[list(names)].to_arrow()


def _of_partitions(table: Any, most: int) -> Iterator[pd.DataFrame]:
    """Yield the first rows, `most` at most, of the partitions of a Dask frame: of one, of two more, of four more."""
    from dask.utils import M

    heads = table.map_partitions(M.head, most, meta=table._meta)
    start, several = 0, 1
    while start < table.npartitions:
        chunk = heads.partitions[start : start + several].compute()
        yield chunk if _is_pandas(chunk) else chunk.to_pandas()
        start, several = start + several, 2 * several
