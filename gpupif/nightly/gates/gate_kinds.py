"""The kinds of gates, one entry each, and the names of gates. A measure of cells or of tables has its entry already.

A gate names something measured, and its limits. It may be measured of several columns and attackers: the limits hold
for all of them, and the result has the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from ...disclosure.class_risks import CLASS_FIGURES, ClassFigure
from ...disclosure.models import MODELS, Model
from ...disclosure.risk_figures import LIMIT, PARTS, RiskFigure, find_figure
from ...errors import InputError
from ...results.score_distribution import ColumnAnswer, ColumnQuery
from ..configuration.settings import GateSettings

if TYPE_CHECKING:
    from ...disclosure.risk import DisclosureRisk
    from .findings import Findings

OF_MEASURE = "of the measure"
# The keys that give `gpupif.risk` an argument, of which one has to be there.
KEYS_OF = {
    "population": ("score.population",),
    "weights": ("score.weights",),
    "household": ("risk.household",),
    "game": ("risk.game",),
    "population_size": ("risk.population_size", "risk.sampling_fraction"),
    LIMIT: ("risk.max_global_risk",),
}


class Part(StrEnum):
    """The part of a run that a gate looks at."""

    SCORES = "scores"
    RISK = "risk"
    INPUT = "input"


class Value(NamedTuple):
    """A value of a column and against an attacker, if any. why: the reason if it is not known, half a sentence."""

    value: float | None
    column: str | None = None
    attacker: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of gate.

    name: as in the configuration.
    meaning, unit, range: of its values; unit and range are "of the measure" if the gate has one.
    part: the part of a run that it looks at.
    find: returns its values, one for each column and attacker that it is of.
    needs, takes: keys of `GateSettings` that have to be, and may be there beside the limits.
    measures: measures that have to be scored.
    asks: returns what it asks of the scores of its measure; None: nothing.
    high_is_bad: whether the highest of several values is the worst, else the lowest; None: as for the measure.
    depends: keys of `RiskSettings` that change its meaning.
    follows_from: keys of the configuration that it needs, each with those that will do in its place.
    sensitive: whether it is of sensitive attributes.
    is_change: whether it compares with the last good run itself.
    leaves_out_keys: whether, without a column, it leaves out the columns of the row key.
    title: the name of gates without a name, if that is not the name of the kind.
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
    follows_from: tuple[tuple[str, ...], ...] = ()
    sensitive: bool = False
    is_change: bool = False
    leaves_out_keys: bool = False
    title: str = ""


def _attackers(settings: GateSettings, findings: Findings) -> Sequence[str | None]:
    return findings.attackers if settings.attacker is None else (settings.attacker,)


def _chosen(what: str, column: str | None, by_column: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a column with what is known of it, or all columns (None). Raises InputError if it is not there."""
    if column is not None and column not in by_column:
        raise InputError(f"column: {column!r} is no {what} column.")
    return list(by_column.items()) if column is None else [(column, by_column[column])]


