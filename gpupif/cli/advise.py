"""The command `gpupif advise`."""

from __future__ import annotations

import shlex
from functools import partial

from .option_values import as_list_text
from .options import Given


def advise(given: Given) -> None:
    """Rank what dropping or coarsening each column of TABLE buys: less risk per bit of information given up."""
    given.check()

    from ..disclosure.risk_figures import RiskArguments
    from ..protection.advise import advise as find_advice
    from ..protection.advise import pick_needed

    known, attributes = given.quasi_identifiers, given.sensitive
    beside = RiskArguments(weights=given.weights, household=given.household).columns
    from_file = given.file_roles(known, attributes, *beside, among=given.columns)
    if given.roles is not None:
        given.weights = from_file.weights(given.weights)
        beside = RiskArguments(weights=given.weights, household=given.household).columns
        given.quasi_identifiers = known = from_file.quasi_identifiers("quasi-identifiers", known)
        given.sensitive = attributes = from_file.sensitive(attributes)
        # The roles say which of these columns are known.
        given.columns = None
    with given.configured():
        pick = partial(pick_needed, given.columns, known, attributes, given.criterion, beside, given.attackers)
        found = given.find(find_advice, pick)
    texts = given.texts
    is_named = texts["quasi_identifiers"] is not None or texts["columns"] is not None
    named = as_list_text(map(str, found.columns)) if is_named else None
    own = {"--roles": given.roles, "--quasi-identifiers": named, "--sensitive": texts["sensitive"]}
    own |= {"--hierarchies": given.hierarchies, "--sep": given.sep}
    words = [word for name, value in own.items() if value is not None for word in (name, str(value))]
    protect = ["gpupif", "protect", str(given.table), *words, "--require", "k>=5", "--suppress", "0.05"]
    commands = [shlex.join([*protect, "-o", "plan.toml"])]
    given.show_result(found, from_file, commands, input=given.table)
    given.say("")
    given.say_commands("To find all changes that a limit needs, together:", commands)
