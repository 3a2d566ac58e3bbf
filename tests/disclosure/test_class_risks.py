"""Risk by sizes of equivalence classes, compared with loops over the rows."""

from __future__ import annotations

import doctest
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
import gpupif.disclosure.class_risks
from gpupif.disclosure.class_risks import class_risks
from gpupif.disclosure.population_risks import population_risks
from gpupif.errors import InputError
from gpupif.utils.information import Sizes

pytestmark = pytest.mark.every_engine

class_sizes = st.lists(st.integers(1, 12), min_size=1, max_size=30)


@pytest.mark.slow
@given(sizes=class_sizes, k=st.integers(1, 8), threshold=st.sampled_from([None, 0.05, 0.09, 0.2, 1 / 3, 0.5, 1.0]))
def test_class_risks_are_those_of_loops_over_rows(sizes, k, threshold):
    found = class_risks(sizes, k=k, threshold=threshold)
    of_row = [size for size in sizes for _ in range(size)]
    rows = len(of_row)
    assert found.rows == rows
    assert found.classes == len(sizes)
    assert (found.k, found.largest) == (min(sizes), max(sizes))
    assert found.average_size == float(Fraction(rows, len(sizes)))
    assert found.normalized_average_size == float(Fraction(rows, len(sizes) * k))
    assert found.uniques == of_row.count(1)
    assert found.unique_share == of_row.count(1) / rows
    assert found.discernibility == sum(of_row)
    assert found.classes_below == sum(size < k for size in sizes)
    assert found.rows_below == sum(size < k for size in of_row)
    assert found.share_below == found.rows_below / rows
    risk = [Fraction(1, size) for size in of_row]
    assert found.prosecutor.highest == float(max(risk))
    assert found.prosecutor.average == found.marketer == float(sum(risk) / rows)
    limit = 1 / k if threshold is None else threshold
    assert found.threshold == limit
    assert found.prosecutor.at_risk == sum(float(one) > limit for one in risk) / rows
    if threshold is None:
        assert found.prosecutor.at_risk == found.share_below


@given(sizes=class_sizes)
def test_class_risks_keep_their_invariants(sizes):
    found = class_risks(sizes)
    assert 0 < found.marketer <= found.prosecutor.average <= found.prosecutor.highest <= 1
    assert found.rows <= found.discernibility <= found.rows**2
    assert found.k <= found.average_size <= found.largest
    assert 0 <= found.unique_share <= found.share_below <= 1
    assert (found.k == 1) == (found.uniques > 0)


@pytest.mark.slow
@given(sizes=class_sizes, seed=st.integers(0, 99))
def test_all_forms_of_class_sizes_give_one_result(sizes, seed):
    expected = class_risks(sizes)
    random = np.random.default_rng(seed).permutation(sizes)
    times = {size: sizes.count(size) for size in random.tolist()}
    assert class_risks(random) == expected
    assert class_risks(pd.Series(sizes, index=[f"class {n}" for n in range(len(sizes))], dtype="Int64")) == expected
    assert class_risks(np.array(sizes, float)) == class_risks(np.array(sizes, object)) == expected
    assert class_risks(times) == expected
    assert class_risks({**times, 99: 0}, rows=sum(sizes)) == expected
    assert class_risks(Sizes.from_counts(np.array(sizes)), sum(sizes)) == expected


def test_class_sizes_of_pandas_are_taken():
    table = pd.DataFrame({"sex": ["f", "f", "m", "m", "m"], "age": [30, 30, 30, 41, 41]})
    assert class_risks(table.groupby(["sex", "age"]).size()) == class_risks([2, 1, 2])
    assert class_risks(table.value_counts()) == class_risks([2, 1, 2])


def test_discernibility_is_exact_beyond_64_bits():
    assert class_risks({3_000_000_001: 7}).discernibility == 7 * 3_000_000_001**2
    assert class_risks({10**12 + 1: 1, 1: 1}).discernibility == (10**12 + 1) ** 2 + 1


def test_sizes_without_classes_of_one_row_need_the_rows():
    assert class_risks(Sizes.from_counts(np.ones(3, np.int64)), 3) == class_risks([1, 1, 1])


@given(pairs=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=25),
       threshold=st.sampled_from([0.05, 0.1, 0.2, 1 / 3, 1.0]), seed=st.integers(0, 99))  # fmt: skip
def test_population_risks_are_those_of_loops_over_rows(pairs, threshold, seed):
    classes = [(rows, rows + others) for rows, others in pairs]
    sample, population = zip(*classes, strict=True)
    found = population_risks(sample, population, threshold=threshold)
    of_row = [Fraction(1, people) for rows, people in classes for _ in range(rows)]
    marketer = sum(of_row) / len(of_row)
    assert (found.rows, found.classes, found.k_map) == (len(of_row), len(classes), min(population))
    assert found.marketer == pytest.approx(float(marketer), rel=1e-14)
    assert found.journalist.highest == float(max(of_row))
    average = max(Fraction(len(classes), sum(population)), marketer)
    assert found.journalist.average == pytest.approx(float(average), rel=1e-14)
    assert found.journalist.at_risk == sum(float(one) > threshold for one in of_row) / len(of_row)
    alone = class_risks(sample)
    assert found.marketer <= found.journalist.average <= alone.prosecutor.average + 1e-15
    assert found.journalist.highest <= alone.prosecutor.highest
    order = np.random.default_rng(seed).permutation(len(classes))
    assert population_risks(np.array(sample)[order], np.array(population)[order], threshold=threshold) == found


