"""The command `gpupif risk`."""

from __future__ import annotations

from functools import partial

from ..errors import InputError
from .options import Given, compiling_ahead


def risk(given: Given) -> None:
    """Say how far TABLE discloses identities and sensitive attributes: k, l, t and more, at once."""
    given.check()
    to = given.report_file(given.table)
    known, attributes = given.quasi_identifiers, given.sensitive
    if known is None and given.roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = given.file_roles(known, attributes, given.weights, given.household)
    given.quasi_identifiers = known = from_file.quasi_identifiers("quasi-identifiers", known) or []
    given.sensitive = attributes = from_file.sensitive(attributes)
    given.weights = from_file.weights(given.weights)
    on_blocks = not given.place.named and given.missing != "wildcard"
    with (
        given.configured(),
        compiling_ahead("risk", _cells(given.models if attributes else ["k"]) if on_blocks else (), given),
    ):
        from ..disclosure.request import pick_needed
        from ..disclosure.risk import risk as find_risk

        for column in given.distances or ():
            if column not in (attributes or ()):
                raise InputError(f"--distance: column {column!r} is not among the sensitive attributes (--sensitive).")
        pick = partial(pick_needed, known, attributes or [], weights=given.weights, household=given.household)
        found = given.find(find_risk, pick, distance=given.distances)
    given.show_result(found, from_file, to=to, input=given.table)


def _cells(models: list[str] | None) -> list[str]:
    """Return the measures of cells whose extremes these disclosure measures are, for any l."""
    from ..disclosure.models import resolve_models

    return [model.measure(2) for model in resolve_models(models)]
