"""Tables treated in memory, one treatment after the other, as lists of Python's values."""

from __future__ import annotations

import hmac

import pandas as pd

from gpupif.frames.open import open_frame
from gpupif.treatment.memory_table import MemoryTable
from gpupif.treatment.plan_fields import with_types
from gpupif.treatment.treatment import Tools


class StandInKey:
    """A key of which only `secret` is asked."""

    def __init__(self, secret=bytes(range(32))):
        self._secret = secret

    def secret(self, purpose):
        return hmac.digest(self._secret, purpose.encode(), "sha256")


KEY = StandInKey()


def treat_in_memory(table, *treatments, hierarchies=None, key=None):
    """The table as treated by one treatment after the other. table: columns by name, or any frame."""
    working = MemoryTable(open_frame(pd.DataFrame(table) if isinstance(table, dict) else table))
    for number, treatment in enumerate(treatments):
        checked = with_types(treatment.do, treatment)
        checked.check()
        working.apply(checked.prepare(working, Tools(hierarchies or {}, key, number)))
    return working


def treated(table, *treatments, **tools):
    """The values of each column after treatments, None for missing ones."""
    working = treat_in_memory(table, *treatments, **tools)
    columns = {name: working.column(name) for name in working.names}
    labels = {name: [*column.labels.to_pylist(), None] for name, column in columns.items()}
    return {name: [labels[name][code] for code in column.codes] for name, column in columns.items()}


def treated_values(values, *treatments, **tools):
    """The values of a column `x` after treatments."""
    return treated({"x": values}, *treatments, **tools)["x"]


def treated_type(values, *treatments, **tools):
    """The type of a column `x` after treatments."""
    return treat_in_memory({"x": values}, *treatments, **tools).column("x").labels.type