def test_a_sample_that_is_the_population_has_the_prosecutors_risk():
    sizes = [1, 2, 2, 5]
    assert population_risks(sizes, sizes).journalist == class_risks(sizes, threshold=0.2).prosecutor


def test_to_dict_is_json():
    document = json.loads(json.dumps(class_risks([1, 2, 3]).to_dict()))
    assert document["prosecutor"] == {"highest": 1.0, "average": 0.5, "at_risk": 1.0}
    assert document["discernibility"] == 14
    assert json.loads(json.dumps(population_risks([1], [4]).to_dict()))["journalist"]["highest"] == 0.25


@pytest.mark.parametrize(
    ("sizes", "arguments", "fragments"),
    [
        ([], {}, ["class_sizes", "got none"]),
        ({}, {}, ["class_sizes", "at least one class"]),
        ({3: 0}, {}, ["at least one class"]),
        ([2, 0, 3], {}, ["whole numbers of rows", "got 0 at position 1"]),
        ([2, 2.5], {}, ["got 2.5 at position 1"]),
        ([2, None], {}, ["class_sizes", "list of whole numbers"]),
        ([2, 10**30], {}, ["got 1000000000000000000000000000000 at position 1"]),
        ([2, 10**400], {}, ["from 1 to 2^62", "at position 1"]),
        ([2, 10**5000], {}, ["thousands of digits at position 1"]),
        ([2, True], {}, ["got True at position 1"]),
        ([2, 3j], {}, ["class_sizes"]),
        ([2**61] * 3, {}, ["class_sizes", "at most 2^62 rows together"]),
        ({2**61: 3}, {}, ["class_sizes", "at most 2^62 rows together"]),
        ({10**400: 1}, {}, ["class_sizes", "at most 4.61e+18", "got 1000"]),
        ({10**5000: 10**5000}, {}, ["class_sizes", "thousands of digits"]),
        ([2, np.nan], {}, ["got nan at position 1"]),
        (["a", "b"], {}, ["class_sizes", "'a'"]),
        ([[1, 2]], {}, ["2 dimensions"]),
        ("12", {}, ["got str"]),
        (7, {}, ["got int"]),
        ({0: 3}, {}, ["class_sizes", "got 0"]),
        ({2: 1.5}, {}, ["class_sizes[2]", "1.5"]),
        ({2: -1}, {}, ["class_sizes[2]", "-1"]),
        ([1, 2], {"rows": 4}, ["rows", "3 rows", "got 4", "Leave it out"]),
        (Sizes.from_counts(np.array([2, 3])), {}, ["rows", "got None"]),
        (Sizes.from_counts(np.array([2, 3])), {"rows": 4}, ["rows", "at least the 5", "got 4"]),
        ([1, 2], {"k": 0}, ["k: ", "got 0"]),
        ([1, 2], {"k": 10**400}, ["k: expected a whole number of rows, 1 or more, at most 4.61e+18; got 1000"]),
        ([1, 2], {"threshold": np.complex128(1)}, ["threshold: expected a number above 0", "1+0j"]),
        ([1, 2], {"threshold": True}, ["threshold", "got True"]),
        ([1, 2], {"threshold": 0}, ["threshold", "above 0", "got 0"]),
        ([1, 2], {"threshold": 5}, ["threshold", "got 5", "Divide percentages"]),
    ],
)
def test_bad_input_is_refused(sizes, arguments, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.models.class_risks(sizes, **arguments)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize(
    ("sample", "population", "fragments"),
    [
        ([1, 2], [3], ["population_sizes", "2 classes", "got 1"]),
        ([1, 2], [3, 1], ["1 people for 2 rows at position 1", "part of the population"]),
        ([1, -1], [3, 1], ["sample_sizes", "from 0 to 2^62; got -1 at position 1"]),
        ([1, 0], [3, 0], ["population_sizes", "from 1 to 2^62; got 0 at position 1"]),
        ([0, 0], [3, 1], ["sample_sizes", "a class of at least one row"]),
        ([1] * 4, [2**61] * 4, ["population_sizes", "at most 2^62 rows together"]),
        ([2**61] * 4, [2**61] * 4, ["sample_sizes", "at most 2^62 rows together"]),
    ],
)
def test_bad_populations_are_refused(sample, population, fragments):
    with pytest.raises(InputError) as caught:
        gpupif.models.population_risks(sample, population)
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_sizes_up_to_the_limit_do_not_overflow():
    risks = gpupif.models.population_risks([2**60, 1], [2**61, 2**61])
    assert (risks.rows, risks.k_map, risks.journalist.highest) == (2**60 + 1, 2**61, 2.0**-61)
    assert gpupif.models.class_risks([2**61, 2**61 - 1]).rows == 2**62 - 1


def test_docstrings_hold():
    for module in (gpupif.disclosure.class_risks, gpupif.disclosure.population_risks):
        assert doctest.testmod(module).failed == 0
