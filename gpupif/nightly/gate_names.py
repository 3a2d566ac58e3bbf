"""How gates are called that are given no name: after what they measure."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

# What a gate measures, in the order in which its name says it.
SAID = ("kind", "percentile", "measure", "above", "column", "attacker")


def gate_names(gates: Sequence[Any]) -> list[str]:
    """The names of gates, each its own; by number where two measure the same.

    gates: as tables of TOML, whatever they hold; the names that they have are kept.
    """
    own = [gate.get("name") if isinstance(gate, Mapping) else None for gate in gates]
    taken = {name for name in own if isinstance(name, str)}
    names = []
    for gate, name in zip(gates, own, strict=True):
        if not isinstance(name, str):
            name = _unlike(taken, _after(gate if isinstance(gate, Mapping) else {}))
            taken.add(name)
        names.append(name)
    return names


def _after(gate: Mapping[str, Any]) -> str:
    parts = [gate[key] for key in SAID if gate.get(key) is not None]
    return " ".join(map(_short, parts))


def _short(part: Any) -> str:
    """A part of a name; the same for a number with and without a fraction of nothing."""
    if isinstance(part, int | float):
        # Of what no float is as large as, all digits.
        with contextlib.suppress(OverflowError):
            return f"{part:.12g}"
    return str(part)


def _unlike(taken: set[str], name: str) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found
