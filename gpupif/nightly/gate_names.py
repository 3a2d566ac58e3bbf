"""How gates are called that are given no name: after what they measure."""

from __future__ import annotations

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
    return " ".join(f"{part:g}" if isinstance(part, float) else str(part) for part in parts)


def _unlike(taken: set[str], name: str) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found
