"""What may have changed from one run to another, in plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ComparedRun:
    """A run that is compared."""

    number: int
    started: str
    status: str
    rows: int | None


@dataclass(frozen=True)
class FigureChange:
    """A number that changed. change: None where one of them is not known, or not finite."""

    name: str
    unit: str
    attacker: str | None
    column: str | None
    before: float | None
    after: float | None
    change: float | None


@dataclass(frozen=True)
class ColumnChange:
    """A column that came (before: None), went (after: None), or changed its type."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class GateChange:
    """A gate of either run, under its later name; value and verdict None in a run that did not measure it."""

    name: str
    unit: str
    before: float | None
    after: float | None
    verdict_before: str | None
    verdict: str | None


@dataclass(frozen=True)
class CellChange:
    """A cell whose risk rose. row: its place in the later table, from 0. key, value: None where not to be shown."""

    row: int
    column: str
    before: float
    after: float
    key: dict[str, str | None] | None = None
    value: str | None = None


@dataclass(frozen=True)
class NewlyUnique:
    """Rows that are unique in the later run, and were not in the earlier one: how many, and the first of them."""

    count: int
    rows: Sequence[int]
    keys: Sequence[dict[str, str | None]] | None = None


@dataclass(frozen=True)
class ScoreChanges:
    """How scores changed. measure: of which. by: "row key" or "place", by which rows are the same.

    compared, rose, fell: cells that both runs kept. came, went: cells (rows, where all scores are kept) that only one
    of them has. cells: whose risk rose most. newly_unique: None where that cannot be said.
    """

    measure: str
    by: str
    compared: int
    rose: int
    fell: int
    came: int
    went: int
    cells: Sequence[CellChange]
    newly_unique: NewlyUnique | None
