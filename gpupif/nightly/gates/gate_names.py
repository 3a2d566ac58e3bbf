"""How gates are called that are given no name: after what they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .gate_kinds import GATES


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
    """What a gate measures, in words."""
    word = str(gate.get("kind", "gate"))
    title = (GATES[word].title if word in GATES else "") or word.replace("_", " ").replace("{", "{{").replace("}", "}}")
    said = title.format(**{key: _text(gate.get(key)) for key in ("percentile", "measure", "above")})
    where = {"of": gate.get("column"), "against": gate.get("attacker")}
    return " ".join([said, *(f"{word} {name}" for word, name in where.items() if name is not None)])


def _text(value: Any) -> str:
    """A number in as few digits as tell it from all others; anything else as it is."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _unlike(taken: set[str], name: str) -> str:
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found
