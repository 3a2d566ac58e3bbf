"""Tables treated in memory, one treatment after the other, as lists of Python's values."""

from __future__ import annotations

import hmac

import pandas as pd

from gpupif.frames.open import open_frame
from gpupif.treatment.base import Tools
from gpupif.treatment.in_memory import MemoryTable, treat_in_memory


class StandInKey:
    """A key of which only `secret` is asked."""

    def __init__(self, secret=bytes(range(32))):
        self._secret = secret

    def secret(self, purpose):
        return hmac.digest(self._secret, purpose.encode(), "sha256")


KEY = StandInKey()


def treated(table, *treatments, hierarchies=None, key=None):
    """The treated table, as a table of Arrow with dictionaries. table: columns by name, or any frame."""
    frame = open_frame(pd.DataFrame(table) if isinstance(table, dict) else table)
    steps = []
    for number, treatment in enumerate(treatments):
        treatment.check()
        tools = Tools(hierarchies or {}, key, number)
        steps.append(lambda working, treatment=treatment, tools=tools: treatment.prepare(working, tools))
    return treat_in_memory(MemoryTable(frame), steps).arrow()


def treated_values(values, *treatments, **tools):
    """The values of a column `x` after treatments."""
    return treated({"x": values}, *treatments, **tools)["x"].to_pylist()


def treated_type(values, *treatments, **tools):
    """The type of a column `x` after treatments."""
    return treated({"x": values}, *treatments, **tools)["x"].type.value_type
