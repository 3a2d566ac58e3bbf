"""Gates: what is measured night by night, with its limits, checked against the configuration, and what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from ...errors import ColumnNotFoundError, GpupifError, InputError, did_you_mean
from ...measures import POPULATION_SIZE, Measure, find_measure, resolve_measures
from ...utils.display import as_cell
from ..configuration.mistakes import key_of
from ..configuration.settings import GateSettings, ScoreSettings, Settings
from ..run_outcome import GateResult, Verdict
from .gate_kinds import GATES, Kind, Part, Value, gate_names

if TYPE_CHECKING:
    from ...results.distribution import ScoreQuestions
    from .findings import Findings

# What errors call a key of a gate.
Key = Callable[[str], str]
# The keys by which gates differ in what they measure.
SUBJECT = ("percentile", "measure", "column", "attacker", "above")
# What else of the settings of scores says what a gate measures, of cells and of classes; see `Gate.definition`.
ASKED_OF_SCORES = set(ScoreSettings.model_fields) - {"measures", "known", "attackers"}
ASKED_OF_CLASSES = {"weights", "missing", "distances"}
NO_GOOD_RUN = "There is no good run before to compare with."
SCORE_IT = "Add it to score.columns, or name one of these."


@dataclass(frozen=True)
class Gate:
    """A gate of the configuration, checked.

    name: its own. kind: its entry in `GATES`. settings: with the measure under the name of its scores. definition: of
    what it measures, the same for gates whose values may be compared, whatever they are called.
    """

    name: str
    kind: Kind
    settings: GateSettings
    definition: str

    @property
    def high_is_bad(self) -> bool:
        """Whether of several values the highest is the worst."""
        if self.kind.high_is_bad is not None:
            return self.kind.high_is_bad
        return not find_measure(self.settings.measure or "").low_is_risky


def check_gates(settings: Settings) -> None:
    """Raise InputError for a gate that the configuration cannot have, see `resolve_gates`."""
    resolve_gates(settings)


def resolve_gates(settings: Settings) -> list[Gate]:
    """The gates of a configuration, in order.

    Raises InputError: an unknown kind; keys that the kind does not take, or needs and lacks; what is not scored or
    looked for.
    """
    measures, keys = _scored_measures(settings), _keys(settings)
    checked = [_checked(key, gate, settings, measures) for key, gate in zip(keys, settings.gates, strict=True)]
    return [
        Gate(name, GATES[gate.kind], gate, _definition(gate, settings))
        for name, gate in zip(_names(settings), checked, strict=True)
    ]


def check_columns(gates: Sequence[Gate], settings: Settings, names: Sequence[str]) -> None:
    """Raise InputError for a gate on a column that a table with columns `names` lacks, or that is not scored."""
    scored = settings.score.columns or [name for name in names if name != settings.score.weights]
    for key, gate in zip(_keys(settings), gates, strict=True):
        column = gate.settings.column
        if column is None:
            continue
        if column not in names:
            raise ColumnNotFoundError(key("column"), [column], names)
        if gate.kind.part is Part.SCORES:
            _check_among(key("column"), column, scored, "a scored column", SCORE_IT)


def questions_of(gates: Iterable[Gate]) -> ScoreQuestions:
    """What gates ask of the scores, to be found at once."""
    from ...results.distribution import ColumnQuery, ScoreQuestions

    of_columns: dict[str, ColumnQuery] = {}
    for gate in gates:
        measure = gate.settings.measure
        if gate.kind.asks is not None and measure is not None:
            of_columns[measure] = of_columns.get(measure, ColumnQuery()).with_all(gate.kind.asks(gate.settings))
    shares = (gate.settings.percentile for gate in gates if gate.kind is GATES["pif"])
    return ScoreQuestions(of_columns, tuple(dict.fromkeys(share for share in shares if share is not None)))


def _names(settings: Settings) -> list[str]:
    return gate_names([gate.model_dump() for gate in settings.gates])


def _keys(settings: Settings) -> list[Key]:
    """Of each gate what errors call its keys."""
    document = {"gates": [{"name": name} for name in _names(settings)]}
    return [partial(_key, document, number) for number in range(len(settings.gates))]


def _key(document: Mapping[str, Any], number: int, key: str) -> str:
    return key_of(("gates", number, key), document)


def _scored_measures(settings: Settings) -> dict[str, Measure]:
    """The measures that are scored, by name."""
    found = {measure.name: measure for measure in resolve_measures(settings.score.measures)}
    return found if settings.score.population is None else found | {POPULATION_SIZE.name: POPULATION_SIZE}


def _checked(key: Key, gate: GateSettings, settings: Settings, measures: Mapping[str, Measure]) -> GateSettings:
    """A gate with its measure by the name of its scores; raises InputError. key: what errors call it."""
    kind = GATES.get(gate.kind)
    if kind is None:
        raise InputError(
            f"{key('kind')}: expected one of {', '.join(GATES)}; got {gate.kind!r}.{did_you_mean(gate.kind, GATES)}"
        )
    _check_keys(key, gate, kind)
    gate = _with_own_measure(key, gate, kind, measures)
    if kind.part is Part.SCORES:
        _check_attacker(key("attacker"), gate.attacker, settings.score)
        if gate.column is not None and settings.score.columns is not None:
            _check_among(key("column"), gate.column, settings.score.columns, "a scored column", SCORE_IT)
    if kind.part is Part.RISK:
        _check_risk(key, gate, kind, settings)
    return gate


def _check_keys(key: Key, gate: GateSettings, kind: Kind) -> None:
    given = [name for name in SUBJECT if getattr(gate, name) is not None]
    allowed = (*kind.needs, *kind.takes)
    for name in given:
        if name not in allowed:
            takes = f"only {', '.join(allowed)}" if allowed else "limits alone"
            raise InputError(f"{key(name)}: a gate of kind {kind.name!r} takes {takes}. Remove it.")
    for name in kind.needs:
        if name not in given:
            raise InputError(f"{key(name)}: a gate of kind {kind.name!r} needs it, and it is not there. Add it.")


def _with_own_measure(key: Key, gate: GateSettings, kind: Kind, measures: Mapping[str, Measure]) -> GateSettings:
    for name in kind.measures:
        if name not in measures:
            raise InputError(
                f"{key('kind')}: {kind.name!r} follows from {name}, which is not scored. Add it to score.measures."
            )
    if gate.measure is None:
        return gate
    known = {POPULATION_SIZE.name: POPULATION_SIZE, **measures}
    try:
        measure = known.get(gate.measure) or resolve_measures(gate.measure)[0]
    except InputError as error:
        raise InputError(f"{key('measure')}: {str(error).partition(': ')[2]}") from None
    if measure.name not in measures:
        where = "score.population" if measure is POPULATION_SIZE else "score.measures"
        raise InputError(
            f"{key('measure')}: {gate.measure!r} is not scored, but {', '.join(measures)}. "
            + ("It takes a population: set " if measure is POPULATION_SIZE else "Add it to ")
            + f"{where}."
        )
    return gate.model_copy(update={"measure": measure.name})


def _check_attacker(key: str, attacker: str | None, score: ScoreSettings) -> None:
    if attacker is not None and score.attackers is None:
        raise InputError(f"{key}: there is one attacker, without a name. Remove it, or name them in score.attackers.")
    if attacker is not None and score.attackers is not None:
        _check_among(key, attacker, list(score.attackers), "an attacker", "Add it to score.attackers.")


def _check_risk(key: Key, gate: GateSettings, kind: Kind, settings: Settings) -> None:
    risk = settings.risk
    if not risk.quasi_identifiers:
        raise InputError(
            f"{key('kind')}: {kind.name!r} is of equivalence classes, and there are none. Set risk.quasi_identifiers."
        )
    if kind.sensitive and not risk.sensitive:
        raise InputError(
            f"{key('kind')}: {kind.name!r} is of sensitive columns, and there are none. Set risk.sensitive."
        )
    if gate.column is not None:
        _check_among(key("column"), gate.column, risk.sensitive, "a sensitive column", "Add it to risk.sensitive.")


def _check_among(key: str, given: str, names: Sequence[str], what: str, mend: str) -> None:
    if given not in names:
        hint = did_you_mean(given, names)
        raise InputError(f"{key}: expected {what}, one of {', '.join(names)}; got {given!r}.{hint} {mend}")


def _definition(gate: GateSettings, settings: Settings) -> str:
    """A digest of all that tells what a gate measures, its limits and its name apart."""
    kind, score = GATES[gate.kind], settings.score.model_dump(mode="json")
    subject: dict[str, Any] = {"kind": gate.kind} | {name: getattr(gate, name) for name in SUBJECT}
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
    return blake2b(json.dumps(subject, sort_keys=True).encode(), digest_size=16).hexdigest()


def values_before(results: Iterable[GateResult]) -> dict[str, float]:
    """What the gates of an earlier run measured, by definition, for `evaluate`."""
    return {result.definition: result.value for result in results if result.value is not None}


def evaluate(gates: Iterable[Gate], findings: Findings, before: Mapping[str, float] | None) -> list[GateResult]:
    """Return what the gates say, in order; one that cannot be evaluated is UNKNOWN, which counts as failed.

    before: see `values_before`, of the last good run; None where there is none. What it did not measure has no change:
    limits on the change are not applied then, which `not_applied` and `why` say, so that a first run can be good. A
    gate of which no limit is applied is NOT_APPLIED.
    """
    return [_evaluate(gate, findings, before) for gate in gates]


def _evaluate(gate: Gate, findings: Findings, before: Mapping[str, float] | None) -> GateResult:
    earlier = None if before is None else before.get(gate.definition)
    result = GateResult(
        name=gate.name,
        kind=gate.kind.name,
        unit=gate.kind.unit_of(gate.settings),
        value=None,
        before=earlier,
        limits=gate.settings.limits,
        verdict=Verdict.UNKNOWN,
        column=gate.settings.column,
        attacker=gate.settings.attacker,
        definition=gate.definition,
    )
    if gate.kind.is_change and before is None:
        return replace(result, verdict=Verdict.NOT_APPLIED, why=NO_GOOD_RUN)
    try:
        found = list(gate.kind.find(gate.settings, findings))
    except GpupifError as error:
        # What it says may quote values of the table.
        return replace(result, why=f"It could not be evaluated: {type(error).__name__}.")
    lacking = next((one for one in found if one.value is None or one.value != one.value), None)
    if lacking is not None or not found:
        return replace(result, why=_why_unknown(lacking or Value(None, why="there is nothing to measure")))
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
    return replace(held, why=" ".join([*_not_applied(held, before), *infinite]))


def _why_unknown(found: Value) -> str:
    column = "" if found.column is None else f" of column {found.column!r}"
    attacker = "" if found.attacker is None else f" against {found.attacker!r}"
    return f"The value{column}{attacker} is not known: {found.why or 'it is not defined'}."


def _beyond(result: GateResult, key: str) -> Iterator[str]:
    """That a gate fails by max or min, as a sentence."""
    limit, value = result.limits.get(key), result.value
    assert value is not None
    if limit is not None and not (value <= limit if key == "max" else value >= limit):
        side = "above" if key == "max" else "below"
        yield f"{_against(value, limit)[0]} is {side} {key}, {_against(limit, value)[0]}."


def _changed(result: GateResult) -> Iterator[str]:
    """By which limits on its change a gate fails, a sentence each."""
    limits, change = result.limits, result.change
    if change is None:
        return
    for key, verb, by in (("max_rise", "rose", change), ("max_fall", "fell", -change)):
        if key in limits and not by <= limits[key]:
            shown = _against(by, limits[key])
            yield f"It {verb} by {shown[0]} since the last good run, by more than {key}, {shown[1]}."


def _not_applied(result: GateResult, before: Mapping[str, float] | None) -> Iterator[str]:
    """Say why limits of a gate were not applied, in a sentence, if there are such; name them where others were."""
    if not result.not_applied:
        return
    lacks = NO_GOOD_RUN if before is None else "The last good run did not measure this."
    if result.verdict is Verdict.NOT_APPLIED:
        yield lacks
    else:
        verb = "was" if len(result.not_applied) == 1 else "were"
        yield f"{' and '.join(result.not_applied)} {verb} not applied. {lacks}"


def _against(number: float, other: float) -> tuple[str, str]:
    """Two numbers in as few digits as tell them apart."""
    short = as_cell(number), as_cell(other)
    return short if short[0] != short[1] else (repr(number), repr(other))
