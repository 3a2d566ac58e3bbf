"""Gates: each kind by its definition, on every engine; limits and changes; what a configuration cannot have."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure.models import MODELS
from gpupif.disclosure.risk_figures import RISK_FIGURES
from gpupif.errors import InputError, NotScoredError
from gpupif.measures import MEASURES
from gpupif.nightly.comparison.figures import INPUT_KINDS
from gpupif.nightly.configuration.settings import Settings
from gpupif.nightly.gates.findings import Findings
from gpupif.nightly.gates.gate_kinds import GATES, Part
from gpupif.nightly.gates.gates import evaluate, questions_of, resolve_gates, values_before
from gpupif.nightly.run_outcome import ColumnProfile, Verdict
from tests.helpers import naive_attack
from tests.helpers.naive_disclosure import classes_of, expected

TABLE = {
    "sex": [*"ffmmmfffmfmm"],
    "age": [30, 30, 40, 40, 30, 40, 50, 30, 40, 50, 30, 40],
    "town": [*"ABAABBAAABAB"],
    "job": [*"aabbcabcabaa"],
}
ROWS = len(TABLE["sex"])
COLUMNS, QUASI_IDENTIFIERS, SENSITIVE, K = ["sex", "age", "town"], ["sex", "age"], ["town", "job"], 3
ATTACKERS = {"neighbour": ["sex", "town"], "anyone": 1}
SCORED = ["cig", "csf", "cohort_size", "pointwise_information"]
PROFILES = [
    ColumnProfile("sex", "string", 2, 0, 0),
    ColumnProfile("age", "int64", 3, 3, 2),
    ColumnProfile("town", "string", 2, 1, 1),
    ColumnProfile("job", "string", 3, 0, 0),
]


def settings_of(*gates, **sections):
    """A configuration with these gates."""
    given = {
        "input": {"path": "people.parquet"},
        "score": {"columns": COLUMNS, "measures": SCORED, "attackers": ATTACKERS},
        "risk": {"quasi_identifiers": QUASI_IDENTIFIERS, "sensitive": SENSITIVE, "k": K, "l": 2},
        "gates": list(gates),
    }
    return Settings.model_validate(given | sections)


def found_in(gates, **scores):
    """What is found of the table for some gates."""
    frame = pd.DataFrame(TABLE)
    asked = {"columns": COLUMNS, "measures": SCORED, "attackers": ATTACKERS} | scores
    risk = gpupif.risk(frame, QUASI_IDENTIFIERS, SENSITIVE, k=K, l=2, groups=0)
    return Findings(ROWS, PROFILES, gpupif.score(frame, **asked), risk, questions_of(gates))


def gate_of(kind, **keys):
    """A single gate, with a limit."""
    return resolve_gates(settings_of({"kind": kind, "max": 1.0} | keys))[0]


@cache
def oracle():
    return naive_attack.outcome(TABLE, COLUMNS, attackers=ATTACKERS).cells


def cells(measure, column, attacker):
    suffix = "_worst" if attacker == "anyone" else ""
    return np.array(oracle()[f"{attacker}_{measure}{suffix}_{column}"], float)


def each(figure, measure, columns=COLUMNS, attackers=ATTACKERS):
    """A figure of the scores of each column against each attacker."""
    return [figure(cells(measure, column, attacker)) for column in columns for attacker in attackers]


def gains(attacker):
    return sum(cells("cig", column, attacker) for column in COLUMNS)


CLASSES = [len(rows) for rows in classes_of(TABLE, QUASI_IDENTIFIERS).values()]
BELOW = sum(size for size in CLASSES if size < K)
AT_RISK = sum(size for size in CLASSES if 1 / size > 1 / K) / ROWS


@cache
def of_models():
    return [expected(TABLE, QUASI_IDENTIFIERS, name, 2, "nominal" if name != "age" else None) for name in SENSITIVE]


# Of each kind the keys of a gate, and what it measures.
EXAMPLES = {
    "pif": ({"percentile": 62.5}, lambda: max(np.percentile(gains(attacker), 62.5) for attacker in ATTACKERS)),
    "mean": ({"measure": "cohort_size"}, lambda: min(each(np.mean, "cohort_size"))),
    "percentile": (
        {"measure": "csf", "percentile": 62.5, "column": "age"},
        lambda: max(each(lambda scores: np.percentile(scores, 62.5), "csf", ["age"])),
    ),
    "max": ({"measure": "csf", "attacker": "anyone"}, lambda: max(each(max, "csf", attackers=["anyone"]))),
    "min": ({"measure": "pointwise_information"}, lambda: min(each(min, "pointwise_information"))),
    "cells_above": (
        {"measure": "csf", "above": 0.3},
        lambda: max(sum(each(lambda scores: (scores > 0.3).sum(), "csf", attackers=[one])) for one in ATTACKERS),
    ),
    "unique_rows": ({}, lambda: CLASSES.count(1)),
    "unique_share": ({}, lambda: CLASSES.count(1) / ROWS),
    "rows_below_k": ({}, lambda: BELOW),
    "share_below_k": ({}, lambda: BELOW / ROWS),
    "classes_below_k": ({}, lambda: sum(size < K for size in CLASSES)),
    "classes": ({}, lambda: len(CLASSES)),
    "largest_class": ({}, lambda: max(CLASSES)),
    "average_class": ({}, lambda: ROWS / len(CLASSES)),
    "discernibility": ({}, lambda: sum(size * size for size in CLASSES)),
    "highest_risk": ({}, lambda: 1 / min(CLASSES)),
    "average_risk": ({}, lambda: len(CLASSES) / ROWS),
    "share_at_risk": ({}, lambda: AT_RISK),
    **{
        name: ({}, lambda model=model: model.worst(found[model.name] for found in of_models()))
        for name, model in MODELS.items()
    },
    "rows": ({}, lambda: ROWS),
    "columns": ({}, lambda: 4),
    "missing_share": ({}, lambda: 3 / ROWS),
    "new_values": ({"column": "town"}, lambda: 1),
}


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(GATES)
    assert min(CLASSES) == 1 < K


@pytest.mark.every_engine
def test_the_value_of_each_kind_follows_its_definition(engine):
    gates = resolve_gates(settings_of(*({"kind": kind, "max": 1e9} | keys for kind, (keys, _) in EXAMPLES.items())))
    results = evaluate(gates, found_in(gates), {})
    for (kind, (keys, wanted)), result in zip(EXAMPLES.items(), results, strict=True):
        assert result.value == pytest.approx(wanted(), rel=1e-11), kind
        assert result.verdict is (Verdict.FAILED if math.isinf(wanted()) else Verdict.PASSED)
        assert (result.kind, result.limits) == (kind, {"max": 1e9})
        assert result.column == keys.get("column", result.column)
        assert result.attacker == keys.get("attacker", result.attacker)
        if GATES[kind].part is Part.SCORES:
            assert result.attacker in ATTACKERS
        of_cells = "measure" in keys and kind != "cells_above"
        assert result.unit == (MEASURES[keys["measure"]].unit if of_cells else GATES[kind].unit)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", list(EXAMPLES))
def test_limits_are_exact(kind):
    keys, _ = EXAMPLES[kind]
    wide = gate_of(kind, max=1e9, **keys)
    findings = found_in([wide])
    values = [found.value for found in wide.kind.find(wide.settings, findings)]
    assert evaluate([wide], findings, {})[0].value in values
    if math.isinf(max(values)):
        # Nothing is beyond it.
        value = 9.0
        values = [min(value, *values), value]
        findings = replace(findings, risk=replace(findings.risk, attributes=findings.risk.attributes.clip(upper=value)))
    for limit, last, beyond in (("max", max(values), -math.inf), ("min", min(values), math.inf)):
        for number, verdict in ((last, Verdict.PASSED), (np.nextafter(last, beyond), Verdict.FAILED)):
            gate = gate_of(kind, **keys, **{"max": None, limit: float(number)})
            (result,) = evaluate([gate], findings, {})
            assert result.verdict is verdict, (limit, number)
            assert (limit in result.why) == (verdict is Verdict.FAILED)


OF_RISK = {
    "score": {"columns": COLUMNS, "measures": SCORED, "population": "all.parquet"},
    "risk": {
        "quasi_identifiers": QUASI_IDENTIFIERS,
        "household": "job",
        "sampling_fraction": 0.5,
        "max_global_risk": 0.2,
        "game": {"adversary_cost": 90.0},
    },
}


def test_each_number_of_risk_is_a_gate():
    frame = pd.DataFrame(TABLE)
    given = {"population": pd.concat([frame, frame]), "game": gpupif.models.Game(adversary_cost=90)}
    given |= {"household": "job", "sampling_fraction": 0.5, "max_global_risk": 0.2}
    risk = gpupif.risk(frame, QUASI_IDENTIFIERS, groups=0, **given)
    figures = [figure for path, figure in RISK_FIGURES.items() if not path.startswith("estimated")]
    gates = resolve_gates(settings_of(*({"kind": figure.path, "max": 1e9} for figure in figures), **OF_RISK))
    results = evaluate(gates, Findings(ROWS, PROFILES, None, risk, questions_of(gates)), None)
    for figure, gate, result in zip(figures, gates, results, strict=True):
        assert (result.value, result.kind, result.name) == (figure.find(risk), figure.path, figure.path)
        assert gate.high_is_bad is figure.high_is_bad
    assert len({result.definition for result in results}) == len(figures) > 40
    assert len(set(map(of_game_of, (90.0, 91.0)))) == 2
    # The end of a path will do.
    short, whole = ({"kind": kind, "max": 1} for kind in ("presence.highest", "population.presence.highest"))
    assert len({gate.definition for gate in resolve_gates(settings_of(short, whole, **OF_RISK))}) == 1


def of_game_of(cost):
    risk = OF_RISK["risk"] | {"game": {"adversary_cost": cost}}
    (gate,) = resolve_gates(settings_of({"kind": "games.journalist.attacked", "max": 0}, **(OF_RISK | {"risk": risk})))
    return gate.definition


def test_the_worst_of_all_is_named():
    keys = {"kind": "mean", "measure": "csf", "max": 1.0}
    pairs = {(column, one): cells("csf", column, one).mean() for column in COLUMNS for one in ATTACKERS}
    gates = resolve_gates(settings_of(keys, *({**keys, "column": column, "attacker": one} for column, one in pairs)))
    worst, *others = evaluate(gates, found_in(gates), None)
    assert (worst.column, worst.attacker) == max(pairs, key=pairs.get)
    assert [one.value for one in others] == pytest.approx(list(pairs.values()))
    assert [one.name for one in others] == [f"mean csf of {column} against {one}" for column, one in pairs]


@pytest.mark.parametrize("measure", ["csf", "cohort_size"])
def test_limits_hold_for_each_of_several_values(measure):
    pairs = {(column, one): cells(measure, column, one).mean() for column in COLUMNS for one in ATTACKERS}
    low, high = min(pairs, key=pairs.get), max(pairs, key=pairs.get)
    assert pairs[low] < pairs[high]
    worst = high if measure == "csf" else low
    gate = {"kind": "mean", "measure": measure}
    inside = {"min": pairs[low] - 1e-9, "max": pairs[high] + 1e-9}
    (holds,) = verdicts({**gate, **inside})
    assert (holds.verdict, holds.column, holds.attacker) == (Verdict.PASSED, *worst)
    below, above = verdicts({**gate, **inside, "min": pairs[low] + 1e-9}, {**gate, **inside, "max": pairs[high] - 1e-9})
    for result, pair, limit in ((below, low, "min"), (above, high, "max")):
        assert result.verdict is Verdict.FAILED
        # Of several that are equal it is one.
        assert result.value == pytest.approx(pairs[pair]) == pytest.approx(pairs[result.column, result.attacker])
        assert limit in result.why


def test_the_change_of_a_gate_is_that_of_the_worst_value():
    gate = {"kind": "mean", "measure": "csf", "min": 0.0, "max_fall": 0.0}
    lowest, highest = min(means := each(np.mean, "csf")), max(means)
    before = values_before(verdicts(gate))
    (below,) = verdicts({**gate, "min": lowest + 1e-9}, before=before)
    # It is the lowest, of which the last good run kept nothing.
    assert (below.verdict, below.value, below.change) == (Verdict.FAILED, pytest.approx(lowest), None)
    # The limit on the change of the worst was applied, which a first run cannot do.
    (first,) = verdicts({**gate, "min": lowest + 1e-9})
    assert (below.not_applied, first.not_applied) == ([], ["max_fall"])
    (both,) = verdicts({**gate, "min": lowest + 1e-9}, before=dict.fromkeys(before, 1.0))
    assert (both.value, both.change) == (pytest.approx(highest), pytest.approx(highest - 1))
    assert both.why.startswith("It fell by ")
    assert " is below min, " in both.why


def verdicts(*gates, before=None):
    resolved = resolve_gates(settings_of(*gates))
    return evaluate(resolved, found_in(resolved), before)


def test_a_gate_without_a_named_attacker_has_none_on_record():
    settings = settings_of({"kind": "pif", "percentile": 95, "max": 9.0}, score={"measures": ["cig"], "known": ["sex"]})
    gates = resolve_gates(settings)
    scores = gpupif.score(pd.DataFrame(TABLE), ["cig"], known=["sex"])
    (result,) = evaluate(gates, Findings(ROWS, scores=scores, questions=questions_of(gates)), None)
    assert (result.value, result.attacker, result.column) == (scores.pif(95), None, None)


def judged(before, value=5.0, definition=None, **limits):
    """What a gate on the number of rows says, which is `value`, where it was `before`; None: there was no run."""
    gate = gate_of("rows", **({"max": None} | limits))
    key = gate.definition if definition is None else definition
    (result,) = evaluate([gate], Findings(value), None if before is None else {key: before})
    return result


@given(
    value=st.floats(-9, 9),
    before=st.none() | st.floats(-9, 9),
    limits=st.fixed_dictionaries(
        {}, optional={"max": st.floats(-9, 9), "max_rise": st.floats(0, 9), "max_fall": st.floats(0, 9)}
    ).filter(bool),
)
def test_the_verdict_follows_from_the_limits(value, before, limits):
    change = None if before is None else value - before
    broken = "max" in limits and value > limits["max"]
    broken |= change is not None and change > limits.get("max_rise", math.inf)
    broken |= change is not None and -change > limits.get("max_fall", math.inf)
    result = judged(before, value, **limits)
    # A limit on change alone that has nothing to compare with tests nothing.
    passed = Verdict.PASSED if change is not None or "max" in limits else Verdict.NOT_APPLIED
    assert result.verdict is (Verdict.FAILED if broken else passed)
    assert result.change == change
    # Limits that were not applied are named.
    idle = [name for name in ("max_rise", "max_fall") if before is None and name in limits]
    assert result.not_applied == idle
    assert ("There is no good run before to compare with." in result.why) == bool(idle)


def test_only_gates_on_the_input_measure_no_risk():
    assert [name for name, kind in GATES.items() if kind.part is Part.INPUT] == list(INPUT_KINDS)


def test_a_gate_says_by_how_much_its_value_changed():
    assert judged(3.0, max_rise=1.5).why == "It rose by 2 since the last good run, by more than max_rise, 1.5."
    assert judged(9.0, max_fall=1.5).why == "It fell by 4 since the last good run, by more than max_fall, 1.5."
    assert judged(None, max_rise=0.0).why == "There is no good run before to compare with."
    other = judged(3.0, definition="of another gate", max_rise=0.0)
    assert (other.verdict, other.before) == (Verdict.NOT_APPLIED, None)
    assert other.why == "The last good run did not measure this."
    beside = judged(3.0, definition="of another gate", max=9.0, max_rise=0.0)
    assert (beside.verdict, beside.not_applied) == (Verdict.PASSED, ["max_rise"])
    assert beside.why == "max_rise was not applied. The last good run did not measure this."
    first = judged(None, max=4.0, max_rise=0.0, max_fall=1.0)
    assert (first.verdict, first.not_applied) == (Verdict.FAILED, ["max_rise", "max_fall"])
    assert first.why == (
        "5 is above max, 4. max_rise and max_fall were not applied. There is no good run before to compare with."
    )
    both = judged(9.0, max=4.0, max_fall=1.0)
    assert both.why == "5 is above max, 4. It fell by 4 since the last good run, by more than max_fall, 1."
    assert judged(None, 0.1 + 0.2, max=0.3).why == "0.30000000000000004 is above max, 0.3."


def test_an_infinite_value_is_compared_with_the_limits():
    assert judged(None, math.inf, max=1e300).verdict is Verdict.FAILED
    result = judged(math.inf, math.inf, min=0.0, max_rise=0.0, max_fall=0.0)
    assert (result.verdict, result.change, result.why) == (Verdict.PASSED, 0.0, "The value is infinite.")
    assert judged(1.0, math.inf, max_rise=1e300).verdict is Verdict.FAILED


@pytest.mark.parametrize("value", [math.nan, None])
def test_a_gate_with_an_unknown_value_fails(value):
    result = judged(3.0, value, max=1e9, min=-1e9)
    assert (result.verdict, result.value, result.not_applied) == (Verdict.UNKNOWN, None, [])
    assert result.why == "The value is not known: it is not defined."


def test_a_gate_on_undefined_scores_fails():
    gates = [gate_of("mean", measure="csf"), gate_of("mean", measure="csf", column="sex")]
    frame = pd.DataFrame(TABLE | {"age": [None] * ROWS})
    scores = gpupif.score(frame, ["csf"], COLUMNS, known=["town"], missing="wildcard")
    results = evaluate(gates, Findings(ROWS, scores=scores, questions=questions_of(gates)), None)
    assert [one.verdict for one in results] == [Verdict.UNKNOWN, Verdict.PASSED]
    assert results[0].why == "The value of column 'age' is not known: no cell has a score."


def test_overlapping_classes_leave_their_number_unknown():
    frame = pd.DataFrame(TABLE | {"age": [None, *TABLE["age"][1:]]})
    risk = gpupif.risk(frame, QUASI_IDENTIFIERS, missing="wildcard", groups=0)
    result, other = evaluate([gate_of("classes"), gate_of("k")], Findings(ROWS, risk=risk), None)
    assert result.why == "The value is not known: it is not defined where missing values match every value."
    assert other.value == risk.k


def test_a_gate_that_cannot_be_evaluated_fails_and_shows_no_value():
    gate = gate_of("pif", percentile=95)

    class Unreadable:
        attackers = ("neighbour", "anyone")

        def against(self, attacker):
            raise NotScoredError("of Anton Meier")

    (result,) = evaluate([gate], Findings(ROWS, scores=Unreadable(), questions=questions_of([gate])), None)
    assert (result.verdict, result.why) == (Verdict.UNKNOWN, "It could not be evaluated: NotScoredError.")
    for kind in ("unique_rows", "alpha", "missing_share"):
        column = {"column": "town"} if kind == "missing_share" else {}
        (result,) = evaluate([gate_of(kind, **column)], Findings(ROWS), None)
        assert result.verdict is Verdict.UNKNOWN
    (result,) = evaluate([gate_of("missing_share")], Findings(ROWS), None)
    assert result.why == "The value is not known: there is nothing to measure."


def test_a_gate_on_new_values_is_not_applied_in_a_first_run():
    gate = gate_of("new_values", max=0)
    findings = Findings(ROWS, [replace(PROFILES[1], new_values=None)])
    (first,) = evaluate([gate], findings, None)
    assert (first.verdict, first.value, first.not_applied) == (Verdict.NOT_APPLIED, None, ["max"])
    assert first.why == "There is no good run before to compare with."
    (later,) = evaluate([gate], findings, {})
    assert later.verdict is Verdict.UNKNOWN
    (worst,) = evaluate([gate], Findings(ROWS, PROFILES), {})
    assert (worst.verdict, worst.value, worst.column) == (Verdict.FAILED, 2, "age")


def test_new_values_of_the_row_key_count_only_for_its_own_gate():
    findings = Findings(ROWS, PROFILES, row_key=["age"])
    (of_all,) = evaluate([gate_of("new_values")], findings, {})
    assert (of_all.value, of_all.column) == (1, "town")
    (of_key,) = evaluate([gate_of("new_values", column="age")], findings, {})
    assert of_key.value == 2
    keyed = {"input": {"path": "people.parquet", "row_key": ["age"]}}
    for subject, is_other in (({}, True), ({"column": "town"}, False)):
        gate = {"kind": "new_values", "max": 0, **subject}
        meant = [resolve_gates(settings_of(gate, **given))[0].definition for given in ({}, keyed)]
        assert (meant[0] != meant[1]) == is_other


def test_a_gate_is_known_by_what_it_measures():
    gate = {"kind": "pif", "percentile": 95, "attacker": "neighbour", "max": 3.0}
    (first,) = resolve_gates(settings_of(gate))
    result = evaluate([first], found_in([first]), None)[0]
    assert values_before([result]) == {first.definition: result.value}
    (renamed,) = resolve_gates(settings_of(gate | {"name": "other", "max": 4.0}))
    assert renamed.definition == first.definition
    score = {"columns": COLUMNS, "measures": SCORED, "attackers": ATTACKERS | {"third": ["age"]}}
    (beside,) = resolve_gates(settings_of(gate, score=score))
    assert beside.definition == first.definition
    learned = score | {"attackers": ATTACKERS | {"neighbour": ["sex"]}}
    for meant in (
        settings_of(gate | {"percentile": 94}),
        settings_of(gate | {"attacker": "anyone"}),
        settings_of(gate, score=learned),
        settings_of(gate, score=score | {"missing": "wildcard"}),
    ):
        assert resolve_gates(meant)[0].definition != first.definition
    of_k = [resolve_gates(settings_of({"kind": kind, "max": 1.0}))[0].definition for kind in ("k", "rows_below_k")]
    risk = {"quasi_identifiers": QUASI_IDENTIFIERS, "k": 7}
    again = [
        resolve_gates(settings_of({"kind": one, "max": 1.0}, risk=risk))[0].definition for one in ("k", "rows_below_k")
    ]
    assert of_k[0] == again[0]
    assert of_k[1] != again[1]


def test_gates_are_named_by_what_they_measure():
    gates = [
        {"kind": "pif", "percentile": 99.5},
        {"kind": "percentile", "measure": "cig", "percentile": 95, "column": "age", "attacker": "neighbour"},
        {"kind": "cells_above", "measure": "csf", "above": 0.25, "column": "age"},
        {"kind": "pif", "percentile": 99.50000001, "attacker": "anyone"},
        {"kind": "min", "measure": "csf"},
        {"kind": "unique_share"},
        {"kind": "unique_share"},
        {"kind": "t", "column": "job", "name": "closeness"},
    ]
    assert [gate.name for gate in resolve_gates(settings_of(*(gate | {"max": 1.0} for gate in gates)))] == [
        "PIF 99.5",
        "percentile 95 of cig of age against neighbour",
        "cells with csf above 0.25 of age",
        "PIF 99.50000001 against anyone",
        "lowest csf",
        "unique share",
        "unique share 2",
        "closeness",
    ]


def test_questions_of_gates_are_asked_once():
    gates = [
        {"kind": "pif", "percentile": 95},
        {"kind": "pif", "percentile": 50},
        {"kind": "max", "measure": "csf"},
        {"kind": "percentile", "measure": "csf", "percentile": 95},
        {"kind": "cells_above", "measure": "csf", "above": 0.5},
        {"kind": "mean", "measure": "cig"},
        {"kind": "unique_rows"},
    ]
    questions = questions_of(resolve_gates(settings_of(*(gate | {"max": 1.0} for gate in gates))))
    assert questions.of_rows == (95, 50)
    assert questions.to_dict()["columns"] == {
        "csf": {"percentiles": (100.0, 95), "above": (0.5,), "mean": False},
        "cig": {"percentiles": (), "above": (), "mean": True},
    }


SCORE = {"columns": COLUMNS, "measures": ["csf", "renyi_2.0"]}
WRONG = {
    "kind": (
        {"kind": "uniq_rows"},
        {},
        r"gates\[0\]\.kind .*: expected one of pif, .*; got 'uniq_rows'\. Did you mean 'unique",
    ),
    "key": ({"kind": "rows", "measure": "csf"}, {}, r"gates\[0\]\.measure .*: .*'rows' takes limits alone"),
    "another key": (
        {"kind": "pif", "percentile": 9, "column": "age"},
        {},
        r"gates\[0\]\.column .*: a gate of kind 'pif' takes only percentile, attacker\. Remove it",
    ),
    "lacks": ({"kind": "pif"}, {}, r"gates\[0\]\.percentile .*: a gate of kind 'pif' needs it"),
    "no cig": (
        {"kind": "pif", "percentile": 9},
        {"score": SCORE},
        r"gates\[0\]\.kind .*: 'pif' follows from cig, which is not",
    ),
    "not scored": (
        {"kind": "mean", "measure": "emd"},
        {"score": SCORE},
        r"gates\[0\]\.measure .*: 'emd' is not scored, but csf, renyi_2\. Add it to score\.measures\.",
    ),
    "no measure": (
        {"kind": "mean", "measure": "cgi"},
        {},
        r"gates\[0\]\.measure .*: expected some of .*got 'cgi'.*mean 'cig'",
    ),
    "population": (
        {"kind": "mean", "measure": "population_size"},
        {},
        r"It takes a population: set score\.population\.",
    ),
    "attacker": (
        {"kind": "mean", "measure": "csf", "attacker": "neighbor"},
        {},
        r"gates\[0\]\.attacker .*: expected an attacker, one of neighbour, anyone; got 'neighbor'\. Did you mean 'n",
    ),
    "no attackers": (
        {"kind": "mean", "measure": "csf", "attacker": "all"},
        {"score": SCORE},
        r"gates\[0\]\.attacker .*: there is one attacker, without a name",
    ),
    "column": (
        {"kind": "mean", "measure": "csf", "column": "agee"},
        {},
        r"gates\[0\]\.column .*: expected a scored column, one of sex, age, town; got 'agee'\. Did you mean 'age'",
    ),
    "no classes": ({"kind": "k"}, {"risk": {}}, r"'k' is of equivalence classes, and there are none\. Set risk\.quasi"),
    "ambiguous figure": ({"kind": "k_map"}, {}, r"gates\[0\]\.kind .*: k_map may be population\.k_map or estimated"),
    "no population": (
        {"kind": "population.k_map"},
        {},
        r"gates\[0\]\.kind .*: 'population\.k_map' follows from score\.population, which is not there\. Set it\.",
    ),
    "no game": (
        {"kind": "games.journalist.attacked"},
        OF_RISK | {"risk": {"quasi_identifiers": ["sex"]}},
        r"'games\.journalist\.attacked' follows from risk\.game",
    ),
    "no size": ({"kind": "uniques.uniques"}, {}, r"'uniques\.uniques' follows from risk\.population_size"),
    "column of a figure": (
        {"kind": "classes.marketer", "column": "age"},
        {},
        r"gates\[0\]\.column .*: a gate of kind 'classes\.marketer' takes limits alone",
    ),
    "not sensitive": (
        {"kind": "t"},
        {"risk": {"quasi_identifiers": ["sex"]}},
        r"'t' is of sensitive columns.*risk\.sensi",
    ),
    "other sensitive": (
        {"kind": "t", "column": "age"},
        {},
        r"expected a sensitive column, one of town, job; got 'age'",
    ),
}


@pytest.mark.parametrize(("gate", "sections", "said"), WRONG.values(), ids=WRONG.keys())
def test_gates_that_do_not_fit_the_configuration_are_refused(gate, sections, said):
    with pytest.raises(InputError, match=said):
        resolve_gates(settings_of(gate | {"max": 1.0}, **sections))


def test_gates_accept_other_names_of_a_measure():
    gate = {"kind": "mean", "measure": "renyi_2", "max": 1.0}
    (one,) = resolve_gates(settings_of(gate | {"measure": "renyi_2.0"}, score=SCORE))
    assert one.settings.measure == "renyi_2"
    assert one.definition == resolve_gates(settings_of(gate, score=SCORE))[0].definition


def test_a_gate_on_the_scores_of_weights_is_refused():
    score = {"measures": ["csf"], "weights": "people"}
    for gate in ({"kind": "missing_share", "column": "people"}, {"kind": "mean", "measure": "csf", "column": "age"}):
        resolve_gates(settings_of({**gate, "max": 1.0}, score=score))
    gate = {"kind": "mean", "measure": "csf", "column": "people", "max": 1.0}
    with pytest.raises(InputError, match=r"gates\[0\]\.column .*: expected a scored column, got 'people', the weights"):
        resolve_gates(settings_of(gate, score=score))
