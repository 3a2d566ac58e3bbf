"""What is asked of `gpupif.risk`, and what it answers."""

from __future__ import annotations

from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError
from tests.helpers.configured import configured
from tests.helpers.tables import tables


@st.composite
def questions(draw):
    """A table, quasi-identifiers, sensitive attributes of several values, distances of some."""
    table = draw(tables().filter(lambda table: len(table) > 1))
    names = list(table)
    known = [name for name in names if draw(st.booleans())] or names[:1]
    sensitive = [name for name in names if name not in known and len(set(table[name])) > 1]
    distances = {name: "nominal" for name in sensitive if draw(st.booleans())}
    for name in sensitive:
        if name not in distances and draw(st.booleans()):
            values = list(dict.fromkeys(table[name]))
            if draw(st.booleans()):
                distances[name] = draw(st.permutations(values))
            else:
                distances[name] = {
                    value: [f"{name} {place // 2}", f"{place // 4}"] for place, value in enumerate(values)
                }
    return table, known, sensitive, distances


def check_worst_classes(found, wanted):
    """The worst classes are those of the oracle, `worst_classes_of`, each with the figure of the whole table."""
    came = {}
    for own in found.worst_classes:
        values = {
            name: None if value is None or value != value else value for name, value in own.quasi_identifiers.items()
        }
        came[own.measure, own.attribute] = (values, own.rows, own.classes)
        figure = found.k if own.measure == "k" else found.attributes.loc[own.attribute, own.measure]
        assert own.value == figure
    assert came == wanted


def what_is_found(found):
    """All of it but the time that it took."""
    return {**found.to_dict(), "seconds": None}


def outcome(*asked, **options):
    """What `gpupif.risk` finds, or what it says of bad input; options: of `gpupif.config`, too."""
    try:
        return what_is_found(configured(gpupif.risk, *asked, **options))
    except InputError as error:
        return str(error)
