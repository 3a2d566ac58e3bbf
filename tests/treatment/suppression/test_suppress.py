"""Suppression as a treatment of a table: by conditions on scores, and until criteria hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpupif
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.errors import InputError
from tests.helpers import naive_suppression as naive
from tests.helpers import naive_turns
from tests.helpers.suppression_tables import COLUMNS, people, treat, tuples

pytestmark = pytest.mark.every_engine

KNOWN = ["home", "sex"]


def values_of(frame, criteria, columns=COLUMNS, missing="category", sensitive=()):
    counted = CountedTable.from_table(frame, [*columns, *sensitive])
    engine = gpupif.engines.cpu.engine.CpuEngine()
    return CriterionSet.from_arguments(criteria, columns, sensitive, missing=missing).measure(counted, engine)


class TestWhere:
    @pytest.mark.parametrize("where", ["csf > 0.25", "cig >= 1 and cohort_size < 5", "class_size <= 3"])
    def test_cells_that_meet_the_condition_become_missing(self, where):
        table = people()
        scores = gpupif.score(table, ["csf", "cig", "cohort_size", "class_size"], columns=COLUMNS, known=KNOWN)
        expected = {
            "csf > 0.25": scores.csf > 0.25,
            "cig >= 1 and cohort_size < 5": (scores.cig >= 1) & (scores.cohort_size < 5),
            "class_size <= 3": scores.class_size <= 3,
        }[where]
        assert expected.to_numpy().any()
        assert not expected.to_numpy().all()
        after = treat(table, gpupif.treatments.Suppress(COLUMNS, where=where, known=KNOWN))
        assert (after[COLUMNS].isna() == expected).all(axis=None)
        kept = ~expected.to_numpy()
        assert (after[COLUMNS].astype(object).to_numpy()[kept] == table[COLUMNS].astype(object).to_numpy()[kept]).all()
        pd.testing.assert_series_equal(after["pay"], table["pay"])

    def test_conditions_may_be_on_any_attacker_of_score(self):
        table = people()
        among = gpupif.AnyKnown(1, among=list(table))
        scores = gpupif.score(table, "csf", columns=["sex"], attackers={"neighbour": ["home", "age"], "anyone": among})
        for where, expected in {
            "csf > 0.4": scores.worst.csf > 0.4,
            "neighbour_csf > 0.4": scores.against("neighbour").csf > 0.4,
            "anyone_csf_worst > 0.1": scores.against("anyone").worst.csf > 0.1,
        }.items():
            attackers = {"neighbour": ["home", "age"], "anyone": 1}
            after = treat(table, gpupif.treatments.Suppress(["sex"], where=where, attackers=attackers))
            assert expected["sex"].any()
            assert (after["sex"].isna() == expected["sex"]).all()

    def test_conditions_count_weights_against_any_known_columns(self):
        table = people()
        known = gpupif.AnyKnown(2, among=COLUMNS)
        scores = gpupif.score(table, "cohort_size", columns=["sex"], known=known, weights="pay")
        expected = scores.worst.cohort_size["sex"] < 2
        after = treat(table, gpupif.treatments.Suppress(["sex"], where="cohort_size < 2", known=2, weights="pay"))
        assert 0 < expected.sum() < len(table)
        assert (after["sex"].isna() == expected).all()

    def test_the_attacker_knows_all_columns_by_default(self):
        table = people()
        expected = gpupif.score(table, "cig", columns=["age"], known=list(table)).cig["age"] > 1
        after = treat(table, gpupif.treatments.Suppress(["age"], where="cig > 1"))
        assert (after["age"].isna() == expected).all()

    def test_conditions_are_on_the_table_treated_so_far(self):
        table = people()
        merged = treat(table, gpupif.treatments.Suppress(["age"], where="cohort_size >= 1"))
        assert merged["age"].isna().all()
        both = treat(
            table,
            gpupif.treatments.Suppress(["age"], where="cohort_size >= 1"),
            gpupif.treatments.Suppress(["sex"], where="class_size < 3"),
        )
        small = merged.groupby(["home", "sex", "pay"])["sex"].transform("size") < 3
        assert (both["sex"].isna() == small).all()


class TestCriteria:
    @pytest.mark.parametrize("missing", [None, "category", "wildcard"])
    def test_every_class_reaches_k_and_no_cell_can_be_restored(self, missing):
        table = people()
        done = gpupif.treat(table, [gpupif.treatments.Suppress(COLUMNS, k=3, missing=missing)])
        rows, before = tuples(done.table), tuples(table)
        assert naive.smallest(rows, range(3), missing or "category") >= 3
        assert naive.smallest(rows, range(3), "wildcard") >= 3
        assert naive.cells_that_can_be_restored(before, rows, [(range(3), 3)], missing or "category") == []
        found = done.record.to_dict()["treatments"][0]["found"]["criteria"]["k>=3"]
        assert found == {reading: naive.smallest(rows, range(3), reading) for reading in ("category", "wildcard")}

    def test_criteria_of_any_two_and_of_named_columns_hold(self):
        table = people(30)
        after = treat(
            table, gpupif.treatments.Suppress(COLUMNS, require=["known=2: k>=3", "known=age: k>=5", "uniques<=0"])
        )
        rows = tuples(after)
        assert naive.holds(rows, [((0, 1), 3), ((0, 2), 3), ((1, 2), 3), ((1,), 5), ((0, 1, 2), 2)])

    def test_known_columns_that_are_not_named_stay_as_they_are(self):
        table = people(60)
        after = treat(table, gpupif.treatments.Suppress(["age", "home"], k=2, quasi_identifiers=COLUMNS))
        pd.testing.assert_series_equal(after["sex"], table["sex"])
        assert naive.smallest(tuples(after), range(3)) >= 2

    # By default, criteria hold under both readings.
    @pytest.mark.sampled(6)
    @pytest.mark.parametrize(
        "missing", [None, *(pytest.param(one, marks=pytest.mark.slow) for one in ("category", "wildcard"))]
    )
    @pytest.mark.parametrize(
        "criteria",
        [["max csf<=0.5"], ["pif90<=1.5", "k>=2"], ["mean cig(age)<=0.5"], ["share_below_k(2)<=0.2"]],
        ids=str,
    )
    def test_criteria_of_scores_hold_afterwards(self, criteria, missing):
        table = people(12, seed=8)
        readings = ("category", "wildcard") if missing is None else (missing,)
        assert not all(one.is_met for one in values_of(table, criteria))
        done = gpupif.treat(table, [gpupif.treatments.Suppress(COLUMNS, require=criteria, missing=missing)])

        def met(frame):
            return all(
                one.is_met or (reading == "wildcard" and one.value is None)
                for reading in readings
                for one in values_of(frame, criteria, missing=reading)
            )

        assert met(done.table)
        for name in COLUMNS:
            for row in np.flatnonzero(done.table[name].isna()):
                again = done.table.astype(object)
                again.loc[row, name] = table.loc[row, name]
                assert not met(again), f"{name} of row {row} may stay"
        found = done.record.to_dict()["treatments"][0]["found"]["criteria"]
        for reading in readings:
            values = {str(one.criterion): one.value for one in values_of(done.table, criteria, missing=reading)}
            assert {criterion: value[reading] for criterion, value in found.items()} == values

    def test_criteria_of_a_sensitive_attribute_hold_afterwards(self):
        table = people(16, seed=9)
        criteria = ["distinct_l(pay)>=2"]
        assert not values_of(table, criteria, sensitive=["pay"])[0].is_met
        after = treat(
            table, gpupif.treatments.Suppress(COLUMNS, require=criteria, sensitive=["pay"], missing="category")
        )
        assert values_of(after, criteria, sensitive=["pay"])[0].is_met
        pd.testing.assert_series_equal(after["pay"], table["pay"])

    @pytest.mark.parametrize(
        ("criteria", "arguments"),
        [
            pytest.param(["distinct_l>=2", "alpha<=0.8"], {}, marks=pytest.mark.slow),
            (["t<=0.45", "k>=2"], {}),
            pytest.param(["estimated.individual.highest<=0.2", "k>=2"], {}, marks=pytest.mark.slow),
            pytest.param(
                ["households.risk.highest<=0.5", "prosecutor.average<=0.4"],
                {"household": "house"},
                marks=pytest.mark.slow,
            ),
            (["games.prosecutor.attacked<=4"], {"game": {"adversary_gain": 12, "adversary_cost": 5}}),
            (["uniques.sample_uniques<=3", "k>=1"], {"population_size": 200}),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (4, 5))])
    def test_weighted_shares_and_figures_of_risk_hold_afterwards(self, criteria, arguments, seed):
        table, random = people(14, seed), np.random.default_rng(seed)
        table["ill"], table["w"] = random.choice(list("pqr"), 14), random.choice([0, 1, 2, 5], 14)
        table["house"] = random.integers(0, 7, 14)
        weights = None if {"population_size", "game"} & {*arguments} else "w"
        of_values = [own for own in criteria if own[:2] in ("di", "al", "t<")]
        given = {"weights": weights, **arguments}
        suppress = gpupif.treatments.Suppress(
            COLUMNS, require=criteria, sensitive="ill" if of_values else None, **given
        )
        if "game" in arguments:
            given["game"] = gpupif.models.Game(**arguments["game"])

        def met(frame, reading):
            rows = frame[[*COLUMNS, "ill", "w"]].astype(object).where(frame.notna(), None).to_dict("records")
            classes = [own for _, own in naive_turns.classes(rows, COLUMNS, reading == "wildcard")]
            for own in criteria:
                if own in of_values or own.startswith("k"):
                    if any(naive_turns.excess_of(one, rows, own, True, reading == "wildcard") for one in classes):
                        return False
                elif not (own.startswith("uniques") and reading == "wildcard"):
                    path, _, limit = own.partition("<=")
                    asked = {name: own for name, own in given.items() if name != "population_size"}
                    asked = given if reading == "category" else asked
                    found = gpupif.risk(frame, COLUMNS, missing=reading, **asked)
                    for name in ["classes", *path.split(".")] if path.startswith("pros") else path.split("."):
                        found = found[name] if isinstance(found, dict) else getattr(found, name)
                    if found > float(limit):
                        return False
            return True

        def met_both(frame):
            return met(frame, "category") and met(frame, "wildcard")

        assert not met_both(table)
        after = treat(table, suppress)
        assert met_both(after)
        pd.testing.assert_frame_equal(after.drop(columns=COLUMNS), table.drop(columns=COLUMNS))
        for name in COLUMNS:
            for row in np.flatnonzero(after[name].isna()):
                again = after.astype(dict.fromkeys(COLUMNS, object))
                again.loc[row, name] = table.loc[row, name]
                assert not met_both(again), f"{name} of row {row} may stay"

    def test_missing_values_stay_and_importance_chooses_the_column(self):
        table = people(40)
        table.loc[:5, "age"] = np.nan
        light = treat(table, gpupif.treatments.Suppress(COLUMNS, k=4, importance={"age": 0.1}))
        heavy = treat(table, gpupif.treatments.Suppress(COLUMNS, k=4, importance={"age": 20}))
        assert light["age"].isna().sum() > heavy["age"].isna().sum()
        assert light["age"].isna()[:6].all()

    @pytest.mark.parametrize("kind", [pa.Table.from_pandas, pl.from_pandas], ids=["arrow", "polars"])
    @pytest.mark.parametrize(
        "treatment",
        [{"k": 3}, pytest.param({"require": ["max csf<=0.7"]}, marks=pytest.mark.slow), {"where": "csf > 0.7"}],
        ids=str,
    )
    def test_any_kind_of_table_has_the_same_cells_suppressed(self, kind, treatment):
        table = people(14)
        one = gpupif.treatments.Suppress(COLUMNS, **treatment)
        expected = treat(table, one)[COLUMNS].isna()
        assert expected.any(axis=None)
        other = treat(kind(table), one).to_pandas()
        assert (other[COLUMNS].isna() == expected).all(axis=None)


BAD = {
    "none of three ways": ({}, "expected one of where, k or require, got none"),
    "two ways": ({"k": 2, "where": "csf > 1"}, "got where and k"),
    "k below 1": ({"k": 0}, "k: expected a whole number of rows, 1 or more; got 0"),
    "an unknown measure": ({"where": "csv > 0.9"}, "where: .*'csv'. Did you mean 'csf'?"),
    "a sum of a row": (
        {"where": "rig > 40"},
        "got 'rig'.*Of rows there are class_size, reidentification_risk, individual_risk, unique; of cells csf",
    ),
    "a column's score": ({"where": "csf_age > 0.9"}, "where: expected the name of a measure"),
    "no condition": ({"where": "csf = 0.9"}, "There is no '=='"),
    "no criterion": ({"require": ["q>=2"]}, "'q' is no figure"),
    "no criteria": ({"require": []}, "expected at least one limit"),
    "importance below 0": ({"k": 2, "importance": {"age": -1}}, "importance: column 'age': expected a number above 0"),
    "importance of another column": ({"k": 2, "importance": {"pay": 1}}, "importance: no column 'pay'"),
    "importance of what a condition chooses": (
        {"where": "csf > 1", "importance": {"age": 1}},
        "importance goes with k or require, and not with where",
    ),
    "what is known where criteria say it": ({"k": 2, "known": ["age"]}, "known goes with where"),
    "an unknown reading": ({"k": 2, "missing": "any"}, "missing: expected 'category' or 'wildcard', got 'any'"),
    "no rows enough": ({"k": 41}, "'k>=41' cannot be reached: the table has 40 rows"),
    "columns that stay": (
        {"k": 20, "quasi_identifiers": [*COLUMNS, "pay"]},
        "'k>=20' cannot be reached: .* rows .* agree on 'pay'",
    ),
    "a limit below what is possible": ({"require": ["min cohort_size>=1e6"]}, "'min cohort_size.*' cannot be reached"),
    "a limit that no table meets": ({"require": ["max csf<=-1"]}, "'max csf<=-1': no table meets it"),
    "an attacker who is not there": ({"require": ["neighbour: k>=2"]}, "no attacker 'neighbour'"),
    "an attacker in no criterion": ({"k": 2, "attackers": {"x": ["age"]}}, "attackers goes with where or require"),
    "an idle attacker": ({"require": ["k>=2"], "attackers": {"x": ["age"]}}, "attackers: 'x': no criterion is on this"),
    "a population": ({"require": ["population.k_map>=2"]}, "require: cells are not suppressed by criterion"),
    "no such amount": (
        {"require": ["games.prosecutor.attacked<=0"], "game": {"adversary_gains": 3}},
        "game: there is no amount 'adversary_gains'. Did you mean 'adversary_gain'?",
    ),
    "households that are not needed": ({"require": ["k>=2"], "household": "pay"}, "household: no criterion needs it"),
    "a column that is not there": ({"k": 2, "quasi_identifiers": ["agee"]}, "no column 'agee'.*Did you mean 'age'?"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_and_changes_no_cell(name):
    arguments, message = BAD[name]
    table = people()
    before = table.copy()
    with pytest.raises((gpupif.InputError, gpupif.errors.UnmetError), match=message):
        treat(table, gpupif.treatments.Suppress(COLUMNS, **arguments))
    pd.testing.assert_frame_equal(table, before)


def test_an_empty_list_of_columns_is_refused():
    with pytest.raises(gpupif.InputError, match="columns: expected at least one column"):
        treat(people(), gpupif.treatments.Suppress([], k=2))


@pytest.mark.parametrize("asked", [{"k": 1}, {"k": 3}, {"require": ["max csf<=0.5"]}, {"where": "csf > 0.5"}])
def test_a_table_without_rows_is_refused(asked):
    table = pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"]})
    plan = [
        gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["a"]),
        gpupif.treatments.Suppress(["a", "b"], **asked),
    ]
    with pytest.raises(InputError, match=r"treatment 2 \(suppress\): expected at least one row, got none"):
        gpupif.treat(table, plan)
