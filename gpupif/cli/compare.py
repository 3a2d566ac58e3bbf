"""The command `gpupif compare`."""

from __future__ import annotations

import typer

from ..errors import UnmetError
from .messages import UNMET, say_unmet, warnings_held
from .options import Given


def compare(given: Given) -> None:
    """Say what a treatment of a table bought in risk and cost in utility, BEFORE and AFTER side by side."""
    before, after = given.check(given.before), given.check(given.after)
    to = given.report_file(given.after)
    columns, known, attributes = given.columns, given.quasi_identifiers, given.sensitive
    if given.plan is not None:
        from ..treatment.record import plan_of

        known, attributes = plan_of(given.plan).attacker(columns, known, attributes)
    from_file = given.file_roles(known, attributes, given.row_id, given.weights, table=given.before, among=columns)
    if given.roles is not None:
        known = from_file.quasi_identifiers("quasi-identifiers", known)
        attributes = from_file.sensitive(attributes)
        given.weights = from_file.weights(given.weights)
        if columns is None:
            columns = from_file.scored(known, attributes)
    with warnings_held(), given.configured():
        from ..comparison.compare import compare as find

        attack = {"columns": columns, "quasi_identifiers": known, "sensitive": attributes}
        found = find(before, **given.arguments(find, after=after, **attack))
        if found.unmet is not None:
            say_unmet(UnmetError(found.unmet).about(f"plan: {given.plan}", "plan: "))
    given.show_result(found, from_file, to=to, before=given.before, after=given.after)
    if found.unmet is not None:
        raise typer.Exit(UNMET)
