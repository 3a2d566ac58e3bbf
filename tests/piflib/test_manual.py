"""Values printed in the piflib manual, and piflib's own test tables, from the engine and from the drop-in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif import datasets, piflib
from gpupif.errors import ColumnNotFoundError, InputError, PriorError
from gpupif.piflib import entropy as piflib_entropy
from tests.helpers import naive, naive_attack

pytestmark = [pytest.mark.every_engine, pytest.mark.simulator]

DIVERSE = pd.DataFrame({"A": [1, 2, 3, 4], "B": list("abcd"), "C": ["blue", "green", "red", "cyan"]})
SAME = pd.DataFrame({"A": [1] * 4, "B": ["a"] * 4, "C": ["red"] * 4})
DEPENDENT = pd.DataFrame({"A": [1, 1, 2, 2], "B": list("aabb"), "C": ["blue", "green", "red", "cyan"]})


def test_cig_has_the_values_of_the_pif_tutorial(engine):
    """Manual section 1.8, the table printed with two decimals."""
    cig = gpupif.score(datasets.pif_example(), ["cig"]).cig
    assert cig.round(2).to_dict("list") == {
        "gender": [0.22, 0.22, 0.51, 0.22, 0.22, 0.22, 0.51],
        "name": [1.31, 0.31, 0.31, 0.31, 1.31, 0.31, 1.81],
        "eye_color": [1.81, 0.49, 0.49, 0.49, 0.15, 0.15, 0.49],
    }


def test_csf_has_the_values_of_the_csf_tutorial(engine):
    """Manual section 1.8: 'a' in row 0 stays at 1/3, so its CSF is 0, while its CIG is not."""
    scores = gpupif.score(datasets.csf_example())
    assert scores.csf["A"].iloc[0] == 0.0
    assert scores.cig["A"].iloc[0] > 0.3
    expected = naive_attack.score({name: list(column) for name, column in datasets.csf_example().items()})
    np.testing.assert_allclose(scores.csf, pd.DataFrame(expected["csf"]), atol=1e-15)


def test_weighted_cig_has_the_values_of_the_caution_table(engine):
    """Manual section 1.5.1: perfectly correlated columns have wCIG 0 and high CIG."""
    scores = gpupif.score(pd.DataFrame({"A": list("acf"), "B": list("bre")}), ["cig", "wcig"])
    assert (scores.wcig == 0).all(axis=None)
    np.testing.assert_allclose(scores.cig, np.log2(3))


@pytest.mark.parametrize(
    ("frame", "cig", "csf", "weighted"),
    [
        (SAME, [0, 0, 0], [0, 0, 0], [0, 0, 0]),
        (DIVERSE, [2, 2, 2], [0.75, 0.75, 0.75], [0, 0, 0]),
        (DEPENDENT, [1, 1, 1], [0.5, 0.5, 0.25], [0, 0, 0.5]),
    ],
    ids=["same", "diverse", "dependent"],
)
def test_piflib_functions_have_the_values_of_its_own_tables(engine, frame, cig, csf, weighted):
    for function, expected in (
        (piflib.compute_cigs, cig),
        (piflib.compute_csfs, csf),
        (piflib.compute_weighted_cigs, weighted),
    ):
        assert (function(frame) == expected).all(axis=None)


def test_piflib_keeps_index_and_repeated_names():
    frame = DEPENDENT.set_axis(["x", "x", "y"], axis=1).set_index(pd.Index([7, 7, 8, 9], name="person"))
    cigs = piflib.compute_cigs(frame)
    pd.testing.assert_index_equal(cigs.index, frame.index)
    assert list(cigs.columns) == ["x", "x", "y"]


def test_piflib_takes_priors_and_accuracies_by_position_and_by_name():
    priors = {0: {1: 0.4, 2: 0.6}, 2: {"blue": 0.2, "green": 0.3, "red": 0.4, "cyan": 0.1}}
    accuracies = {1: 0.5, 2: 0.75}
    table = {name: column.tolist() for name, column in DEPENDENT.items()}
    named = {"A": priors[0], "C": priors[2]}
    expected = naive_attack.score(table, priors=named, accuracies={"B": 0.5, "C": 0.75})
    for keys in (lambda given: given, lambda given: {"ABC"[position]: value for position, value in given.items()}):
        for function, measure in (
            (piflib.compute_cigs, "cig"),
            (piflib.compute_csfs, "csf"),
            (piflib.compute_weighted_cigs, "wcig"),
        ):
            result = function(DEPENDENT, keys(priors), keys(accuracies))
            np.testing.assert_allclose(result, pd.DataFrame(expected[measure]), atol=1e-12)


def test_bad_arguments_that_piflib_ignores_are_refused():
    with pytest.raises(ColumnNotFoundError, match="'Z'"):
        piflib.compute_cigs(DEPENDENT, {"Z": {1: 1.0}})
    with pytest.raises(PriorError, match=r"sum to 0\.9"):
        piflib.compute_cigs(DEPENDENT, {0: {1: 0.4, 2: 0.5}})
    with pytest.raises(InputError, match=r"0 to 1, got 1\.5"):
        piflib.compute_csfs(DEPENDENT, feature_accuracies={0: 1.5})
    with pytest.raises(InputError, match="at least one row"):
        piflib.compute_cigs(DEPENDENT.iloc[:0])
    with pytest.raises(InputError, match="samples"):
        piflib.compute_cigs(DEPENDENT, samples=2)
    assert piflib.compute_cigs(DEPENDENT, samples=3).equals(piflib.compute_cigs(DEPENDENT))


def test_piflib_missing_values_are_one_value():
    frame = pd.DataFrame({"a": [np.nan, None, 1.0, 1.0], "b": ["x", "x", None, np.nan]})
    expected = naive_attack.score({"a": [None, None, 1.0, 1.0], "b": ["x", "x", None, None]})
    np.testing.assert_allclose(piflib.compute_cigs(frame), pd.DataFrame(expected["cig"]))
    assert piflib_entropy.entropy(frame, ["a", "b"]) == 1.0
    assert sum(piflib_entropy.get_marginal(frame, ["a", "b"]).values()) == 1.0


def test_piflib_pif_is_the_percentile_of_row_sums():
    cigs = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 0.0, 3.0]})
    assert [piflib.compute_pif(cigs, n) for n in (0, 50, 75, 100)] == [1.0, 2.0, 4.0, 6.0]


def test_posterior_distributions_have_the_values_of_piflib():
    distributions, values = piflib.compute_posterior_distributions("A", datasets.csf_example())
    assert list(values) == ["a", "b", "c"]
    assert distributions == {
        "('g',)": [1 / 3, 2 / 3, 0.0],
        "('h',)": [1 / 4, 0.0, 3 / 4],
        "('i',)": [1 / 2, 0.0, 1 / 2],
    }
    with pytest.raises(ColumnNotFoundError, match="'Q'"):
        piflib.compute_posterior_distributions("Q", datasets.csf_example())


def test_functions_of_data_util_have_the_values_of_piflib():
    assert piflib.data_util.calculate_distribution(["x", "x", None, "y"]) == {"x": 0.5, None: 0.25, "y": 0.25}
    mixed = piflib.data_util.calculate_distribution(["x"], 0.5, {"x": 0.5, "y": 0.25, "z": 0.25})
    assert mixed == {"x": 0.75, "y": 0.125, "z": 0.125}
    with pytest.raises(InputError, match="feature_distribution"):
        piflib.data_util.calculate_distribution(["x"], 0.5, {"y": 1.0})
    priors = piflib.data_util.complete_feature_priors(DEPENDENT, {0: {1: 0.4, 2: 0.6}})
    assert priors[0] == {1: 0.4, 2: 0.6}
    assert priors[1] == {"a": 0.5, "b": 0.5}


def test_entropies_follow_their_definition():
    table = {name: column.tolist() for name, column in datasets.pif_example().items()}
    frame = datasets.pif_example()
    names = list(frame)
    joint = naive.entropy(list(zip(*table.values(), strict=True)))
    residual = sum(naive.conditional_entropy(table, name, [n for n in names if n != name]) for name in names)
    assert piflib_entropy.entropy(frame, names) == pytest.approx(joint, abs=1e-12)
    assert piflib_entropy.residual_entropy(frame, names) == pytest.approx(residual, abs=1e-12)
    assert piflib_entropy.dual_total_correlation(frame, names) == pytest.approx(joint - residual, abs=1e-12)
    shared = naive.entropy(table["name"]) - naive.conditional_entropy(table, "name", ["eye_color"])
    assert piflib_entropy.mutual_information(frame, ["name"], ["eye_color"]) == pytest.approx(shared, abs=1e-12)
    assert piflib_entropy.conditional_entropy(frame, ["name"], []) == pytest.approx(naive.entropy(table["name"]))
    assert piflib_entropy.get_marginal(frame, ["gender"]) == {"male": 6 / 7, "female": 1 / 7}
    assert piflib_entropy.get_marginal(frame, ["gender", "eye_color"])["male", "blue"] == 2 / 7


def test_entropy_tables_have_the_columns_and_values_of_piflib():
    frame = datasets.pif_example()
    pairs = piflib_entropy.create_entropy_mi_table(frame, 3)
    assert pairs[["X", "Y"]].to_numpy().tolist() == [["gender", "name"], ["gender", "eye_color"], ["name", "eye_color"]]
    assert list(pairs.columns) == ["X", "Y", "H(X)", "H(Y)", "I(X;Y)"]
    table = {name: column.tolist() for name, column in frame.items()}
    shared = naive.entropy(table["gender"]) - naive.conditional_entropy(table, "gender", ["name"])
    assert pairs["I(X;Y)"].iloc[0] == round(shared, 3)
    given_rest = piflib_entropy.create_conditional_entropy_table(frame, 12)
    assert given_rest["Y"].tolist() == [["name", "eye_color"], ["gender", "eye_color"], ["gender", "name"]]
    for name, value in zip(given_rest["X"], given_rest["H(X|Y)"], strict=True):
        others = [other for other in frame if other != name]
        assert value == pytest.approx(naive.conditional_entropy(table, name, others), abs=1e-11)
    single = piflib_entropy.create_conditional_entropy_table(frame[["name"]])
    assert single["H(X|Y)"].tolist() == [round(naive.entropy(table["name"]), 2)]
