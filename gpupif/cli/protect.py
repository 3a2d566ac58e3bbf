"""The command `gpupif protect`: each parameter of its function is an option, as Typer has it, so there are many."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from . import options
from .messages import decimal_comma_hint
from .options import FileRoles, as_distances, as_names, check_table, configured, say, show

if TYPE_CHECKING:
    from ..attack.arguments import Knowledge


def protect(
    table: options.Table,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'k>=5'|'pif95<=3'|...",
            help="A limit on risk, such as 'distinct_l(disease)>=3', 'max csf<=0.9', 'known=3: k>=3'; may be repeated.",
        ),
    ] = None,
    hierarchies: options.Hierarchies = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="plan.toml", help="Where the plan goes, for gpupif treat.")
    ] = None,
    quasi_identifiers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns that are made coarser. Default: all that are not sensitive."),
    ] = None,
    sensitive: Annotated[
        str | None, typer.Option(metavar="C,D", help="Columns that stay as they are: of distinct_l, t and others.")
    ] = None,
    identifiers: Annotated[
        str | None, typer.Option(metavar="E,F", help="Columns that name persons: the plan drops them.")
    ] = None,
    pseudonymise: Annotated[
        str | None,
        typer.Option(
            metavar="E", help="Columns that get pseudonyms in place of being dropped; treat needs --key-file."
        ),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="F", help="Columns that stay although they name persons, or look like it.")
    ] = None,
    roles: options.RolesFile = None,
    suppress: Annotated[
        float, typer.Option(metavar="0.04", help="Share of the rows that may be suppressed to reach a criterion on k.")
    ] = 0.0,
    cells: Annotated[
        bool,
        typer.Option(
            "--cells",
            help="With --suppress: single cells, as few as it takes; whole rows where they are in too many rows.",
        ),
    ] = False,
    weight: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=2", help="What a bit of a column is worth. Default: 1. May be repeated."),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="The best plan found so far is taken then; inf for no limit.")
    ] = 600.0,
    attacker: Annotated[
        list[str] | None,
        options.attack_option(
            metavar="NAME=A,B", help="An attacker, and the columns it knows, for criteria 'NAME: ...'; may be repeated."
        ),
    ] = None,
    attacker_any: Annotated[
        list[str] | None, options.attack_option(metavar="NAME=R", help="Another of them: any R of the columns.")
    ] = None,
    distance: options.Distances = None,
    device: options.Device = None,
    gpu_grouping: options.GpuGrouping = None,
    sep: options.Sep = None,
    memory_limit: options.StreamMemory = None,
    temp: options.StreamTemp = None,
    scheduler: options.Scheduler = None,
    workers: options.WorkerProcesses = None,
    overwrite: options.Overwrite = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find the plan that makes TABLE meet criteria at the least loss: the columns made as coarse as they have to be."""
    from ..dask.client import Place

    place = Place(scheduler, workers)
    check_table(table, sep, place)
    if not require:
        raise InputError("--require: expected at least one limit, such as --require 'k>=5'; got none.")
    if output is not None:
        from ..treatment.plan import check_plan_output

        check_plan_output(output, overwrite)

    known, attributes = as_names(quasi_identifiers, "quasi_identifiers"), as_names(sensitive, "sensitive")
    dropped, pseudonyms, kept = (
        as_names(text, argument) or []
        for argument, text in (("identifiers", identifiers), ("pseudonymise", pseudonymise), ("keep", keep))
    )
    from_file = FileRoles(roles, table, sep, [*(known or ()), *(attributes or ())])
    from_file.warn_of_weights()
    known = from_file.known("quasi-identifiers", known)
    attributes = from_file.take("sensitive", attributes, lambda given: given.sensitive)
    # Those that options name are so too.
    otherwise = {*dropped, *pseudonyms, *kept}
    dropped += (
        from_file.take("identifiers", None, lambda given: [one for one in given.identifiers if one not in otherwise])
        or []
    )
    with configured(quiet, device, gpu_grouping, memory_limit, temp):
        from ..frames.open import table_names
        from ..io.paths import find_input
        from ..protection.identifiers import warn_of_identifiers
        from ..protection.protect import protect as find_plan
        from ..protection.request import columns_read
        from .cluster import find_anywhere

        attackers = _attackers(attacker or (), attacker_any or ())
        find = partial(
            find_plan,
            require=require,
            hierarchies=hierarchies,
            quasi_identifiers=known,
            sensitive=attributes,
            identifiers=dropped,
            pseudonymise=pseudonyms,
            keep=kept,
            attackers=attackers,
            distances=as_distances(distance or ()) or None,
            importance=_weights(weight or ()),
            suppress=suppress,
            cells=cells,
            time_limit=None if time_limit == float("inf") else time_limit,
        )
        named: dict[Hashable, str] = {
            **dict.fromkeys(dropped, "identifiers"),
            **dict.fromkeys(pseudonyms, "pseudonymise"),
            **dict.fromkeys(kept, "keep"),
        }
        if place.named and known is not None:
            # Workers read no other columns than these.
            files = find_input(table, sep)
            named_too = {*known, *(attributes or ()), *named}
            names, labels = table_names(files)
            warn_of_identifiers(files, [name for name in (*names, *labels) if name not in named_too], labels)
        pick = partial(columns_read, require, known, attributes or (), attackers, named)
        found = find_anywhere(find, table, pick, place, sep, memory_limit, temp)
        if output is not None:
            found.plan.save(output, overwrite=overwrite)
    written = {} if output is None else {"output": str(output)}
    show(lambda: {"input": str(table), **written, **from_file.facts(), **found.to_dict()}, found.print, as_json, quiet)
    from_file.say(as_json, quiet)
    if output is not None and not (as_json or quiet):
        typer.echo()
        key = " --key-file ..." if pseudonyms else ""
        say(f"Plan written to {output}: gpupif treat {table} --plan {output}{key} -o ...")


def _weights(texts: Iterable[str]) -> dict[Hashable, float] | None:
    """COLUMN=NUMBER, each."""
    weights: dict[Hashable, float] = {}
    for text in texts:
        column, equals, number = text.rpartition("=")
        try:
            value = float(number if equals and column else "")
        except ValueError:
            hint = decimal_comma_hint(number)
            raise InputError(f"--weight: expected COLUMN=NUMBER, such as age=2; got {text!r}{hint}.") from None
        if column in weights:
            raise InputError(f"--weight: column {column!r} is named twice.")
        weights[column] = value
    return weights or None


def _attackers(texts: Iterable[str], by_number: Iterable[str]) -> dict[str, Knowledge] | None:
    """Attackers by name: NAME=COLUMN,COLUMN, and NAME=NUMBER."""
    attackers: dict[str, Any] = {}
    for option, several, expected in (
        ("attacker", texts, "NAME=COLUMN,COLUMN, such as neighbour=age,sex"),
        ("attacker-any", by_number, "NAME=NUMBER, such as anyone=2"),
    ):
        for text in several:
            name, equals, said = text.partition("=")
            if not equals or not name.strip() or (option == "attacker-any" and not said.strip().isdecimal()):
                raise InputError(f"--{option}: expected {expected}; got {text!r}.")
            if name.strip() in attackers:
                raise InputError(f"--{option}: {name.strip()!r} is named twice. Give each another name.")
            attackers[name.strip()] = as_names(said) if option == "attacker" else int(said)
    return attackers or None
