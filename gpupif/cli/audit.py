"""The command `gpupif audit`."""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from .options import Given


def audit(given: Given) -> None:
    """Say what the answers to QUERIES give away: single values, small groups, small sets.

    Ends with exit code 3 if there is a finding; with --next, if that adds one.
    """
    if given.table is not None:
        given.check()
    given.check_goes_with("bounds", "width")
    to = given.report_file(given.queries)

    from ..release.audit import audit as find_audit
    from ..release.query_file import read_queries
    from ..release.query_sets import query_request

    asked = read_queries(given.queries)
    more = None if given.next is None else read_queries(given.next, "next")
    find = partial(find_audit, asked, **given.arguments(find_audit, table=None, next=more, width=given.width or 0.0))
    with given.configured():
        if given.table is None:
            found = find()
        else:
            found = given.find(partial(_of_table, find), query_request([*asked, *(more or ())]).pick)
    given.show_result(found, to=to, queries=given.queries, input=given.table)
    if found.disclosed if found.allowed is None else not found.allowed:
        raise typer.Exit(3)


def _of_table(find: Any, table: Any) -> Any:
    return find(table=table)
