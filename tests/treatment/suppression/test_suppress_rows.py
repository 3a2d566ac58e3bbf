"""Rows suppressed: by the size of their class, and by conditions on scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from tests.helpers import naive_suppression as naive
from tests.helpers.class_criteria import is_broken
from tests.helpers.suppression_tables import COLUMNS, people, treat, tuples

OF_PAY = {"require": "distinct_l>=2", "quasi_identifiers": ["sex"], "sensitive": "pay", "weights": "w"}


def two_of(among, **others):
    return {"require": "x: distinct_l>=2", "attackers": {"x": gpupif.AnyKnown(2, among=among, **others)}}


def test_rows_of_small_classes_are_removed():
    table = people()
    after = treat(table, gpupif.treatments.SuppressRows(k=2, quasi_identifiers=COLUMNS))
    sizes = table.groupby(COLUMNS)["sex"].transform("size")
    assert 0 < len(after) < len(table)
    pd.testing.assert_frame_equal(after, table[sizes >= 2])
    assert naive.smallest(tuples(after), range(3)) >= 2
    assert naive.smallest(tuples(after), range(3), "wildcard") >= 2


def test_rows_of_small_classes_may_stay_without_quasi_identifiers():
    table = people()
    after = treat(table, gpupif.treatments.SuppressRows(k=2, quasi_identifiers=COLUMNS, remove=False))
    small = table.groupby(COLUMNS)["sex"].transform("size") < 2
    assert small.any()
    assert after[COLUMNS].isna().all(axis=1).equals(small)
    assert after[COLUMNS].isna().any(axis=1).equals(small)
    pd.testing.assert_series_equal(after["pay"], table["pay"])


def test_missing_values_are_a_class_of_their_own():
    table = pd.DataFrame({"home": ["n", "n", None, None, "s"], "age": [1, 1, 1, 1, 1]})
    after = treat(table, gpupif.treatments.SuppressRows(k=2, quasi_identifiers=["home", "age"]))
    assert after.index.tolist() == [0, 1, 2, 3]


def test_rows_with_a_cell_that_meets_the_condition_are_removed():
    table = people()
    scores = gpupif.score(table, "csf", columns=COLUMNS, known=list(table))
    expected = (scores.csf > 0.8).any(axis=1)
    assert 0 < expected.sum() < len(table)
    after = treat(table, gpupif.treatments.SuppressRows(where="csf > 0.8", columns=COLUMNS))
    assert after.index.tolist() == table.index[~expected].tolist()
    among = gpupif.score(table, "csf", columns=COLUMNS).csf > 0.8
    after = treat(table, gpupif.treatments.SuppressRows(where="csf > 0.8", quasi_identifiers=COLUMNS))
    assert after.index.tolist() == table.index[~among.any(axis=1)].tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected one of where, k or require, got none"),
        ({"k": 2, "where": "csf > 1"}, "got where and k"),
        ({"k": 2}, "quasi_identifiers: expected the columns that classes are of"),
        ({"where": "csf > 1", "remove": False}, "quasi_identifiers: expected the columns that become missing"),
        ({"k": 0, "quasi_identifiers": COLUMNS}, "k: expected a whole number of rows, 1 or more"),
        ({"k": 2, "quasi_identifiers": ["nowhere"]}, "no column 'nowhere'"),
        ({"where": "csg > 1"}, "Did you mean 'csf'"),
        (OF_PAY | {"attackers": {"x": ["sex"]}}, "attackers: 'x': no criterion is on this attacker"),
        (OF_PAY | {"sensitive": "w"}, "weights: column 'w' has another role too"),
        (OF_PAY | {"quasi_identifiers": ["sex", "w"]}, "weights: column 'w' has another role too"),
        (OF_PAY | {"require": "known=sex,w: alpha<=0.9"}, "the attacker knows column 'w', which weights= names too"),
        (OF_PAY | two_of(["sex", "pay"]), "expected at most 1, the number of other columns named in among=, got 2"),
        (OF_PAY | two_of(["sex", "w"]), "the attacker knows column 'w', which weights= names too"),
        (
            {"require": "t<=0.2", "quasi_identifiers": ["home"], "sensitive": ["pay"], "distances": {"pya": "nominal"}},
            "distances: no column 'pya' in sensitive=.*Did you mean 'pay'",
        ),
        ({"k": 2, "quasi_identifiers": COLUMNS, "columns": ["age"]}, "columns goes with where"),
    ],
    ids=str,
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(gpupif.InputError, match=message):
        treat(people().assign(w=1), gpupif.treatments.SuppressRows(**arguments))


@pytest.mark.parametrize("require", ["t<=0.2", "basic_beta<=0.5", "delta<=0.5"])
def test_rows_that_stay_are_among_those_that_classes_are_compared_with(require):
    """The table goes out with the sensitive values of suppressed rows, so that classes are compared with these too."""
    suppressed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.choice(list("pqrst"), 30), "ill": rng.choice(list("uuuvvx"), 30)})
        rows = gpupif.treatments.SuppressRows(require=require, quasi_identifiers=["a"], sensitive=["ill"], remove=False)
        after = gpupif.treat(table, [rows]).table
        suppressed += after["a"].isna().sum()
        for _, own in after.groupby("a"):
            assert not is_broken(own.to_dict("records"), table.to_dict("records"), require)
    assert 0 < suppressed < 240
