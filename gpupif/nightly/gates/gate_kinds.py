"""The kinds of gates: one entry each. A new one is a new entry here; a measure of cells or of tables is one already.

A gate says what is measured and its limits. What it measures may be of several columns and attackers: the limits hold
for all of them, and the worst is told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ...disclosure.class_risks import CLASS_FIGURES, ClassFigure
from ...disclosure.models import MODELS, Model
from ...errors import InputError
from ...measures import find_measure
from ..configuration.settings import GateSettings

if TYPE_CHECKING:
    from ...disclosure.risk import DisclosureRisk
    from ...results.distribution import ColumnAnswer, ColumnQuery
    from .findings import Findings

OF_MEASURE = "of the measure"


class Part(StrEnum):
    """What of a run a gate is of."""

    SCORES = "scores"
    RISK = "risk"
    INPUT = "input"


class Value(NamedTuple):
    """What was measured; column, attacker: where. why: of what is not known, half a sentence."""

    value: float | None
    column: str | None = None
    attacker: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of gate.

    name: as in the configuration. meaning; unit, range: of its values, "of the measure" where it has one. part: of the
    run. find: its values, of several columns or attackers each its own. needs, takes: keys of `GateSettings` that have
    to be, and may be there beside limits. measures: that have to be scored. asks: what it asks of the scores of its
    measure, if anything. high_is_bad: whether the highest of several values is the worst, else the lowest; None: as of
    the measure. depends: keys of `RiskSettings` that change its meaning. sensitive: whether it is of sensitive
    attributes. is_change: whether it compares with the last good run itself. leaves_out_keys: whether, of all columns,
    it is of none of the row key. title: what gates of it are called by, if that is not its name.
    """

    name: str
    meaning: str
    unit: str
    range: str
    part: Part
    find: Callable[[GateSettings, Findings], Iterable[Value]]
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    asks: Callable[[GateSettings], ColumnQuery] | None = None
    high_is_bad: bool | None = True
    depends: tuple[str, ...] = ()
    sensitive: bool = False
    is_change: bool = False
    leaves_out_keys: bool = False
    title: str = ""

    def unit_of(self, settings: GateSettings) -> str:
        """The unit of a gate's values."""
        return find_measure(settings.measure).unit if self.unit == OF_MEASURE and settings.measure else self.unit


def _asked(**asked: Any) -> ColumnQuery:
    from ...results.distribution import ColumnQuery

    return ColumnQuery(**asked)


def _each_column(settings: GateSettings, findings: Findings, taken: Callable[[ColumnAnswer], float]) -> Iterator[Value]:
    """A figure of each scored column against each attacker."""
    assert settings.measure is not None
    for attacker in _attackers(settings, findings):
        answers = findings.score_answers(settings.measure, attacker)
        for column, answer in _named("scored", settings.column, answers):
            value = taken(answer)
            why = "" if value == value else "no cell has a score"
            yield Value(value, column, attacker, why)


def _attackers(settings: GateSettings, findings: Findings) -> Sequence[str | None]:
    return findings.attackers if settings.attacker is None else (settings.attacker,)


