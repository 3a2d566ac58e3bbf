"""Gates: limits on measured values, checked against the configuration, and evaluated on the findings of a run."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...criteria.quantities import range_of_words
from ...disclosure.risk_figures import RISK_FIGURES
from ...errors import GpupifError, InputError, did_you_mean
from ...measures import POPULATION_SIZE, Measure, find_measure, resolve_measures
from ...results.score_distribution import ColumnQuery, ScoreQuestions
from ...utils.display import as_cell
from ..configuration.mistakes import key_of, value_at
from ..configuration.settings import GateSettings, ScoreSettings, Settings
from ..run_outcome import GateResult, Verdict
from .gate_kinds import GATES, OF_MEASURE, Kind, Part, Value, find_kind, gate_names

if TYPE_CHECKING:
    from .findings import Findings

# A function that returns the name of a key of a gate in errors.
Key = Callable[[str], str]
# The keys by which gates differ in what they measure.
SUBJECT = ("percentile", "measure", "column", "attacker", "above")
# The other settings that change what a gate measures, of cells and of classes; see `Gate.definition`.
ASKED_OF_SCORES = set(ScoreSettings.model_fields) - {"measures", "known", "attackers"}
ASKED_OF_CLASSES = {"weights", "missing", "distances"}
NOT_LIMITED = "The risk itself is not limited."
NO_GOOD_RUN = "There is no good run before to compare with."
SCORE_IT = "Add it to score.columns, or name another column."


@dataclass(frozen=True)
class Gate:
    """A gate of the configuration, checked.

    name: its own. kind: as `find_kind` returns it. settings: with the measure under the name of its scores. definition:
    a digest of what it measures, the same for gates whose values may be compared, whatever their names are.
    """

    name: str
    kind: Kind
    settings: GateSettings
    definition: str

    @property
    def high_is_bad(self) -> bool:
        """True if the highest of several values is the worst."""
        if self.kind.high_is_bad is not None:
            return self.kind.high_is_bad
        return not find_measure(self.settings.measure or "").low_is_risky

    @property
    def risk_limit(self) -> str:
        """The key of the limit that keeps the risk down, max or min; empty if there is none, or if none can break it.

        A share of at least 0.1 unique rows, or of at most 1, limits no risk.
        """
        measure = None if self.settings.measure is None else find_measure(self.settings.measure)
        words = measure.range if measure is not None and self.kind.range == OF_MEASURE else self.kind.range
        _, lowest, highest = range_of_words(words)
        high = self.high_is_bad if measure is None else not measure.low_is_risky
        key, end = ("max", highest) if high else ("min", lowest)
        limit = self.settings.limits.get(key)
        can_fail = limit is not None and (limit < end if high else limit > end)
        return key if can_fail and high == self.high_is_bad and self.kind.part is not Part.INPUT else ""


def resolve_gates(settings: Settings) -> list[Gate]:
    """Return the gates of a configuration, in order.

    Raises InputError: an unknown kind; keys that the kind does not take, or needs and lacks; columns, attackers or
    measures that are not scored or looked for.
    """
    measures = {measure.name: measure for measure in resolve_measures(settings.score.measures)}
    if settings.score.population is not None:
        measures[POPULATION_SIZE.name] = POPULATION_SIZE
    names = gate_names([gate.model_dump() for gate in settings.gates])
    gates = []
    for number, (name, given) in enumerate(zip(names, settings.gates, strict=True)):
        kind, gate = _checked(partial(_key, names, number), given, settings, measures)
        gates.append(Gate(name, kind, gate, _definition(kind, gate, settings)))
    return gates


def questions_of(gates: Iterable[Gate]) -> ScoreQuestions:
    """Return what gates ask of the scores, to be found at once."""
    columns: dict[str, ColumnQuery] = {}
    for gate in gates:
        measure = gate.settings.measure
        if gate.kind.asks is not None and measure is not None:
            columns[measure] = columns.get(measure, ColumnQuery()).with_all(gate.kind.asks(gate.settings))
    shares = (gate.settings.percentile for gate in gates if gate.kind is GATES["pif"])
    return ScoreQuestions(columns, tuple(dict.fromkeys(share for share in shares if share is not None)))


def _key(names: Sequence[str], number: int, key: str) -> str:
    """Return the name of a key of a gate in errors. names: of all gates. number: of this one, from 0."""
    return key_of(("gates", number, key), {"gates": [{"name": name} for name in names]})


def _checked(
    key: Key, gate: GateSettings, settings: Settings, measures: Mapping[str, Measure]
) -> tuple[Kind, GateSettings]:
    """Return the kind of a gate, and the gate with its measure under the name of its scores. Raises InputError.

    measures: that are scored.
    """
    score, risk = settings.score, settings.risk
    try:
        kind = find_kind(gate.kind)
    except InputError as error:
        raise InputError(f"{key('kind')}: {error}") from None
    if kind is None:
        hint = did_you_mean(gate.kind, [*GATES, *RISK_FIGURES])
        raise InputError(
            f"{key('kind')}: expected one of {', '.join(GATES)}, or a number in the result of gpupif.risk, such as "
            f"population.k_map; got {gate.kind!r}.{hint}"
        )
    given = [name for name in SUBJECT if getattr(gate, name) is not None]
    allowed = (*kind.needs, *kind.takes)
    for name in given:
        if name not in allowed:
            takes = f"only {', '.join(allowed)}" if allowed else "limits alone"
            raise InputError(f"{key(name)}: a gate of kind {kind.name!r} takes {takes}. Remove it.")
    for name in kind.needs:
        if name not in given:
            raise InputError(f"{key(name)}: a gate of kind {kind.name!r} needs it, and it is not there. Add it.")
    for name in kind.measures:
        if name not in measures:
            raise InputError(
                f"{key('kind')}: {kind.name!r} follows from {name}, which is not scored. Add it to score.measures."
            )
    if gate.measure is not None:
        gate = gate.model_copy(update={"measure": _scored_measure(key("measure"), gate.measure, measures)})
    if gate.treated and (settings.release.plan is None or kind.part is not Part.RISK or kind.follows_from):
        of = "of classes alone, such as k" if settings.release.plan else "with release.plan"
        raise InputError(f"{key('treated')}: expected it {of}. Remove it, or write another gate.")
    if kind.part is Part.SCORES:
        if gate.attacker is not None and score.attackers is None:
            raise InputError(
                f"{key('attacker')}: there is one attacker, without a name. Remove it, or name them in score.attackers."
            )
        _check_among(key("attacker"), gate.attacker, score.attackers, "an attacker", "Add it to score.attackers.")
        _check_among(key("column"), gate.column, score.columns, "a scored column", SCORE_IT)
        if score.columns is None and gate.column is not None and gate.column == score.weights:
            raise InputError(f"{key('column')}: expected a scored column, got {gate.column!r}, the weights. {SCORE_IT}")
    if kind.part is Part.RISK:
        for is_set, what, name in (
            (risk.quasi_identifiers, "equivalence classes", "quasi_identifiers"),
            (risk.sensitive or not kind.sensitive, "sensitive columns", "sensitive"),
        ):
            if not is_set:
                raise InputError(f"{key('kind')}: {kind.name!r} is of {what}, and there are none. Set risk.{name}.")
        for keys in kind.follows_from:
            if all(attrgetter(name)(settings) is None for name in keys):
                raise InputError(f"{key('kind')}: {kind.name!r} follows from {keys[0]}, which is not there. Set it.")
        _check_among(key("column"), gate.column, risk.sensitive, "a sensitive column", "Add it to risk.sensitive.")
    return kind, gate


def _scored_measure(key: str, given: str, measures: Mapping[str, Measure]) -> str:
    """Return the name of a measure that is scored. Raises InputError. key: its name in errors."""
    known = {POPULATION_SIZE.name: POPULATION_SIZE, **measures}
    try:
        measure = known.get(given) or resolve_measures(given)[0]
    except InputError as error:
        raise InputError(f"{key}: {str(error).partition(': ')[2]}") from None
    if measure.name not in measures:
        mend = (
            "It takes a population: set score.population."
            if measure is POPULATION_SIZE
            else "Add it to score.measures."
        )
        raise InputError(f"{key}: {given!r} is not scored, but {', '.join(measures)}. {mend}")
    return measure.name


def _check_among(key: str, given: str | None, names: Iterable[str] | None, what: str, mend: str) -> None:
    """Raise InputError if a name is given that is not among some names; without either all is well."""
    if given is not None and names is not None and given not in names:
        hint = did_you_mean(given, names)
        raise InputError(f"{key}: expected {what}, one of {', '.join(names)}; got {given!r}.{hint} {mend}")


def _definition(kind: Kind, gate: GateSettings, settings: Settings) -> str:
    """Return a digest of all that a gate measures, without its limits and its name."""
    score = settings.score.model_dump(mode="json")
    subject: dict[str, Any] = {"kind": kind.name} | {name: getattr(gate, name) for name in SUBJECT}
    if gate.treated:
        subject["treated"] = True
    if kind.leaves_out_keys and gate.column is None:
        subject["row_key"] = settings.input.row_key
    if kind.part is Part.SCORES:
        subject |= {name: score[name] for name in sorted(ASKED_OF_SCORES)}
        attackers = score["attackers"]
        subject["known"] = score["known"] if attackers is None else attackers
        if gate.attacker is not None:
            subject["known"] = attackers[gate.attacker]
    elif kind.part is Part.RISK:
        subject |= {name: score[name] for name in sorted(ASKED_OF_CLASSES)}
        subject |= settings.risk.model_dump(mode="json", include={"quasi_identifiers", *kind.depends})
        document = settings.model_dump(mode="json")
        subject |= {name: value_at(document, name.split(".")) for keys in kind.follows_from for name in keys}
        if "score.population" in subject:
            subject["score.population_lacks"] = settings.score.population_lacks
    return blake2b(json.dumps(subject, sort_keys=True).encode(), digest_size=16).hexdigest()


def values_before(results: Iterable[GateResult]) -> dict[str, float]:
    """Return the values of the gates of an earlier run, by definition, for `evaluate`."""
    return {result.definition: result.value for result in results if result.value is not None}


def evaluate(
    gates: Iterable[Gate], findings: Findings, before: Mapping[str, float] | None, treated: Findings | None = None
) -> list[GateResult]:
    """Return the results of gates, in order; a gate that cannot be evaluated is UNKNOWN, which counts as failed.

    treated: of the treated table; None if there is none, or if it could not be treated. before: see `values_before`, of
    the last good run; None if there is none. A value that it did not measure has no change: limits on the change are
    not applied then, so that a first run can be good; `not_applied` and `why` say so. A gate without any applied limit
    is NOT_APPLIED.
    """
    return [_evaluate(gate, treated if gate.settings.treated else findings, before) for gate in gates]


def _evaluate(gate: Gate, findings: Findings | None, before: Mapping[str, float] | None) -> GateResult:
    earlier, measure = None if before is None else before.get(gate.definition), gate.settings.measure
    result = GateResult(
        name=gate.name,
        kind=gate.kind.name,
        unit=find_measure(measure).unit if gate.kind.unit == OF_MEASURE and measure else gate.kind.unit,
        value=None,
        before=earlier,
        limits=gate.settings.limits,
        verdict=Verdict.UNKNOWN,
        column=gate.settings.column,
        attacker=gate.settings.attacker,
        definition=gate.definition,
        risk_limit=gate.risk_limit,
        treated=gate.settings.treated,
    )
    if gate.kind.is_change and before is None:
        return replace(result, verdict=Verdict.NOT_APPLIED, why=NO_GOOD_RUN)
    if findings is None:
        return replace(result, why="The table could not be treated, or no quasi-identifier is left in it.")
    try:
        found = list(gate.kind.find(gate.settings, findings))
    except GpupifError as error:
        # The text of the error may quote values of the table.
        return replace(result, why=f"It could not be evaluated: {type(error).__name__}.")
    unknown = [value for value in found if value.value is None or math.isnan(value.value)]
    if unknown or not found:
        first = unknown[0] if unknown else Value(None, why="there is nothing to measure")
        column = "" if first.column is None else f" of column {first.column!r}"
        attacker = "" if first.attacker is None else f" against {first.attacker!r}"
        why = f"The value{column}{attacker} is not known: {first.why or 'it is not defined'}."
        return replace(result, why=why)
    several = sorted(found, key=lambda one: one.value or 0, reverse=gate.high_is_bad)
    worst, best = (
        replace(result, value=one.value, column=one.column, attacker=one.attacker) for one in (several[0], several[-1])
    )
    # max and min hold for all of several values; how they changed is asked of the worst.
    own, other = ("max", "min") if gate.high_is_bad else ("min", "max")
    by_worst, by_best = [*_beyond(worst, own), *_changed(worst)], [*_beyond(best, other)]
    if by_worst or by_best:
        # The last good run kept the value of its worst alone.
        best = replace(best, before=None if best.before is None else math.nan)
        failed = replace(worst if by_worst or len(found) == 1 else best, verdict=Verdict.FAILED)
        return replace(failed, why=" ".join([*by_worst, *by_best, *_not_applied(failed, before)]))
    held = replace(worst, verdict=Verdict.PASSED)
    if set(held.not_applied) == set(held.limits):
        held = replace(held, verdict=Verdict.NOT_APPLIED)
    infinite = ["The value is infinite."] if held.value is not None and math.isinf(held.value) else []
    free = [] if held.limits_risk or gate.kind.part is Part.INPUT else [NOT_LIMITED]
    return replace(held, why=" ".join([*_not_applied(held, before), *infinite, *free]))


def _beyond(result: GateResult, key: str) -> Iterator[str]:
    """Yield a sentence if a gate fails by max or min."""
    limit, value = result.limits.get(key), result.value
    assert value is not None
    if limit is not None and not (value <= limit if key == "max" else value >= limit):
        side = "above" if key == "max" else "below"
        yield f"{_against(value, limit)[0]} is {side} {key}, {_against(limit, value)[0]}."


def _changed(result: GateResult) -> Iterator[str]:
    """Yield a sentence for each limit on its change by which a gate fails."""
    limits, change = result.limits, result.change
    if change is None:
        return
    for key, verb, by in (("max_rise", "rose", change), ("max_fall", "fell", -change)):
        if key in limits and not by <= limits[key]:
            shown = _against(by, limits[key])
            yield f"It {verb} by {shown[0]} since the last good run, by more than {key}, {shown[1]}."


def _not_applied(result: GateResult, before: Mapping[str, float] | None) -> Iterator[str]:
    """Yield a sentence that says why limits of a gate were not applied, if there are such."""
    if not result.not_applied:
        return
    lacks = NO_GOOD_RUN if before is None else "The last good run did not measure this."
    if result.verdict is Verdict.NOT_APPLIED:
        yield lacks
    else:
        verb = "was" if len(result.not_applied) == 1 else "were"
        yield f"{' and '.join(result.not_applied)} {verb} not applied. {lacks}"


def _against(number: float, other: float) -> tuple[str, str]:
    """Return two numbers in as few digits as tell them apart."""
    short = as_cell(number), as_cell(other)
    return short if short[0] != short[1] else (repr(number), repr(other))
