"""Entropies and toxic pairs of rows with sampling weights: as defined, and with the same bits in every way."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import toxic_pairs
from tests.helpers import naive
from tests.helpers.counting_ways import OTHERS, WAYS, in_memory
from tests.helpers.tables import SHARED_FIXTURES, SIMULATED, frame_of, tables
from tests.helpers.weights import some_weights

pytestmark = [pytest.mark.every_engine]

NEAR = {"abs": 1e-11}
KINDS = ("whole", "whole, nobody", "halves", "any", "any, nobody")


@st.composite
def weighted_tables(draw, most_columns=4):
    """Draw a table, and a weight for each of its rows."""
    table = draw(tables(most_columns=most_columns))
    return table, some_weights(draw, len(next(iter(table.values()))), KINDS)


def with_weights(table, weights):
    return frame_of(table).assign(people=np.array(weights, float))


def joint(table, weights, names):
    cells = list(zip(*(table[name] for name in names), strict=True)) if names else [()] * len(weights)
    return naive.entropy_of(naive.amounts(cells, weights))


def everything(way, frame, names):
    """Return all entropies of a frame, by name. names: its columns without the column of weights."""
    one, other = names[: len(names) // 2 + 1], names[len(names) // 2 :]
    how = {"weights": "people"}
    return {
        "joint": way(gpupif.information.entropy, frame, **how),
        "conditional": way(gpupif.information.conditional_entropy, frame, one, other, **how),
        "on nothing": way(gpupif.information.conditional_entropy, frame, one, [], **how),
        "mutual": way(gpupif.information.mutual_information, frame, one, other, **how),
        "total": way(gpupif.information.total_correlation, frame, **how),
        "dual": way(gpupif.information.dual_total_correlation, frame, **how),
        "residual": way(gpupif.information.residual_entropy, frame, **how),
    }


def defined(table, weights):
    """Return all entropies by their definitions."""
    names = list(table)
    one, other = names[: len(names) // 2 + 1], names[len(names) // 2 :]

    def h(columns):
        return joint(table, weights, list(dict.fromkeys(columns)))

    whole, residual = h(names), sum(h(names) - h([two for two in names if two != name]) for name in names)
    return {
        "joint": whole,
        "conditional": h([*one, *other]) - h(other),
        "on nothing": h(one),
        "mutual": h(one) + h(other) - h([*one, *other]),
        "total": sum(h([name]) for name in names) - whole,
        "dual": whole - residual,
        "residual": residual,
    }


@pytest.mark.slow
@given(drawn=weighted_tables())
@settings(SHARED_FIXTURES, max_examples=10)
def test_entropies_are_as_defined(drawn):
    table, weights = drawn
    found = everything(in_memory, with_weights(table, weights), list(table))
    for name, expected in defined(table, weights).items():
        assert found[name] == pytest.approx(expected, **NEAR), name


def toxic_defined(table, weights, size):
    """Return the figures of each set of columns, and rarity and weight of each combination of values."""
    total, sets, values = math.fsum(weights), {}, {}
    for names in combinations(table, size):
        people = defaultdict(list)
        for cell, weight in zip(zip(*(table[name] for name in names), strict=True), weights, strict=True):
            people[cell].append(weight)
        sums = {cell: math.fsum(parts) for cell, parts in people.items() if any(parts)}
        shares = {name: naive.shares_of(naive.amounts(table[name], weights)) for name in names}
        sets[names] = {
            "joint_entropy": joint(table, weights, names),
            "shared": sum(joint(table, weights, [name]) for name in names) - joint(table, weights, names),
            "unique_rows": math.fsum(people for people in sums.values() if people <= 1),
            "smallest_cohort": min(sums.values()),
            "combinations": len(sums),
        }
        for cell, people in sums.items():
            made = math.prod(shares[name][value] for name, value in zip(names, cell, strict=True))
            values[names, cell] = (math.log2(made / (people / total)), people)
    return sets, values


def plain(value):
    return value.item() if hasattr(value, "item") else value


@given(drawn=weighted_tables(), size=st.sampled_from([2, 3]), top=st.sampled_from([1, 3, 1000]))
@settings(SHARED_FIXTURES, max_examples=10 if SIMULATED else 15)
def test_toxic_pairs_are_as_defined(drawn, size, top):
    table, weights = drawn
    if len(table) < size:
        return
    found = in_memory(toxic_pairs, with_weights(table, weights), size, top=top, weights="people")
    sets, values = toxic_defined(table, weights, size)
    assert found.people == pytest.approx(math.fsum(weights))
    assert found.rows == len(weights)
    for record in found.pairs.to_dict("records"):
        expected = sets[tuple(record[f"column_{place}"] for place in range(1, size + 1))]
        shared = record["mutual_information" if size == 2 else "total_correlation"]
        assert shared == pytest.approx(expected.pop("shared"), **NEAR)
        assert record["unique_share"] == pytest.approx(expected["unique_rows"] / math.fsum(weights))
        for name, value in expected.items():
            assert record[name] == pytest.approx(value, **NEAR), name
    assert len(found.values) == min(top, len(values))
    for record in found.values.to_dict("records"):
        places = range(1, size + 1)
        cell = tuple(plain(record[f"value_{place}"]) for place in places)
        rarity, people = values[tuple(record[f"column_{place}"] for place in places), cell]
        assert record["rarity"] == pytest.approx(rarity, **NEAR)
        assert record["count"] == pytest.approx(people)
        assert record["expected"] == pytest.approx(people * 2**rarity)
        assert record["information"] == pytest.approx(-math.log2(people / math.fsum(weights)), **NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("way", OTHERS)
@given(drawn=weighted_tables(most_columns=3))
@settings(SHARED_FIXTURES, max_examples=2 if SIMULATED else 3)
def test_every_way_to_run_gives_the_same_bits(way, drawn):
    table, weights = drawn
    frame = with_weights(table, weights)
    assert everything(way, frame, list(table)) == everything(in_memory, frame, list(table))
    if len(table) > 1:
        one, other = (run(toxic_pairs, frame, top=7, weights="people") for run in (way, in_memory))
        pd.testing.assert_frame_equal(one.pairs, other.pairs, check_exact=True)
        pd.testing.assert_frame_equal(one.values, other.values, check_exact=True)
        assert (one.rows, one.people, one.columns) == (other.rows, other.people, other.columns)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_whole_weights_count_as_copies_of_rows_and_weight_0_as_none(way):
    """Compare to the last bit, also with columns of very many values, and with many sets of columns."""
    random = np.random.default_rng(8)
    rows = 60 if SIMULATED else 900
    sizes = {"a": 3, "b": rows, "c": rows, "d": rows // 2}
    frame = pd.DataFrame({name: random.integers(0, size, rows) for name, size in sizes.items()})
    frame = pd.concat([frame, frame[: rows // 3]], ignore_index=True)
    frame["people"] = random.integers(0, 4, len(frame))
    repeated = frame.loc[frame.index.repeat(frame["people"])].reset_index(drop=True)
    names = list(sizes)
    found = everything(way, frame, names)
    once = everything(in_memory, repeated.assign(people=1), names)
    assert found == once
    assert found["residual"] == in_memory(gpupif.information.residual_entropy, repeated[names])
    weighed, plainly = way(toxic_pairs, frame, weights="people"), in_memory(toxic_pairs, repeated[names])
    assert weighed.columns == plainly.columns == names
    assert weighed.people == plainly.rows == len(repeated)
    unweighted = plainly.pairs.drop(columns=["distinction", "separation"])
    pd.testing.assert_frame_equal(weighed.pairs, unweighted, check_exact=True, check_dtype=False)
    pd.testing.assert_frame_equal(weighed.values, plainly.values, check_exact=True, check_dtype=False)
    assert weighed.pairs["smallest_cohort"].dtype == weighed.values["count"].dtype == float


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", [False, True])
def test_only_exact_independence_gives_0(way, broken):
    """Check that whole numbers, even large ones, decide about 0, and that values of weight 0 do not matter."""
    grid = np.array(np.meshgrid(range(4), range(3), range(2))).reshape(3, -1).T
    frame = pd.DataFrame(grid, columns=list("abc"))
    frame["people"] = 1e9 * (1 + frame["a"]) * (3 + 2 * frame["b"]) * (5 - frame["c"]) / 8
    frame.loc[len(frame)] = [9, 9, 9, 0]
    if broken:
        frame.loc[0, "people"] += 1e5
    informations = [
        way(gpupif.information.mutual_information, frame, "a", ["b", "c"], weights="people"),
        way(gpupif.information.total_correlation, frame, weights="people"),
        way(gpupif.information.dual_total_correlation, frame, weights="people"),
        *way(toxic_pairs, frame, weights="people").pairs["mutual_information"],
        *way(toxic_pairs, frame, 3, weights="people").pairs["total_correlation"],
    ]
    assert all((value > 0) == broken for value in informations)


def test_a_named_column_of_weights_is_counted_too():
    frame = pd.DataFrame({"a": ["x", "x", "y"], "people": [1.0, 1.0, 2.0]})
    assert gpupif.information.entropy(frame, weights="people") == 1
    assert gpupif.information.entropy(frame, "people", weights="people") == 1
    assert gpupif.information.mutual_information(frame, "a", "people", weights="people") == 1
    found = toxic_pairs(frame, columns=["people", "a"], weights="people")
    assert found.columns == ["people", "a"]
    assert found.pairs["joint_entropy"].tolist() == [1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"weights": "w"}, "weights: no column 'w'"),
        ({"weights": ["a"]}, "weights: expected the name of a column"),
        ({"weights": "text"}, "weights: column 'text'.*expected a number of people"),
        ({"weights": "negative"}, "weights: column 'negative'.*expected a number of people, 0 or more, got -1"),
        ({"weights": "nobody"}, "weights: column 'nobody'.*sum to more than 0"),
        (
            {"missing": "wildcard"},
            "missing='wildcard': not defined for entropies, toxic pairs and quasi-identifiers: .* no distribution",
        ),
    ],
)
def test_bad_input_is_refused_in_the_same_words_everywhere(way, options, words):
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1, 1, 2]})
    frame = frame.assign(text=["1", "2", "z"], negative=[1, -1, 0], nobody=0.0)
    for function in (gpupif.information.entropy, toxic_pairs):
        with pytest.raises(gpupif.InputError, match=words):
            way(function, frame, columns=["a", "b"], **options)


def test_a_table_of_weights_alone_is_refused():
    with pytest.raises(gpupif.InputError, match="a column beside the column of weights"):
        gpupif.information.entropy(pd.DataFrame({"people": [1, 2]}), weights="people")


def test_the_commands_take_weights(folder, run):
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("uvuv"), "people": [1.5, 0.0, 2.5, 0.5]})
    frame.to_csv(folder / "t.csv", index=False)
    told = run("toxic", "t.csv", "--weights", "people", "--json")
    document = json.loads(told.out)
    assert (told.code, document["columns"], document["rows"], document["people"]) == (0, ["a", "b"], 4, 4.5)
    assert [record["count"] for record in document["values"]] == [2.5, 1.5, 0.5]
    assert "4 rows for 4.5 people x 2 columns" in run("toxic", "t.csv", "--weights", "people").out
    for more in ([], ["--memory-limit", "16GiB"]):
        told = run("toxic", "t.csv", "--missing", "wildcard", *more)
        assert (told.code, told.out) == (2, "")
        assert told.err.startswith("gpupif: error: --missing wildcard: not defined for entropies")
        told = run("toxic", "t.csv", "--weights", "w", *more)
        assert "--weights: no column 'w'" in told.err
