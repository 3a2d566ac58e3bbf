"""The command `gpupif toxic`."""

from __future__ import annotations

from ..errors import InputError
from .options import Given


def toxic(given: Given) -> None:
    """Rank pairs of columns of TABLE by what they tell together, and list the values far rarer than their parts."""
    _check_together(given)
    given.check()

    from ..marginals.quasi_identifiers import quasi_identifiers
    from ..marginals.request import CountRequest
    from ..marginals.toxic_pairs import toxic_pairs

    of_rows = given.alpha is not None
    from_file = given.file_roles(given.columns, given.weights)
    # The ratios count rows: the role of weights only says that the column is no quasi-identifier.
    given.weights = None if of_rows else from_file.weights(given.weights)
    given.columns = from_file.quasi_identifiers("columns", given.columns)
    given.by, given.size = given.by or "distinction", 2 if given.size is None else given.size
    pick = CountRequest(given.columns, given.weights, given.missing).pick
    with given.configured():
        found = given.find(quasi_identifiers if of_rows else toxic_pairs, pick)
    given.show_result(found, from_file, input=given.table)


def _check_together(given: Given) -> None:
    """Raise InputError for options that do not go together."""
    given.check_goes_with("alpha", "by", "max_size")
    if given.alpha is not None and given.size is not None:
        raise InputError("--size: goes without --alpha, with which --max-size says how large sets are. Leave it out.")
    if given.alpha is not None and given.weights is not None:
        from ..utils.refused_combinations import WEIGHTS_RATIOS

        raise WEIGHTS_RATIOS.refusal()
