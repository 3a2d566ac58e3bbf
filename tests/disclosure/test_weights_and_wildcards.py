"""Disclosure measures with sampling weights, or with missing values that match every value, on every engine.

They are compared with their definitions, with scores of cells, and with sdcMicro; files and Dask give the same numbers.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure.class_risks import AttackRisk
from gpupif.disclosure.models import MODELS
from gpupif.engines.individual_risk import individual_risk
from gpupif.errors import InputError
from gpupif.pipeline import one_partition_memory
from gpupif.pipeline import partition_routes as shuffle
from tests.helpers import naive_disclosure as naive
from tests.helpers.configured import configured
from tests.helpers.dask_frames import cut
from tests.helpers.disclosure import check_worst_classes, outcome, what_is_found
from tests.helpers.naive import individual_risk as naive_risk
from tests.helpers.pieces import in_pieces, write_parts
from tests.helpers.populations import frames_of
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables
from tests.helpers.weights import some_weights
from tests.helpers.wildcards import sparse

KINDS = ("whole", "whole, nobody", "halves", "any", "any, nobody")


@st.composite
def questions(draw, exact=False):
    """Draw a table, perhaps weights, quasi-identifiers, sensitive attributes, and the treatment of missing values."""
    wildcard = draw(st.booleans())
    table = draw((sparse() if wildcard else tables()).filter(lambda table: len(table[next(iter(table))]) > 1))
    names = list(table)
    rows = len(table[names[0]])
    known = [name for name in names if draw(st.booleans())] or names[:1]
    weights = None
    if draw(st.booleans()):
        # Rows of weight 0 do not go with wildcards.
        kinds = [kind for kind in KINDS if not (exact and "any" in kind)]
        weights = some_weights(draw, rows, kinds)
    counts = weights or [1] * rows

    def tells(name):
        values = [value for value in table[name] if not (wildcard and value is None)]
        somebody = [v for v, w in zip(table[name], counts, strict=True) if w and not (wildcard and v is None)]
        return len(set(values)) > 1 and bool(somebody)

    sensitive = [name for name in names if name not in known and tells(name)]
    return table, known, sensitive, weights, "wildcard" if wildcard else "category"


def ask(table, weights, missing):
    """Return the table as a frame, and the arguments for weights and missing values."""
    frame = frame_of(table)
    if weights is None:
        return frame, {"missing": missing}
    return frame.assign(**{"how many": weights}), {"missing": missing, "weights": "how many"}


@pytest.mark.slow
@pytest.mark.every_engine
@given(question=questions(), least=st.integers(0, 2))
@SHARED_FIXTURES
def test_measures_are_as_defined(engine, question, least):
    table, known, sensitive, weights, missing = question
    frame, how = ask(table, weights, missing)
    counts, wildcard = weights or [1] * len(frame), missing == "wildcard"
    classes = naive.classes_of_rows(table, known, wildcard)
    every = {name: naive.expected_of_people(table, known, name, 1, counts, wildcard) for name in sensitive}
    if least > max(map(len, classes)):
        least = 1
    found = gpupif.risk(frame, known, sensitive or None, l=(least or None) if sensitive else None, groups=4, **how)
    sizes = list(map(len, classes))
    assert (found.k, found.classes.largest, found.classes.uniques) == (min(sizes), max(sizes), sizes.count(1))
    assert found.classes.rows_below == sum(size < 5 for size in sizes)
    assert found.classes.discernibility == sum(sizes)
    assert found.classes.prosecutor.average == pytest.approx(sum(1 / size for size in sizes) / len(sizes), rel=1e-13)
    overlapping = wildcard and any(value is None for name in known for value in table[name])
    distinct = {tuple(table[name][row] for name in known) for row in range(len(frame))}
    assert found.classes.classes == (None if overlapping else len(distinct))
    if sensitive:
        least = least or min(one["distinct_l"] for one in every.values())
    for name in sensitive:
        wanted = naive.expected_of_people(table, known, name, least, counts, wildcard)
        for model in MODELS:
            came = found.k if model == "k" else found.attributes.loc[name, model]
            assert came == pytest.approx(wanted[model], rel=1e-9, abs=1e-9), (name, model)
        values = [naive.people_by_value(table[name], counts, rows, wildcard) for rows in classes]
        assert found.attributes.loc[name, "certain_rows"] == sum(len(own) == 1 for own in values)
    groups = naive.groups_of_people(table, known, sensitive, counts, wildcard)
    assert len(found.groups) == min(4, len(groups))
    for group, wanted in zip(found.groups, groups, strict=False):
        values = {
            name: None if value is None or value != value else value for name, value in group.quasi_identifiers.items()
        }
        if weights is None:
            assert (values, group.rows, group.attribute) == wanted[:3]
        assert group.share == pytest.approx(wanted[4], rel=1e-9)
        assert group.entropy == pytest.approx(wanted[5], abs=1e-9)
    check_worst_classes(found, naive.worst_classes_of(table, known, sensitive, counts, wildcard, {}))


@pytest.mark.slow
@pytest.mark.every_engine
@given(question=questions())
@SHARED_FIXTURES
def test_the_estimated_population_is_as_defined(engine, question):
    table, known, _, weights, missing = question
    frame, how = ask(table, weights, missing)
    found = gpupif.risk(frame, known, threshold=0.3, **how).estimated
    if weights is None:
        assert found is None
        return
    sizes, naively, individual = naive.estimated_of(table, known, weights, missing == "wildcard")
    assert found.people == pytest.approx(math.fsum(weights), rel=1e-12)
    assert found.k_map == pytest.approx(min(people for _, people in sizes if people > 0), rel=1e-12)
    for came, wanted in ((found.journalist, naively), (found.individual, individual)):
        assert came.highest == pytest.approx(max(wanted), rel=1e-12)
        assert came.average == pytest.approx(math.fsum(wanted) / len(wanted), rel=1e-12)
        if all(abs(risk - 0.3) > 1e-9 for risk in wanted):
            assert came.at_risk == sum(risk > 0.3 for risk in wanted) / len(wanted)
    assert found.reidentifications == pytest.approx(math.fsum(individual), rel=1e-12)
    scores = gpupif.score(frame, "reidentification_risk", columns=known[:1], known=known, **how)
    assert found.journalist.highest == scores.reidentification_risk.to_numpy().max()


@st.composite
def sparse_samples(draw):
    """Draw some rows of a table with many missing values, and the table.

    Perhaps each column takes the values of the drawn rows in an order of its own.
    """
    population = draw(sparse())
    rows = len(next(iter(population.values())))
    drawn = draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=rows))
    mixed = draw(st.booleans())
    sample = {
        name: [values[row] for row in (draw(st.permutations(drawn)) if mixed else drawn)]
        for name, values in population.items()
    }
    known = draw(st.lists(st.sampled_from(list(sample)), min_size=1, unique=True))
    return sample, population, known


def expected_there(sample, population, known, threshold):
    """Return the risk of a sample in a population with overlapping classes, by its definition."""
    people = naive.people_there(sample, population, known)
    risks = [1 / size for size in people]
    at_risk = sum(risk > threshold for risk in risks) / len(risks)
    return {
        "rows": len(people),
        "classes": None,
        "k_map": min(people),
        "threshold": threshold,
        "journalist": {"highest": max(risks), "average": None, "at_risk": at_risk},
        "marketer": pytest.approx(math.fsum(risks) / len(risks), rel=1e-14),
        "presence": None,
    }


@pytest.mark.slow
@pytest.mark.every_engine
@given(question=sparse_samples(), lacks=st.sampled_from(["error", "count"]))
@SHARED_FIXTURES
def test_a_population_with_wildcards_is_as_defined(engine, question, lacks):
    sample, people, known = question
    frame, others = frames_of(sample, people)
    population = gpupif.Population(others, lacks)
    asked = {"population": population, "threshold": 0.3}
    if any(value is None for table in (sample, people) for name in known for value in table[name]):
        found = gpupif.risk(frame, known, **asked, missing="wildcard").population
        assert found.to_dict() == expected_there(sample, people, known, 0.3)
        one = frame.assign(one=0)
        scored = gpupif.score(
            one,
            "cohort_size",
            columns=["one"],
            known=known,
            population=gpupif.Population(others.assign(one=0), lacks),
            missing="wildcard",
        )
        assert scored.population_size["one"].tolist() == naive.people_there(sample, people, known)
    else:
        # Errors about rows that the population lacks have the same words, too.
        assert outcome(frame, known, **asked, missing="wildcard") == outcome(frame, known, **asked)


@pytest.mark.slow
@given(question=sparse_samples(), weighted=st.booleans(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_files_and_dask_give_the_same_population_risk(question, weighted, data, tmp_path_factory, dask_in_one_thread):
    sample, people, known = question
    frames = frames_of(sample, people)
    if weighted:
        frames = frames[0].assign(w=2.0), frames[1]
    edges = [data.draw(st.lists(st.integers(0, len(frame)), max_size=2)) for frame in frames]
    place = tmp_path_factory.mktemp("t")
    paths = [
        write_parts(place / name, frame, cuts)
        for name, frame, cuts in zip(("in", "people"), frames, edges, strict=True)
    ]
    rows, how = sum(map(len, frames)), {"missing": "wildcard", "weights": "w" if weighted else None, "device": "cpu"}

    def ask(table, population, **options):
        return outcome(table, known, population=population, **how, **options)

    expected = ask(*frames)
    with in_pieces(data.draw(st.integers(1, rows)), 2 * rows):
        assert ask(*paths, memory_limit="64GiB") == ask(*paths)
    for other in (frames[1], cut(frames[1], edges[1])):
        assert ask(cut(frames[0], edges[0]), other) == expected


@pytest.mark.slow
@given(question=questions())
@settings(SHARED_FIXTURES, max_examples=15)
def test_measures_are_the_extremes_of_scores(question):
    """Compare to the last bit, over rows of a weight above 0."""
    table, known, sensitive, weights, missing = question
    if not sensitive:
        return
    frame, how = ask(table, weights, missing)
    found = gpupif.risk(frame, known, sensitive, **how)
    cells = {"alpha": "recursive_1" if missing == "wildcard" else "posterior", "t": "emd", "entropy_l": "entropy"}
    somebody = np.array(weights or [1] * len(frame)) > 0
    measures = [*cells.values(), "distinct_values"]
    scores = gpupif.score(frame, measures, columns=sensitive, known=known, **how)
    for name in sensitive:
        values = {measure: scores[measure][name].to_numpy()[somebody] for measure in measures}
        assert found.attributes.loc[name, "alpha"] == np.nanmax(values[cells["alpha"]])
        assert (
            found.attributes.loc[name, "distinct_l"] == values["distinct_values"][values["distinct_values"] > 0].min()
        )
        bits = math.exp2(np.nanmin(values["entropy"]))
        assert found.attributes.loc[name, "entropy_l"] == pytest.approx(bits, rel=1e-12)


@pytest.mark.slow
@given(question=questions(), chosen=st.none() | st.integers(1, 2), data=st.data())
@settings(SHARED_FIXTURES, max_examples=15)
def test_files_and_dask_give_the_same_numbers(question, chosen, data, tmp_path_factory, dask_in_one_thread):
    table, known, sensitive, weights, missing = question
    frame, how = ask(table, weights, missing)
    given_l = chosen if sensitive else None
    options = {"l": given_l, "groups": data.draw(st.integers(0, 4)), "k": 2, "device": "cpu", **how}
    asked = (known, sensitive or None)
    expected = outcome(frame, *asked, **options)
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=3))
    folder = write_parts(tmp_path_factory.mktemp("t") / "in", frame, edges)
    # If missing values match every value, all distinct rows have to fit into memory.
    rows = len(frame) if missing == "wildcard" else data.draw(st.integers(1, len(frame) + 1))
    with in_pieces(data.draw(st.integers(1, len(frame))), rows):
        assert outcome(folder, *asked, memory_limit="64GiB", **options) == outcome(folder, *asked, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffle, "HEAVY", data.draw(st.sampled_from([0.0, 0.5, 10.0])))
        assert outcome(cut(frame, edges), *asked, **options) == expected


@pytest.mark.slow
@given(question=questions().filter(lambda question: question[3] and not all(question[3])))
@settings(SHARED_FIXTURES, max_examples=25)
def test_rows_of_weight_zero_change_no_figure_of_sensitive_attributes(question):
    """k counts rows; all else is of the people whom rows stand for."""
    table, known, sensitive, weights, missing = question
    frame, how = ask(table, weights, missing)
    some = frame[frame["how many"] > 0].reset_index(drop=True)
    sensitive = [name for name in sensitive if len({*some[name].dropna()}) > 1]
    if not sensitive:
        return
    least = gpupif.risk(some, known, sensitive, **how).l_values
    found, expected = (gpupif.risk(own, known, sensitive, l=least, **how) for own in (frame, some))
    certain = ["certain_rows", "homogeneous_classes"]
    pd.testing.assert_frame_equal(found.attributes.drop(columns=certain), expected.attributes.drop(columns=certain))
    assert {**found.worst, "k": 0} == {**expected.worst, "k": 0}


# A value between two others, and one beyond them, that rows of weight 0 alone have.
STEPS = pd.DataFrame({"q": list("aabb"), "s": [1, 2, 2, 4], "w": [1, 2, 1, 2]})
NOBODY = pd.DataFrame({"q": list("aab"), "s": [3, 9, 0], "w": [0, 0, 0]})
OF_TEXTS = {1: "one", 2: "two", 4: "four", 3: "three", 9: "nine", 0: "none"}


@pytest.mark.parametrize("distance", [None, ["none", "one", "two", "three", "four", "nine"]])
@pytest.mark.parametrize("way", ["memory", "files", "Dask"])
def test_a_value_that_nobody_has_adds_no_step(way, distance, tmp_path, dask_in_one_thread):
    how = {"distance": distance, "weights": "w"}

    def value(table):
        table = table if distance is None else table.assign(s=table["s"].map(OF_TEXTS))
        if way == "files":
            folder = write_parts(tmp_path / str(len(table)), table, [2])
            with in_pieces(2, 2):
                return configured(gpupif.risk, folder, "q", "s", memory_limit="64GiB", **how)
        return gpupif.risk(table if way == "memory" else cut(table, [2]), "q", "s", **how)

    found, expected = value(pd.concat([NOBODY, STEPS], ignore_index=True)), value(STEPS)
    # One of three people of the first class has the first of three values, one of six of the table.
    assert found.attributes.loc["s", "t"] == expected.attributes.loc["s", "t"] == pytest.approx(1 / 4)
    assert found.attributes.loc["s", "values"] == 3


# Tables of sdcMicro's tests of frequency counts and individual risk, with its figures. Its counts of complete rows hold
# with missing values, too, since no row lacks all values.
FEW = {"a": [2, 3, 2, 2, 3, 3, 1, 2], "b": [3, 3, 3, 3, 3, 3, 4, 3], "c": [1, 3, 1, 2, 1, 1, 1, 1]}
PEOPLE = [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0]
HOLES = {**FEW, "c": [1, 3, None, 2, 1, 1, None, 1]}
MORE = {"a": [2, 3, None, 2, 3, 3, 1, 2], "b": [3, 3, None, 3, 3, 3, 4, 3], "c": [None] * 8}
ONE = {"a": [2, 3, None, 2, 1, None, 1, 2]}
THIRD = {**HOLES, "a": [2, 3, 2, 2, 3, 3, 1, None]}
FREQUENCIES = [
    (FEW, [3, 1, 3, 1, 2, 2, 1, 3], [108.0, 45.5, 108.0, 17.0, 100.0, 100.0, 123.5, 108.0]),
    (HOLES, [3, 1, 4, 2, 2, 2, 1, 3], [108.0, 45.5, 125.0, 56.0, 100.0, 100.0, 123.5, 108.0]),
    (MORE, [4, 4, 8, 4, 4, 4, 2, 4], [125.0, 184.5, 394.0, 125.0, 184.5, 184.5, 162.5, 125.0]),
    (ONE, [5, 3, 8, 5, 4, 8, 4, 5], [133.0, 92.5, 394.0, 133.0, 262.5, 394.0, 262.5, 133.0]),
]
EXACT = [
    (FEW, [0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297]),
    (
        THIRD,
        [0.013552968, 0.085791288, 0.010504889, 0.032466112, 0.009756889, 0.009756889, 0.039316254, 0.005962551],
    ),
]


@pytest.mark.every_engine
@pytest.mark.parametrize(("table", "rows", "people"), FREQUENCIES)
def test_frequency_counts_are_those_of_sdcmicro(engine, table, rows, people):
    frame, how = ask(table, PEOPLE, "wildcard")
    found = gpupif.risk(frame, list(table), **how)
    assert found.k == min(rows)
    assert found.classes.uniques == rows.count(1)
    assert found.classes.discernibility == sum(rows)
    assert found.classes.marketer == pytest.approx(sum(1 / one for one in rows) / 8)
    assert found.estimated.k_map == min(people)
    assert found.estimated.journalist.average == pytest.approx(sum(1 / one for one in people) / 8)


@pytest.mark.parametrize(("table", "risks"), EXACT)
def test_individual_risk_is_that_of_sdcmicro(table, risks):
    """Compare with its method "exact"; its global risk is the mean and the sum."""
    frame, how = ask(table, PEOPLE, "wildcard")
    found = gpupif.risk(frame, list(table), **how).estimated
    assert found.individual.highest == pytest.approx(max(risks), rel=1e-7)
    assert found.reidentifications == pytest.approx(sum(risks), rel=1e-7)
    assert found.individual.average == pytest.approx(sum(risks) / 8, rel=1e-7)


@given(
    rows=st.lists(st.integers(1, 40) | st.integers(1, 3000), min_size=1, max_size=4),
    times=st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 1 + 1e-9, 1.1, 3.99, 4.0, 4.01, 1e3, 1e9, 1e300]), min_size=4, max_size=4
    ),
)
@settings(deadline=None, max_examples=15)
def test_individual_risk_is_exact_to_the_last_bits(rows, times):
    """Check that the risk of a class does not depend on the other classes in the array."""
    sizes = np.array(rows)
    people = sizes * np.array(times[: len(rows)])
    found = individual_risk(sizes, people)
    for place, both in enumerate(zip(rows, people.tolist(), strict=True)):
        assert individual_risk(sizes[place : place + 1], people[place : place + 1])[0] == found[place]
        if both[0] <= 40:
            assert found[place] == pytest.approx(naive_risk(*both), rel=1e-14)


@pytest.mark.slow
@given(question=questions(exact=True))
@settings(SHARED_FIXTURES, max_examples=10)
def test_whole_weights_count_as_copies_of_rows(question):
    """Repeat each row as often as its weight says: shares stay, k does not."""
    table, known, sensitive, weights, missing = question
    if not sensitive or weights is None or any(weight != int(weight) for weight in weights):
        return
    frame, how = ask(table, weights, missing)
    found = gpupif.risk(frame, known, sensitive, **how)
    copies = frame.loc[frame.index.repeat([int(weight) for weight in weights])].reset_index(drop=True)
    if any(copies[name].nunique(dropna=missing == "wildcard") < 2 for name in sensitive):
        return
    again = gpupif.risk(copies, known, sensitive, missing=missing)
    for model, worst in found.worst.items():
        if model not in ("k", "t"):
            assert worst == again.worst[model], model
    assert found.k == gpupif.models.k_anonymity(frame, known, missing=missing)
    assert gpupif.models.k_anonymity(frame, known, **how) == found.k


@pytest.mark.slow
@given(question=questions())
@settings(SHARED_FIXTURES, max_examples=10)
def test_wildcards_without_missing_values_change_nothing(question):
    table, known, sensitive, weights, _ = question
    full = {name: [0 if value is None else value for value in values] for name, values in table.items()}
    full = {name: list(map(str, values)) for name, values in full.items()}
    sensitive = [name for name in sensitive if len(set(full[name])) > 1]
    frame, how = ask(full, weights, "wildcard")
    found = outcome(frame, known, sensitive or None, device="cpu", **how)
    assert found == outcome(frame, known, sensitive or None, device="cpu", **how | {"missing": "category"})


def test_more_missing_values_never_lower_k():
    """Suppress values: neither k nor the people of any class get fewer."""
    frame = gpupif.datasets.census(400).astype(object)
    known = ["age", "sex", "region", "education"]
    random = np.random.default_rng(2)
    frame["w"] = random.integers(1, 90, len(frame))
    before = gpupif.risk(frame, known, "occupation", weights="w", missing="wildcard", models="k")
    holes = frame.copy()
    for name in known:
        holes.loc[random.random(len(frame)) < 0.1, name] = None
    after = gpupif.risk(holes, known, "occupation", weights="w", missing="wildcard", models="k")
    assert after.k >= before.k
    assert after.classes.uniques < before.classes.uniques
    assert after.estimated.reidentifications < before.estimated.reidentifications
    assert after.classes.classes is None
    assert "overlapping classes" in str(after)
    assert "individual risk, average" in str(after)


FRAME = pd.DataFrame({"age": [1, 1, 2, None], "ill": list("aaba"), "w": [1.0, 2, 3, 4]})
BAD = [
    ({"sampling_fraction": 0.5}, "sampling_fraction: does not go with missing='wildcard': classes that overlap cannot"),
    ({"population_size": 50}, "population_size: does not go with missing='wildcard': classes that overlap cannot"),
    ({"sensitive": "gone"}, "sensitive: column 'gone': expected at least two different values, got none"),
    ({"sensitive": "one"}, "sensitive: column 'one': expected at least two different values, got 'x' in all rows"),
    ({"weights": "v"}, "weights: no column 'v' in the table"),
    ({"weights": ["w"]}, "weights: expected the name of a column of the table, got list"),
    ({"weights": "ill"}, "weights: column 'ill': expected numbers of people, 0 or more; none of its values"),
    ({"weights": "w", "missing": "category", "population_size": 50}, "population_size: does not go with weights=: it"),
    ({"weights": "none", "missing": "category"}, "weights: column 'none': expected weights that sum to more than 0"),
    ({"missing": "wild"}, "missing: expected 'category' or 'error' or 'wildcard', got 'wild'"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_input_is_refused(options, message):
    frame = FRAME.assign(gone=None, one=["x", None, "x", None], none=0)
    with pytest.raises(InputError, match=message):
        gpupif.risk(frame, "age", **{"sensitive": "ill", "missing": "wildcard", **options})


def test_functions_take_weights_and_wildcards():
    known, how = "age", {"weights": "w", "missing": "wildcard"}
    found = gpupif.risk(FRAME, known, "ill", **how)
    assert gpupif.models.k_anonymity(FRAME, known, **how) == found.k == 2
    assert gpupif.models.alpha_k_anonymity(FRAME, known, "ill", **how) == (found.worst["alpha"], 2)
    assert gpupif.models.l_diversity(FRAME, known, "ill", **how) == found.worst["distinct_l"]
    assert gpupif.models.l_diversity(FRAME, known, "ill", "entropy", **how) == found.worst["entropy_l"]
    assert gpupif.models.l_diversity(FRAME, known, "ill", "recursive", **how) == (
        found.worst["recursive_c"],
        found.l_values,
    )
    assert gpupif.models.t_closeness(FRAME, known, "ill", **how) == found.worst["t"]
    for function, model in (
        (gpupif.models.basic_beta_likeness, "basic_beta"),
        (gpupif.models.enhanced_beta_likeness, "enhanced_beta"),
        (gpupif.models.delta_disclosure, "delta"),
    ):
        assert function(FRAME, known, "ill", **how) == found.worst[model]


def test_weights_may_be_a_quasi_identifier():
    found = gpupif.risk(FRAME, ["w", "age"], "ill", weights="w")
    assert (found.k, found.estimated.k_map) == (1, 1.0)


def test_beta_and_delta_are_those_computed_by_hand():
    """Include values of a class that the row whose class it is does not have."""
    frame = pd.DataFrame({"age": [1, 1, 2, 2, None], "ill": list("aabbc")})
    found = gpupif.risk(frame, "age", "ill", missing="wildcard")
    # Shares of a, b, c are 2/5, 2/5, 1/5 in all rows, and 2/3, 0, 1/3 in the three rows that match age 1.
    assert found.worst["basic_beta"] == found.worst["enhanced_beta"] == pytest.approx(2 / 3)
    assert found.worst["delta"] == pytest.approx(math.log(5 / 3))
    # The only known value in rows that match age 3 is b, whose share in the table is 1/4.
    frame = pd.DataFrame({"age": [1, 1, 1, 3, None], "ill": ["a", "a", "a", None, "b"]})
    found = gpupif.risk(frame, "age", "ill", missing="wildcard")
    assert found.worst["basic_beta"] == pytest.approx(3)
    assert found.worst["enhanced_beta"] == math.inf
    assert found.worst["delta"] == pytest.approx(math.log(4))


def test_rows_of_weight_0_are_in_no_class():
    frame = FRAME.assign(w=[1, 1, 0, 0])
    found = gpupif.risk(frame, "age", "ill", weights="w", missing="category")
    assert found.k == 1
    assert found.estimated.k_map == 2.0
    assert found.estimated.journalist == AttackRisk(0.5, 0.25, 1.0 / 2)
    # Both rows with a weight above 0 have the same value.
    assert (found.worst["alpha"], found.worst["delta"]) == (1.0, 0.0)
    assert [group.rows for group in found.groups] == [2]


def test_distinct_rows_with_wildcards_have_to_fit_into_memory(tmp_path, monkeypatch, dask_in_one_thread):
    frame = gpupif.datasets.census(60).astype(object)
    frame.loc[3, "age"] = None
    folder = write_parts(tmp_path / "in", frame.assign(age=frame["age"].astype("Int64")))
    with (
        in_pieces(20, 30),
        pytest.raises(InputError, match=r"missing: 'wildcard' compares all distinct rows .* than 30"),
    ):
        configured(gpupif.risk, folder, ["age", "region"], "sex", missing="wildcard", memory_limit="64GiB")
    monkeypatch.setattr(one_partition_memory, "room", lambda: 100)
    with pytest.raises(
        InputError, match=r"missing: 'wildcard': all distinct rows have to fit into the memory of one worker"
    ):
        gpupif.risk(cut(frame, [20]), ["age", "region"], "sex", missing="wildcard")


PEOPLE_THERE = pd.DataFrame({"age": [1, 1, 1, 2, 3, None], "home": list("aabbbb")})


@pytest.mark.parametrize("kind", ["memory", "files", "dask"])
def test_a_population_with_wildcards_is_that_counted_by_hand(kind, tmp_path, dask_in_one_thread):
    sample = pd.DataFrame({"age": [1, 2, None], "home": list("aba")})
    table, people = sample, PEOPLE_THERE
    if kind == "files":
        table, people = write_parts(tmp_path / "in", sample, [1]), write_parts(tmp_path / "people", people, [2])
    if kind == "dask":
        table, people = cut(sample, [1]), cut(people, [2])
    found = configured(
        gpupif.risk, table, ["age", "home"], population=people, threshold=0.4, missing="wildcard", device="cpu"
    )
    # 1 a matches two people 1 a; 2 b matches 2 b and the b of unknown age; an a of unknown age matches both 1 a.
    there = found.population
    assert (there.k_map, there.classes, there.marketer) == (2, None, 0.5)
    assert (there.journalist.highest, there.journalist.at_risk) == (0.5, 1.0)
    assert math.isnan(there.journalist.average)
    assert "journalist risk, highest" in str(found)
    assert "journalist risk, average" not in str(found)


def test_values_that_a_population_lacks_are_named():
    sample = pd.DataFrame({"age": [1, 7, 7, None], "home": list("abbb")})
    asked = {"missing": "wildcard", "population": PEOPLE_THERE}
    message = "population: column 'age' has 7.0 nowhere in it, which is in 2 of the table's rows"
    with pytest.raises(InputError, match=message):
        gpupif.risk(sample, ["age", "home"], **asked)
    for frame in (sample, cut(sample, [1])):
        counted = {**asked, "population": gpupif.Population(PEOPLE_THERE, "count")}
        found = configured(gpupif.risk, frame, ["age", "home"], device="cpu", **counted).population
        # 7 b matches the row of unknown age; a b of unknown age matches all four rows.
        assert (found.k_map, found.marketer) == (1, (1 / 2 + 1 + 1 + 1 / 4) / 4)


def test_distinct_rows_of_both_tables_have_to_fit_into_memory(tmp_path, monkeypatch, dask_in_one_thread):
    people = gpupif.datasets.census(90, columns=4).astype(object)
    people.loc[3, "region"] = None
    sample, known = people.iloc[10:14], ["age", "region"]
    folders = [write_parts(tmp_path / name, one.astype({"age": "int64"})) for name, one in
               (("in", sample), ("people", people))]  # fmt: skip
    with in_pieces(20, 30), pytest.raises(InputError, match=r"missing: 'wildcard' compares all distinct rows .* than"):
        configured(gpupif.risk, folders[0], known, population=folders[1], missing="wildcard", memory_limit="64GiB")
    monkeypatch.setattr(one_partition_memory, "room", lambda: 2000)
    with pytest.raises(InputError, match=r"missing: 'wildcard': all distinct rows have to fit .* of the population"):
        gpupif.risk(cut(sample, []), known, population=people, missing="wildcard")


def test_each_measure_has_a_text_for_weights_and_wildcards():
    for model in MODELS.values():
        assert model.weights, model.name
        assert model.wildcards, model.name


def test_the_command_takes_weights_and_wildcards(run, folder):
    FRAME.to_csv(folder / "t.csv", index=False)
    command = ("risk", "t.csv", "--quasi-identifiers", "age", "--sensitive", "ill")
    ended = run(*command, "--weights", "w", "--missing", "wildcard", "--json")
    assert (ended.code, ended.err) == (0, "")
    expected = gpupif.risk(FRAME.astype({"age": "Int64"}), "age", "ill", weights="w", missing="wildcard")
    document = json.loads(ended.out)
    assert document["estimated"] == json.loads(expected.to_json())["estimated"]
    assert document["worst"] == json.loads(expected.to_json())["worst"]
    ended = run(*command, "--missing", "wildcard", "--sampling-fraction", "0.5")
    assert ended.code == 2
    assert ended.err.startswith("gpupif: error: --sampling-fraction: does not go with --missing wildcard: classes that")
    assert run(*command, "--weights", "v").err.startswith("gpupif: error: --weights: no column 'v' in the table")


@pytest.mark.slow
def test_partitions_of_every_size_give_the_same_numbers(tmp_path):
    """Cut down to one class, searched attribute by attribute, with weights that differ in all rows."""
    frame = gpupif.datasets.census(300).assign(w=np.random.default_rng(0).random(300))
    folder = write_parts(tmp_path / "in", frame, [90, 200])
    asked = (["sex"], ["region", "occupation", "education"])
    expected = what_is_found(gpupif.risk(folder, *asked, weights="w"))
    for rows in (5, 60, 1000):
        with in_pieces(50, rows):
            found = configured(gpupif.risk, folder, *asked, weights="w", memory_limit="64GiB")
        assert what_is_found(found) == expected