def _find_pif(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    assert settings.percentile is not None
    for attacker in _attackers(settings, findings):
        yield Value(findings.pif(settings.percentile, attacker), None, attacker)


def _find_scores(
    settings: GateSettings, findings: Findings, figure: Callable[[ColumnAnswer], float | None]
) -> Iterator[Value]:
    """Yield a figure of each scored column against each attacker."""
    assert settings.measure is not None
    for attacker in _attackers(settings, findings):
        answers = findings.score_answers(settings.measure, attacker)
        for column, answer in _chosen("scored", settings.column, answers):
            value = figure(answer)
            is_known = value is not None and not math.isnan(value)
            yield Value(value, column, attacker, "" if is_known else "no cell has a score")


def _percentile(
    name: str,
    meaning: str,
    title: str,
    share: Callable[[GateSettings], Any],
    needs: tuple[str, ...] = (),
    high_is_bad: bool | None = None,
) -> Kind:
    """Return the kind that is a percentile of the scores of a measure. share: which percentile."""
    return Kind(
        name,
        meaning,
        OF_MEASURE,
        OF_MEASURE,
        Part.SCORES,
        lambda settings, findings: _find_scores(settings, findings, lambda answer: answer.percentiles[share(settings)]),
        ("measure", *needs),
        ("column", "attacker"),
        asks=lambda settings: ColumnQuery(percentiles=(share(settings),)),
        high_is_bad=high_is_bad,
        title=title,
    )


def _find_cells_above(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    threshold: Any = settings.above
    each = list(_find_scores(settings, findings, lambda answer: answer.above[threshold]))
    for attacker in _attackers(settings, findings):
        total = sum(found.value or 0 for found in each if found.attacker == attacker)
        yield Value(total, settings.column, attacker)


def _risk(findings: Findings) -> DisclosureRisk:
    if findings.risk is None:
        raise InputError("risk: equivalence classes were not looked for.")
    return findings.risk


def _class_figure(figure: ClassFigure) -> Kind:
    """Return the kind that is a figure of the equivalence classes."""
    why = "it is not defined where missing values match every value"
    return Kind(
        figure.name,
        figure.meaning,
        figure.unit,
        figure.range,
        Part.RISK,
        lambda _, findings: [Value(figure.find(_risk(findings).classes), why=why)],
        high_is_bad=figure.high_is_bad,
        depends=figure.depends,
    )


def _model(model: Model) -> Kind:
    """Return the kind that is a disclosure measure of the table: k of classes, all others of sensitive attributes."""
    sensitive = model.name != "k"

    def find(settings: GateSettings, findings: Findings) -> list[Value]:
        risk = _risk(findings)
        if not sensitive:
            return [Value(risk.worst[model.name])]
        by_column = {str(name): float(value) for name, value in risk.attributes[model.name].items()}
        return [Value(value, column) for column, value in _chosen("sensitive", settings.column, by_column)]

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


def _risk_figure(figure: RiskFigure) -> Kind:
    """Return the kind that is a number in the result of `gpupif.risk`, named by its path."""
    return Kind(
        figure.path,
        f"{figure.path} in the result of gpupif.risk",
        "",
        figure.range,
        Part.RISK,
        lambda _, findings: [Value(figure.find(_risk(findings)))],
        high_is_bad=figure.high_is_bad,
        depends=("k", "threshold"),
        follows_from=tuple(KEYS_OF[name] for name in sorted({*figure.needs, PARTS[figure.part][1]} - {""})),
    )


def _find_missing(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    shares = {one.name: one.missing / findings.rows for one in findings.columns if one.missing is not None}
    for column, share in _chosen("read", settings.column, shares):
        yield Value(share, column)


def _find_new_values(settings: GateSettings, findings: Findings) -> Iterator[Value]:
    values = {one.name: one.new_values for one in findings.columns if one.distinct_values is not None}
    for column, number in _chosen("read", settings.column, values):
        # Each new row has a new key.
        if column not in findings.row_key or column == settings.column:
            yield Value(number, column, why="its values in the last good run are not known")


_KINDS = (
    Kind(
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
    ),
    Kind(
        "mean",
        "mean of a measure over the cells of a column",
        OF_MEASURE,
        OF_MEASURE,
        Part.SCORES,
        lambda settings, findings: _find_scores(settings, findings, lambda answer: answer.mean),
        ("measure",),
        ("column", "attacker"),
        asks=lambda _: ColumnQuery(mean=True),
        high_is_bad=None,
        title="mean {measure}",
    ),
    _percentile(
        "percentile",
        "that percentile of a measure over the cells of a column",
        "percentile {percentile} of {measure}",
        lambda settings: settings.percentile,
        ("percentile",),
    ),
    _percentile(
        "max", "highest value of a measure in a column", "highest {measure}", lambda _: 100.0, high_is_bad=True
    ),
    _percentile("min", "lowest value of a measure in a column", "lowest {measure}", lambda _: 0.0, high_is_bad=False),
    Kind(
        "cells_above",
        "cells whose score is above a threshold, in a column or in all",
        "cells",
        "0 and up",
        Part.SCORES,
        _find_cells_above,
        ("measure", "above"),
        ("column", "attacker"),
        asks=lambda settings: ColumnQuery(above=(settings.above,) if settings.above is not None else ()),
        high_is_bad=None,
        title="cells with {measure} above {above}",
    ),
    *map(_class_figure, CLASS_FIGURES.values()),
    *map(_model, MODELS.values()),
    Kind("rows", "rows of the table", "rows", "1 and up", Part.INPUT, lambda _, findings: [Value(findings.rows)]),
    Kind(
        "columns",
        "columns of the table",
        "columns",
        "1 and up",
        Part.INPUT,
        lambda _, findings: [Value(len(findings.columns))],
    ),
    Kind(
        "missing_share",
        "share of the rows without a value in a column",
        "share",
        "0 to 1",
        Part.INPUT,
        _find_missing,
        takes=("column",),
    ),
    Kind(
        "new_values",
        "values of a column, or of any that is not of the row key, that it did not have in the last good run",
        "values",
        "0 and up",
        Part.INPUT,
        _find_new_values,
        takes=("column",),
        is_change=True,
        leaves_out_keys=True,
    ),
)
GATES: dict[str, Kind] = {kind.name: kind for kind in _KINDS}


def find_kind(name: str) -> Kind | None:
    """Return the kind with a name, or of a figure of `gpupif.risk` by its path; None if there is none.

    Raises InputError if several paths end so.
    """
    if name in GATES:
        return GATES[name]
    figure = find_figure(name)
    return None if figure is None else _risk_figure(figure)


def gate_names(gates: Sequence[Any]) -> list[str]:
    """Return the names of gates, each its own, with a number if two measure the same.

    gates: tables of TOML, whatever they hold. A gate keeps the name that it has; another one is named after what it
    measures.
    """
    given = [gate.get("name") if isinstance(gate, Mapping) else None for gate in gates]
    taken = {name for name in given if isinstance(name, str)}
    names = []
    for gate, name in zip(gates, given, strict=True):
        if not isinstance(name, str):
            title = _title(gate if isinstance(gate, Mapping) else {})
            name, number = title, 1
            while name in taken:
                number += 1
                name = f"{title} {number}"
            taken.add(name)
        names.append(name)
    return names


def _title(gate: Mapping[str, Any]) -> str:
    """Return what a gate measures, in words."""
    kind = str(gate.get("kind", "gate"))
    # The path of a figure of risk, with full stops, is shown as it is.
    words = kind if "." in kind else kind.replace("_", " ")
    title = (GATES[kind].title if kind in GATES else "") or words.replace("{", "{{").replace("}", "}}")
    values = {key: gate.get(key) for key in ("percentile", "measure", "above")}
    for key, value in values.items():
        if isinstance(value, float):
            # As few digits as tell the number from all others.
            short = f"{value:g}"
            values[key] = short if float(short) == value else repr(value)
    places = {"of": gate.get("column"), "against": gate.get("attacker")}
    more = [f"{word} {name}" for word, name in places.items() if name is not None]
    return " ".join([title.format(**values), *more, *["after treatment"] * (gate.get("treated") is True)])
