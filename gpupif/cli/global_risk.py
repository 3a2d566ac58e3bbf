"""The command `gpupif global-risk`."""

from __future__ import annotations

from functools import partial

from ..errors import InputError
from .options import Given


def global_risk(given: Given) -> None:
    """Estimate how many unique rows of TABLE are unique in its population, by a log-linear model."""
    given.check()
    known = given.quasi_identifiers
    if known is None and given.roles is None:
        raise InputError("quasi_identifiers: expected columns, got none. Name them, or give their --roles.")
    from_file = given.file_roles(known, given.weights)
    given.quasi_identifiers = known = from_file.quasi_identifiers("quasi-identifiers", known) or []
    if given.sampling_fraction is None:
        given.weights = from_file.weights(given.weights)
    with given.configured():
        from ..disclosure.global_risk import global_risk as find_global_risk
        from ..disclosure.request import pick_needed

        found = given.find(find_global_risk, partial(pick_needed, known, [], weights=given.weights))
    given.show_result(found, from_file, input=given.table)
