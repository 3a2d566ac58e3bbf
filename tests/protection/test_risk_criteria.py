"""Criteria on what `risk` measures: every node of small lattices tried, treated and measured from the definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gpupif
from gpupif.criteria import counted_risk
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion import Criterion
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.criteria.quantities import ModelQuantity, RiskQuantity
from gpupif.disclosure.risk_figures import ONLY_IMPROVE, RISK_FIGURES, RiskArguments
from gpupif.engines.choose import choose_engine, requested_device
from gpupif.errors import GpupifError
from tests.helpers import naive_protection as naive
from tests.helpers.counting_ways import OTHERS, in_memory

COLUMNS = ["age", "home"]
HIERARCHIES = {
    "age": {f"a{number}": (f"A{number // 2}", f"AA{number // 4}", "*") for number in range(6)},
    "home": {f"h{number}": (f"H{number // 2}", "*") for number in range(5)},
}
GIVEN = {name: {"values": groups} for name, groups in HIERARCHIES.items()}
GAME = gpupif.models.Game(publisher_benefit=10, publisher_loss=60, adversary_gain=40, adversary_cost=9)


def city(seed, rows=120):
    rng = np.random.default_rng(seed)
    weights = np.array([6, 4, 3, 2, 1, 1]) / 17
    return pd.DataFrame(
        {
            "age": rng.choice([f"a{number}" for number in range(6)], rows, p=weights),
            "home": rng.choice([f"h{number}" for number in range(5)], rows),
            "ill": rng.choice(["flu", "hiv", "none"], rows),
        }
    )


def sample(seed, rows=30):
    rng = np.random.default_rng(seed + 100)
    part = city(seed).sample(rows, random_state=seed).reset_index(drop=True)
    return part.assign(people=rng.integers(1, 9, rows) / 2, house=rng.integers(0, 12, rows))


def sizes(rows, others, weight=lambda row: 1):
    """For each row the sum of the weights of the other rows that agree with it on the known columns."""
    return [sum(weight(other) for other in others if all(row[c] == other[c] for c in COLUMNS)) for row in rows]


def individual(own, people):
    """Return the mean of 1 / F, F being negative binomial, by numerical integration."""
    if people <= own:
        return 1 / own
    steps = (np.arange(200_000) + 0.5) / 200_000
    return float(np.mean((1 / steps) * (1 + people * (1 - steps) / (own * steps)) ** -own))


def value(path, rows, people):
    """The figure of a table, and of the population at the same levels, from the definition."""
    own = sizes(rows, rows)
    there = sizes(rows, people)
    inverse = [1 / size for size in there]
    if path.startswith("population.presence"):
        presence = [of / size for of, size in zip(sizes(people, rows), sizes(people, people), strict=True)]
        return {"highest": max, "lowest": min}[path.rpartition(".")[2]](presence)
    if path == "population.k_map":
        return min(there)
    if path == "population.journalist.highest":
        return max(inverse)
    if path == "population.journalist.at_risk":
        return sum(risk > 0.1 for risk in inverse) / len(rows)
    if path == "population.marketer":
        return sum(inverse) / len(rows)
    if path == "population.journalist.average":
        classes = {tuple(row[c] for c in COLUMNS): size for row, size in zip(rows, there, strict=True)}
        return max(len(classes) / sum(classes.values()), sum(inverse) / len(rows))
    if path == "classes.prosecutor.average":
        return sum(1 / size for size in own) / len(rows)
    if path == "games.journalist.attacked":
        return sum(40 / size > 9 for size in there)
    if path == "games.prosecutor.adversary_payoff":
        return sum(max(0, 40 / size - 9) for size in own)
    if path == "households.risk.average":
        homes = {}
        for row, size in zip(rows, own, strict=True):
            homes[row["house"]] = homes.get(row["house"], 1) * (1 - 1 / size)
        return sum(1 - safe for safe in homes.values()) / len(homes)
    weighted = sizes(rows, rows, lambda row: row["people"])
    if path == "estimated.k_map":
        return min(weighted)
    if path == "estimated.individual.highest":
        return max({individual(*pair) for pair in set(zip(own, weighted, strict=True))})
    assert path == "estimated.journalist.average"
    return sum(min(1, 1 / size) for size in weighted) / len(rows)


QUESTIONS = {
    "population.k_map>=8": "population",
    "population.journalist.highest<=0.13": "population",
    "population.journalist.at_risk(0.1)<=0.3": "population",
    "population.journalist.average<=0.05": "population",
    "population.marketer<=0.05": "population",
    "presence.highest<=0.34": "population",
    "presence.lowest>=0.2": "population",
    "prosecutor.average<=0.2": "",
    "games.journalist.attacked<=0": "population game",
    "games.prosecutor.adversary_payoff<=12": "game",
    "households.risk.average<=0.3": "household",
    "estimated.k_map>=9": "weights",
    "estimated.individual.highest<=0.2": "weights",
    "estimated.journalist.average<=0.1": "weights",
}


def arguments(words, seed):
    every = {"population": city(seed), "game": GAME, "household": "house", "weights": "people"}
    return {name: every[name] for name in words.split()}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("criterion", QUESTIONS)
def test_the_plan_is_the_best_of_all_nodes(criterion, seed, monkeypatch):
    table, population = sample(seed), city(seed).to_dict("records")
    path = Criterion.from_text(criterion).quantity.figure.path
    found = gpupif.protect(
        table, criterion, hierarchies=GIVEN, quasi_identifiers=COLUMNS, **arguments(QUESTIONS[criterion], seed)
    )

    def value_at(rows, *_):
        node = next(node for node in naive.nodes(HIERARCHIES) if naive.treated(records, HIERARCHIES, node) == rows)
        return value(path, rows, naive.treated(population, HIERARCHIES, node))

    records = table.to_dict("records")
    monkeypatch.setattr(naive, "value", value_at)
    node, _ = naive.best(records, HIERARCHIES, [criterion], COLUMNS)
    assert tuple(found.levels.values()) == node
    assert found.optimal
    assert found.is_met
    rows = naive.treated(records, HIERARCHIES, node)
    there = naive.treated(population, HIERARCHIES, node)
    assert found.risk[0].value == pytest.approx(value(path, rows, there), rel=1e-5)
    assert found.before[0].value == pytest.approx(value(path, records, population), rel=1e-5)


@pytest.mark.parametrize(
    ("zero_weights", "missing", "lacks"),
    [
        (True, "wildcard", "count"),
        pytest.param(True, "category", "error", marks=pytest.mark.slow),
        pytest.param(False, "category", "count", marks=pytest.mark.slow),
        pytest.param(False, "wildcard", "error", marks=pytest.mark.slow),
    ],
)
def test_coarser_values_only_improve_figures_by_which_a_search_prunes(zero_weights, missing, lacks):
    rng = np.random.default_rng(7)
    looked_at = set()
    for seed in range(3):
        table, people = sample(seed), city(seed)
        if zero_weights:
            table.loc[rng.choice(30, 3), "people"] = 0
        table.loc[:2, "age"] = people.loc[:9, "age"] = None
        if lacks == "count":
            people = people.iloc[::4]
            table, people = pd.concat([table]), pd.concat([people, table[["age", "home", "ill"]].drop_duplicates()])
        elif missing == "category":
            people = pd.concat([people, table[["age", "home", "ill"]]])
        given = {"weights": "people", "household": "house", "game": GAME, "missing": missing}
        population = gpupif.Population(people, lacks)
        known = RiskArguments(population, zero_weights=zero_weights)
        by_node = {}
        for node in naive.nodes(HIERARCHIES):
            plan = gpupif.Plan(
                [gpupif.treatments.Recode(c, level=n) for c, n in zip(COLUMNS, node, strict=True) if n],
                hierarchies={c: GIVEN[c] for c, n in zip(COLUMNS, node, strict=True) if n},
            )
            there = gpupif.Population(gpupif.treat(people, plan).table, lacks)
            by_node[node] = gpupif.risk(
                gpupif.treat(table, plan).table, COLUMNS, population=there, max_global_risk=0.2, groups=0, **given
            )
        for figure in RISK_FIGURES.values():
            if not figure.only_improves(known):
                continue
            for node, found in by_node.items():
                for coarser in [(node[0] + 1, node[1]), (node[0], node[1] + 1)]:
                    before, after = figure.find(found), figure.find(by_node.get(coarser, found))
                    if before is not None and after is not None and not math.isnan(before + after):
                        looked_at.add(figure.path)
                        rise = (after - before) * (1 if figure.high_is_bad else -1)
                        assert rise <= 1e-9 * max(1, abs(before)), figure.path
    assert len(looked_at) > (20 if missing == "wildcard" else 35)


def test_every_number_of_risk_is_a_criterion():
    table = sample(0).drop(columns="people")
    found = gpupif.risk(table, COLUMNS, population=city(0), household="house", game=GAME, population_size=120)
    for figure in RISK_FIGURES.values():
        text = f"{figure.path}{'(0.1)' if figure.part == 'risk_threshold' else ''}"
        quantity = Criterion.from_figure(text).quantity
        assert quantity == RiskQuantity(figure, 0.1 if "(" in text else None)
        if figure.part not in ("risk_threshold", "estimated"):
            assert isinstance(figure.find(found), float), figure.path
    assert set(RISK_FIGURES) >= ONLY_IMPROVE


def test_the_threshold_of_a_global_risk_is_no_criterion():
    # Coarser values lower it to the highest risk that is left: it is neither safe if it is high nor if it is low.
    table = pd.DataFrame({"a": list("aabbbbcc")})
    assert gpupif.risk(table, "a", max_global_risk=0.5).risk_threshold.threshold == 0.5
    with pytest.raises(gpupif.InputError, match=r"'risk_threshold.threshold' is no figure"):
        gpupif.protect(table, "risk_threshold.threshold(0.5)>=0.4")


WAYS_OF = {
    "population.k_map>=6": {"population": city(0)},
    "uniques.unique_share<=0.02": {"sampling_fraction": 0.25},
    "households.risk.average<=0.5": {"household": "house"},
    "estimated.individual.at_risk(0.3)<=0.1": {"weights": "people"},
    "max cig<=2": {"weights": "people"},
}
KNOWN = {"hierarchies": GIVEN, "quasi_identifiers": COLUMNS}
# The ways take turns as quick tests; the others are slow tests.
BY_TURNS = [
    pytest.param(
        criterion,
        *way.values,
        id=f"{criterion}-{way.id}",
        marks=[*way.marks, *([pytest.mark.slow] if (number + turn) % 2 else [])],
    )
    for number, criterion in enumerate(WAYS_OF)
    for turn, way in enumerate(OTHERS)
]


@pytest.mark.sampled(5)
@pytest.mark.every_engine
@pytest.mark.parametrize(("criterion", "way"), BY_TURNS)
def test_every_way_gives_the_same_plan_and_advice(criterion, way):
    given = WAYS_OF[criterion] | KNOWN
    expected, found = (one(gpupif.protect, sample(0), require=criterion, **given) for one in (in_memory, way))
    assert expected.optimal
    assert (found.levels, found.risk, found.before) == (expected.levels, expected.risk, expected.before)
    expected, found = (one(gpupif.advise, sample(0), criterion=criterion, **given) for one in (in_memory, way))
    assert found.before == expected.before
    pd.testing.assert_frame_equal(found.changes, expected.changes, check_exact=True)


@pytest.mark.slow
def test_every_kind_of_table_and_population_gives_the_same_plan_and_advice(tmp_path):
    table, population = sample(0), city(0)
    table.to_csv(tmp_path / "table.csv", index=False)
    population.to_parquet(tmp_path / "people.parquet")
    require = ["uniques.unique_share<=0.02", "population.k_map>=6", "presence.highest<=0.5"]
    files = tmp_path / "table.csv", tmp_path / "people.parquet"
    pairs = [(table, population), files, (table, files[1]), (pl.from_pandas(table), pl.from_pandas(population))]
    plans = [gpupif.protect(one, require, population=two, sampling_fraction=0.25, **KNOWN) for one, two in pairs]
    assert plans[0].optimal
    assert all(own.levels == plans[0].levels and own.risk == plans[0].risk for own in plans)
    advice = [gpupif.advise(one, criterion="population.k_map", population=two, **KNOWN) for one, two in pairs]
    for own in advice:
        pd.testing.assert_frame_equal(own.changes, advice[0].changes, check_exact=True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("criterion", QUESTIONS)
def test_advice_has_the_figures_of_risk_after_each_change(criterion):
    table, given = sample(0), arguments(QUESTIONS[criterion], 0)
    quantity = Criterion.from_text(criterion).quantity
    found = gpupif.advise(table, GIVEN, criterion, quasi_identifiers=COLUMNS, **given)
    for change in found.changes.to_dict("records"):
        plan = gpupif.Plan([], hierarchies={})
        known = [name for name in COLUMNS if name != change["column"]]
        if change["do"] == "recode":
            own = change["column"]
            plan = gpupif.Plan([gpupif.treatments.Recode(own, level=change["level"])], hierarchies={own: GIVEN[own]})
            known = COLUMNS
        measured = given | ({"population": gpupif.treat(city(0), plan).table} if "population" in given else {})
        risk = gpupif.risk(gpupif.treat(table, plan).table, known, groups=0, **measured, **quantity.arguments)
        assert change[found.criterion] == quantity.figure.find(risk)
    assert len(found.changes) == 5


@pytest.mark.parametrize(("words", "searches"), [("population", 1), ("population weights", 3)])
def test_the_classes_are_searched_once_for_all_criteria(words, searches, monkeypatch):
    """With weights, a search depends on the threshold of risk: here 0.2 of the default k, 0.1 and 0.3."""
    texts = ["population.k_map>=1", "population.journalist.at_risk(0.1)<=1", "classes.prosecutor.at_risk(0.3)<=1"]
    texts += ["estimated.k_map>=0", "estimated.individual.at_risk(0.1)<=1"] if "weights" in words else []
    table, given, seen = sample(0), arguments(words, 0), []
    criteria = CriterionSet.from_arguments(texts, COLUMNS, names=list(table), given=RiskArguments(**given))
    counted = replace(CountedTable.from_table(table), population=CountedTable.from_table(city(0), COLUMNS))
    search = counted_risk._search
    monkeypatch.setattr(counted_risk, "_search", lambda *these: seen.append(1) or search(*these))
    values = criteria.measure(counted, choose_engine(requested_device(counted.cells)))
    assert len(seen) == searches
    for criterion, value, *_ in values:
        quantity = criterion.quantity
        assert value == quantity.figure.find(gpupif.risk(table, COLUMNS, groups=0, **given, **quantity.arguments))


def test_disclosure_measures_count_weights_and_missing_values_match():
    table = sample(0)
    table.loc[:3, "age"] = None
    for arguments in ({"weights": "people"}, {"missing": "wildcard"}):
        found = gpupif.protect(
            table, ["t<=0.2", "k>=2"], hierarchies=GIVEN, quasi_identifiers=COLUMNS, sensitive="ill", **arguments
        )
        treated = gpupif.treat(table, found.plan).table
        after = gpupif.risk(treated, COLUMNS, "ill", groups=0, **arguments)
        assert found.is_met
        assert [own.value for own in found.risk] == [after.worst["t"], after.k]


CELLS = ["pif90<=1.2", "max cig<=2", "mean cig(ill)<=0.2", "mean csf<=0.2", "min cohort_size>=6", "known=1: p95 cig<=2"]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("zero_weights", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("criterion", [*CELLS, "max individual_risk<=0.2", "known=1: t<=0.3", "known=1: alpha<=0.7"])
def test_cells_are_scored_by_sampling_weights(criterion, zero_weights, monkeypatch):
    """The plan is the best of all nodes; `score` and `risk` measure each node."""
    table = sample(0)
    table.loc[::5, "people"] *= not zero_weights
    found = gpupif.protect(
        table, criterion, hierarchies=GIVEN, quasi_identifiers=COLUMNS, sensitive="ill", weights="people"
    )
    quantity = Criterion.from_text(criterion).quantity
    records = table.to_dict("records")
    monkeypatch.setattr(naive, "value", lambda rows, *_: weighted_value(pd.DataFrame(rows), quantity, criterion))
    node, _ = naive.best(records, HIERARCHIES, [criterion], COLUMNS)
    assert tuple(found.levels.values()) == node
    treated = gpupif.treat(table, found.plan).table
    assert found.risk[0].value == pytest.approx(weighted_value(treated, quantity, criterion), abs=1e-12)


def weighted_value(table, quantity, criterion):
    if isinstance(quantity, ModelQuantity):
        each = [gpupif.risk(table, known, "ill", groups=0, weights="people").worst for known in COLUMNS]
        return max(worst[quantity.model.name] for worst in each)
    measure = "cig" if quantity.measure is None else quantity.measure.name
    known = 1 if criterion.startswith("known") else COLUMNS
    scores = gpupif.score(table, measure, columns=[*COLUMNS, "ill"], known=known, weights="people")
    if quantity.measure is None:
        return scores.pif(quantity.percentile)
    values = np.asarray(scores.array(measure)).T[:, [2] if quantity.column else [0, 1, 2]]
    found = values.mean(axis=0) if quantity.percentile is None else np.percentile(values, quantity.percentile, axis=0)
    return min(found) if quantity.measure.low_is_risky else max(found)


BAD = {
    "a population that lacks rows": (
        "population.k_map>=2",
        {"population": city(0).iloc[:40]},
        "population: it lacks",
    ),
    "a value of the population without a place": (
        "population.k_map>=2",
        {"population": pd.concat([city(0), pd.DataFrame({"age": ["a9"], "home": ["h0"], "ill": ["flu"]})])},
        "population: hierarchies: column 'age'",
    ),
    "a population without a column": (
        "population.k_map>=2",
        {"population": city(0)[["age"]]},
        "column 'home'",
    ),
    "no population": ("population.k_map>=2", {}, "it needs population="),
    "a population that nothing needs": ("k>=2", {"population": city(0)}, "population: no criterion needs it"),
    "negative weights": ("estimated.k_map>=2", {"weights": "bad"}, "weights: column 'bad': expected"),
    "negative weights of cells": ("pif95<=3", {"weights": "bad"}, "weights: column 'bad': expected a number"),
    "weights that are known": (
        "estimated.k_map>=2",
        {"weights": "age"},
        "weights: column 'age' has another role too",
    ),
    "a number that a figure does not depend on": (
        "population.k_map(3)>=2",
        {"population": city(0)},
        "population.k_map depends on no number: expected no brackets, got (3)",
    ),
    "a threshold of a figure that depends on k": ("classes.rows_below(0.5)<=2", {}, "k: expected a whole number"),
    "an ambiguous name": ("k_map>=2", {}, "k_map may be population.k_map or estimated.k_map"),
    "any few columns": ("known=1: population.k_map>=2", {"population": city(0)}, "who knows a list of columns"),
    "a wrong game": ("games.prosecutor.attacked<=0", {"game": 3}, "game: expected a gpupif.models.Game"),
    "two sizes": (
        "uniques.uniques<=3",
        {"sampling_fraction": 0.1, "population_size": 50},
        "expected one of them, got both",
    ),
    "a fraction above 1": ("uniques.uniques<=3", {"sampling_fraction": 10}, "sampling_fraction: expected"),
    "suppressed cells by a population": (
        ["k>=2", "population.k_map>=2"],
        {"population": city(0), "suppress": 0.1, "cells": True},
        "cells: cells are not suppressed by criterion 'population.k_map>=2'",
    ),
    "missing values": ("k>=2", {"quasi_identifiers": ["gap", "home"], "missing": "error"}, "column 'gap': 1 missing"),
    "missing values in the population": (
        "population.k_map>=2",
        {"population": pd.concat([city(0), city(0).iloc[:1].assign(home=None)]), "missing": "error"},
        "population: column 'home': 1 missing value",
    ),
    "a wrong word": ("k>=2", {"missing": "drop"}, "missing: expected"),
    "a limit of global risk": ("risk_threshold.rows_above<=0", {}, "expected it in brackets"),
}


ADVISED = [case for case, (asked, given, _) in BAD.items() if isinstance(asked, str) and "suppress" not in given]


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line(case):
    criteria, arguments, message = BAD[case]
    refuses(message, gpupif.protect, require=criteria, **arguments)


@pytest.mark.parametrize("case", [case for case in ADVISED if case != "weights that nothing needs"])
def test_advise_gives_the_same_line(case):
    criteria, arguments, message = BAD[case]
    refuses(message, gpupif.advise, criterion=criteria, **arguments)


@pytest.mark.parametrize("done", ["keep", "identifiers", "pseudonymise"])
@pytest.mark.parametrize("more", [{}, {"suppress": 0.2, "cells": True}, {"quasi_identifiers": None}])
def test_the_column_of_households_may_be_an_identifier(done, more):
    """The plan measures by the column before it drops the column."""
    table = sample(0)[[*COLUMNS, "house"]].assign(house=[number // 2 for number in range(30)])
    criteria = ["households.risk.average<=0.9", *(["k>=2"] if more.get("suppress") else [])]
    arguments = {**KNOWN, "sensitive": None, "require": criteria, "household": "house", **more}
    found = gpupif.protect(table, **{done: "house"}, **arguments)
    assert found.levels == gpupif.protect(table, **arguments).levels
    treated = gpupif.treat(table, found.plan, key=bytes(32) if done == "pseudonymise" else None).table
    assert ("house" in treated) == (done != "identifiers")
    if done == "keep":
        assert treated["house"].tolist() == table["house"].tolist()


def refuses(message, call, **arguments):
    table = sample(0).assign(bad=[-1.0, *[1.0] * 29], gap=[None, *"ab" * 14, "a"])
    with pytest.raises(GpupifError) as caught:
        call(table, **(KNOWN | arguments))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["category", "wildcard"])
@pytest.mark.parametrize("weights", [None, "people"])
def test_certain_rows_are_those_of_risk(weights, missing):
    """Rows of weight 0 are no members of classes."""
    random = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "home": random.choice([*"abcdefgh", None], 30),
            "ill": random.choice([*"xyz", None], 30),
            "people": random.choice([0, 0, 2], 30),
        }
    )
    asked = {"quasi_identifiers": "home", "sensitive": "ill", "missing": missing, "weights": weights}
    certain = []
    for value in table["home"]:
        known = table["home"].isna() if pd.isna(value) else table["home"] == value
        if missing == "wildcard":
            known = known | table["home"].isna() | pd.isna(value)
        ill = table["ill"][known & (table["people"] > 0) if weights else known]
        values = {None if pd.isna(own) else own for own in ill}
        certain.append(len(values - {None} if missing == "wildcard" else values) == 1)
    found = gpupif.protect(table, "k>=2", suppress=0.9, **asked)
    assert found.certain_rows_before == {"ill": sum(certain)}
    assert gpupif.risk(table, **asked).attributes.loc["ill", "certain_rows"] == sum(certain)