def _named(what: str, column: str | None, by_column: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What is known of a column, or of all (None); raises InputError where it is not there."""
    if column is not None and column not in by_column:
        raise InputError(f"column: {column!r} is no {what} column.")
    return list(by_column.items()) if column is None else [(column, by_column[column])]


def _measured(
    name: str,
    meaning: str,
    title: str,
    share: Callable[[GateSettings], float] | None,
    needs: tuple[str, ...] = (),
    high_is_bad: bool | None = None,
) -> Kind:
    """A kind that is a figure of the scores of a measure; share: which percentile it is, None: their mean."""

    def asks(settings: GateSettings) -> ColumnQuery:
        return _asked(mean=True) if share is None else _asked(percentiles=(share(settings),))

    def find(settings: GateSettings, findings: Findings) -> Iterator[Value]:
        def taken(answer: ColumnAnswer) -> float:
            found = answer.mean if share is None else answer.percentiles[share(settings)]
            return math.nan if found is None else found

        return _each_column(settings, findings, taken)

    return Kind(
        name,
        meaning,
        OF_MEASURE,
        OF_MEASURE,
        Part.SCORES,
        find,
        ("measure", *needs),
        ("column", "attacker"),
        asks=asks,
        high_is_bad=high_is_bad,
        title=title,
    )


def _percentile(settings: GateSettings) -> float:
    assert settings.percentile is not None
    return settings.percentile


def _find_pif(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    for attacker in _attackers(settings, findings):
        yield Value(findings.pif(_percentile(settings), attacker), None, attacker)


def _threshold(settings: GateSettings) -> float:
    assert settings.above is not None
    return settings.above


def _find_cells_above(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    threshold = _threshold(settings)
    each = list(_each_column(settings, findings, lambda answer: answer.above[threshold]))
    for attacker in _attackers(settings, findings):
        total = sum(found.value or 0 for found in each if found.attacker == attacker)
        yield Value(total, settings.column, attacker)


def _of_risk(findings: Findings) -> DisclosureRisk:
    if findings.risk is None:
        raise InputError("risk: equivalence classes were not looked for.")
    return findings.risk


def _of_figure(figure: ClassFigure) -> Kind:
    """The kind that is a figure of the equivalence classes."""

    def find(_: GateSettings, findings: Findings) -> list[Value]:
        why = "it is not defined where missing values match every value"
        return [Value(figure.find(_of_risk(findings).classes), why=why)]

    return Kind(
        figure.name,
        figure.meaning,
        figure.unit,
        figure.range,
        Part.RISK,
        find,
        high_is_bad=figure.high_is_bad,
        depends=figure.depends,
    )


def _of_model(model: Model) -> Kind:
    """The kind that is a disclosure measure of the table: of sensitive attributes, but for that of classes alone."""
    sensitive = model.name != "k"

    def find(settings: GateSettings, findings: Findings) -> list[Value]:
        risk = _of_risk(findings)
        if not sensitive:
            return [Value(risk.worst[model.name])]
        by_column = {str(name): float(value) for name, value in risk.attributes[model.name].items()}
        return [Value(value, column) for column, value in _named("sensitive", settings.column, by_column)]

    return Kind(
        model.name,
        model.meaning,
        model.unit,
        model.range,
        Part.RISK,
        find,
        takes=("column",) if sensitive else (),
        high_is_bad=model.highest,
        depends=("sensitive", *(["l"] if model.of_l else [])) if sensitive else (),
        sensitive=sensitive,
    )


def _find_rows(_: GateSettings, findings: Findings) -> list[Value]:
    return [Value(findings.rows)]


def _find_columns(_: GateSettings, findings: Findings) -> list[Value]:
    return [Value(len(findings.columns))]


def _find_missing(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    shares = {one.name: one.missing / findings.rows for one in findings.columns if one.missing is not None}
    for column, share in _named("read", settings.column, shares):
        yield Value(share, column)


def _find_new_values(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    values = {one.name: one.new_values for one in findings.columns if one.distinct_values is not None}
    for column, number in _named("read", settings.column, values):
        # Each new row has a new key.
        if column not in findings.row_key or column == settings.column:
            yield Value(number, column, why="its values in the last good run are not known")


def _kinds_of_scores() -> Iterator[Kind]:
    yield Kind(
        "pif",
        "personal information factor: that percentile of the row information gains",
        "bits",
        "0 and up",
        Part.SCORES,
        _find_pif,
        ("percentile",),
        ("attacker",),
        ("cig",),
        title="PIF {percentile}",
    )
    yield _measured("mean", "mean of a measure over the cells of a column", "mean {measure}", None)
    yield _measured(
        "percentile",
        "that percentile of a measure over the cells of a column",
        "percentile {percentile} of {measure}",
        _percentile,
        ("percentile",),
    )
    highest, lowest = "highest value of a measure in a column", "lowest value of a measure in a column"
    yield _measured("max", highest, "highest {measure}", lambda _: 100.0, high_is_bad=True)
    yield _measured("min", lowest, "lowest {measure}", lambda _: 0.0, high_is_bad=False)
    yield Kind(
        "cells_above",
        "cells whose score is above a threshold, in a column or in all",
        "cells",
        "0 and up",
        Part.SCORES,
        _find_cells_above,
        ("measure", "above"),
        ("column", "attacker"),
        asks=lambda settings: _asked(above=(_threshold(settings),)),
        high_is_bad=None,
        title="cells with {measure} above {above}",
    )


def _kinds_of_classes() -> Iterator[Kind]:
    yield from map(_of_figure, CLASS_FIGURES.values())
    yield from map(_of_model, MODELS.values())


def _kinds_of_input() -> Iterator[Kind]:
    yield Kind("rows", "rows of the table", "rows", "1 and up", Part.INPUT, _find_rows)
    yield Kind("columns", "columns of the table", "columns", "1 and up", Part.INPUT, _find_columns)
    yield Kind(
        "missing_share",
        "share of the rows without a value in a column",
        "share",
        "0 to 1",
        Part.INPUT,
        _find_missing,
        takes=("column",),
    )
    yield Kind(
        "new_values",
        "values of a column, or of any that is not of the row key, that it did not have in the last good run",
        "values",
        "0 and up",
        Part.INPUT,
        _find_new_values,
        takes=("column",),
        is_change=True,
        leaves_out_keys=True,
    )


GATES: dict[str, Kind] = {
    kind.name: kind for kinds in (_kinds_of_scores(), _kinds_of_classes(), _kinds_of_input()) for kind in kinds
}
