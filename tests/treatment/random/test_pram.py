"""PRAM: checks of matrices, drawn shares, invariant matrices, and estimates by the inverse."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError
from gpupif.treatment.random.pram import Pram, invariant_matrix
from gpupif.treatment.random.transitions import Matrix
from tests.helpers.treated_chunks import prepared, treated, values_after

KEY = gpupif.treatments.Key.from_any(bytes(range(7, 39)))
MATRIX = {"a": {"a": 0.9, "b": 0.1}, "b": {"b": 0.75, "c": 0.25}, "c": {"c": 0.5, "a": 0.25, "b": 0.25}}
LINES = ",a,b,c\na,0.9,0.1,\nb,0,0.75,0.25\n\nc,.25,.25,.5\n"


def letters(rows=30_000, missing=0):
    drawn = np.random.default_rng(2).choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    return pa.table({"x": pa.array(drawn, mask=np.arange(rows) < missing)})


def transitions_of(before, after):
    """Count rows by original and recorded value."""
    found = {}
    for pair in zip(before["x"].to_pylist(), after["x"].to_pylist(), strict=True):
        found[pair] = found.get(pair, 0) + 1
    return found


def test_values_are_drawn_by_the_matrix():
    table = letters()
    counted = transitions_of(table, treated(table, Pram("x", MATRIX), KEY))
    assert set(counted) == {(one, other) for one in MATRIX for other in MATRIX[one]}
    for value, row in MATRIX.items():
        rows = sum(count for (one, _), count in counted.items() if one == value)
        # Chi-square with 1 or 2 degrees of freedom.
        assert sum((counted[value, other] - rows * p) ** 2 / (rows * p) for other, p in row.items()) < 20


def test_every_cell_has_the_value_that_the_definition_draws():
    table = letters(800)
    expected = []
    for row, value in enumerate(table["x"].to_pylist()):
        number, state = int(KEY.draws(0, "x").of_rows(row, 1)[0]) / 2**64, ord(value) - ord("a")
        # The value itself comes first, then all other values in their order.
        order = [value, *(other for other in "abc" if other != value and other in MATRIX[value])]
        assert state in range(3)
        for other in order:
            number -= MATRIX[value].get(other, 0)
            if number < 0:
                break
        expected.append(other)
    assert treated(table, Pram("x", MATRIX), KEY)["x"].to_pylist() == expected


@pytest.mark.parametrize("pram", [Pram("x", MATRIX, missing="keep"), Pram("x", invariant=0.6, missing="category")])
@settings(max_examples=8, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=4))
def test_any_cut_of_the_rows_draws_the_same_values(pram, cuts):
    table = letters(2000, missing=60)
    assert treated(table, pram, KEY, cuts)["x"].to_pylist() == treated(table, pram, KEY)["x"].to_pylist()


def test_a_matrix_may_come_from_a_file(tmp_path):
    file = tmp_path / "matrix.csv"
    file.write_text(LINES)
    table = letters(500)
    assert treated(table, Pram("x", str(file)), KEY).equals(treated(table, Pram("x", MATRIX), KEY))
    assert treated(table, Pram("x", file), KEY).equals(treated(table, Pram("x", MATRIX), KEY))


def test_a_matrix_knows_values_of_other_types_by_their_texts():
    table = pa.table({"x": pa.array([1, 2] * 100)})
    by_text = Pram("x", {"1": {"1": 0.5, "2": 0.5}, "2": {"2": 0.25, "3": 0.75}, "3": {"3": 1}})
    by_value = Pram("x", {1: {1: 0.5, 2: 0.5}, 2: {2: 0.25, 3: 0.75}, 3: {3: 1}})
    found = treated(table, by_text, KEY)["x"]
    assert found.type == pa.int64()
    assert set(found.to_pylist()) == {1, 2, 3}
    assert found.equals(treated(table, by_value, KEY)["x"])


def test_missing_values_have_a_row_of_their_own():
    table = letters(600, missing=200)
    matrix = {**{value: {value: 1} for value in "abc"}, "": {"a": 0.5, "": 0.5}}
    after = treated(table, Pram("x", matrix, missing="category"), KEY)
    assert after["x"][200:].equals(table["x"][200:])
    assert set(after["x"][:200].to_pylist()) == {"a", None}
    with pytest.raises(InputError, match="200 missing values of the table have no row"):
        prepared(table, Pram("x", MATRIX, missing="category"), KEY)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.floats(0, 1))
def test_invariant_matrices_keep_the_counts(counts, keep):
    counts = np.array(counts)
    matrix = invariant_matrix(counts, keep)
    assert (matrix >= 0).all()
    assert matrix.sum(axis=1) == pytest.approx(1)
    assert counts @ matrix == pytest.approx(counts, rel=1e-9, abs=1e-9)
    # Values without rows are never drawn.
    assert (matrix[np.ix_(counts > 0, counts == 0)] == 0).all()


def test_an_invariant_matrix_is_the_product_of_two_stages():
    """Compare the matrix with the product of both stages."""
    p, keep = np.array([0.5, 0.3, 0.2]), 0.4
    first = keep * np.eye(3) + (1 - keep) / 3
    second = np.array([[p[x] * first[x, z] / sum(p * first[:, z]) for x in range(3)] for z in range(3)])
    assert invariant_matrix(np.array([50, 30, 20]), keep) == pytest.approx(first @ second)
    assert invariant_matrix(np.array([50, 30, 20]), 1) == pytest.approx(np.eye(3))
    assert invariant_matrix(np.array([50, 30, 20]), 0) == pytest.approx(np.tile(p, (3, 1)))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6).filter(lambda row: sum(row) > 0), st.integers(0, 5))
def test_thresholds_of_a_state_stand_for_its_probabilities(row, state):
    """Check the entries of each state: ascending, from 0, and equal to the probabilities up to 2^-50."""
    row = np.array(row) / sum(row)
    state = state % len(row)
    matrix = np.eye(len(row))
    matrix[state] = row / row.sum()
    entries = Matrix(matrix, len(row) + 1).entries
    begin, end = entries.begins[state], entries.ends[state]
    edges = [*map(int, entries.firsts[begin:end]), 2**64]
    assert edges[0] == 0
    assert edges == sorted(set(edges))
    shares = np.zeros(len(row))
    for place, value in enumerate(entries.values[begin:end]):
        shares[value] = (edges[place + 1] - edges[place]) / 2**64
    assert shares == pytest.approx(matrix[state], abs=2**-50)


def test_a_matrix_that_keeps_all_values_changes_no_cell():
    table = letters(3000, missing=10)
    assert treated(table, Pram("x", invariant=1, missing="keep"), KEY)["x"].to_pylist() == table["x"].to_pylist()


@pytest.mark.parametrize("pram", [Pram("x", MATRIX), Pram("x", invariant=0.5)])
def test_estimates_are_close_to_the_true_shares(pram):
    table = letters(6000)
    truth = values_after(table, "x").counts / 6000
    for number in range(4):
        step = prepared(table, pram, KEY, number)
        found = step.estimates("x", values_after(treated(table, pram, KEY, number=number), "x"))
        assert found["share"].sum() == pytest.approx(1)
        assert (np.abs(found["share"] - truth) < 5 * found["standard_error"]).all()


def test_a_matrix_of_randomized_response_has_its_standard_errors():
    """Compare estimates, too, with the matrix t[x = y] + (1 - t)/k, inverted by hand."""
    table, t = letters(5000), 0.5
    matrix = {value: {other: t * (value == other) + (1 - t) / 3 for other in "abc"} for value in "abc"}
    after = values_after(treated(table, Pram("x", matrix), KEY), "x")
    found = prepared(table, Pram("x", matrix), KEY).estimates("x", after)
    share = after.counts / 5000
    assert found["share"].to_numpy() == pytest.approx((share - (1 - t) / 3) / t)
    assert found["standard_error"].to_numpy() == pytest.approx(np.sqrt(share * (1 - share) / 5000) / t)


def test_a_matrix_that_cannot_be_inverted_gives_no_estimates():
    for pram in (Pram("x", {value: {"a": 1 / 3, "b": 2 / 3} for value in "abc"}), Pram("x", invariant=0)):
        with pytest.raises(InputError, match="or a matrix that can be inverted"):
            prepared(letters(100), pram, KEY).estimates("x", values_after(letters(100), "x"))


def test_records_of_invariant_matrices_reveal_shares():
    assert prepared(letters(100), Pram("x", MATRIX), KEY).revealing == ()
    assert prepared(letters(100), Pram("x", MATRIX), KEY).record == {
        "values": 3,
        "kept_of_each": [0.9, 0.75, 0.5],
        "least_kept": 0.5,
    }
    step = prepared(letters(100), Pram("x", invariant=0.5), KEY)
    assert set(step.revealing) == {"kept_of_each", "least_kept"}


@pytest.mark.parametrize(
    ("pram", "said"),
    [
        (Pram("x"), r"either matrix= or invariant= \(a share to keep\), got neither"),
        (Pram("x", MATRIX, 0.5), "got both"),
        (Pram("x", invariant=1.5), "invariant: expected a probability from 0 to 1, got 1.5"),
        (Pram("x", {}), "expected probabilities by recorded value, by true value"),
        (Pram("x", {"a": 1}), "matrix: expected a table of keys and values"),
        (Pram("x", {"a": {"a": 1.5}}), "row 'a': expected probabilities from 0 to 1, got 1.5"),
        (
            Pram("x", {"a": {"a": "much"}}),
            "matrix: expected a table of keys .*'much'",
        ),
        (Pram("x", {"a": {"a": 0.9, "b": 0.2}, "b": {"b": 1}}), "row 'a': expected .* add up to 1, got 1.1"),
        (Pram("x", {"a": {"a": 0.9, "b": 0.1}}), "'b' may be recorded, but has no row of its own"),
        (Pram("x", {"a": {"a": 1}, "b": {"b": 1}}), "the value 'c' of the table is not among"),
        (Pram("x", "nowhere.csv"), "'nowhere.csv' cannot be read: .*No such file"),
    ],
)
def test_bad_input_is_refused(pram, said):
    with pytest.raises(InputError, match=said):
        prepared(letters(100), pram, KEY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (",a,b\na,1\n", "line 2: expected 3 cells"),
        (",a,b\na,1,0\na,1,0\n", "line 3: expected one row for each value"),
        (",a,b\na,1,x\n", "line 2: expected numbers"),
    ],
)
def test_bad_files_of_matrices_are_refused(tmp_path, text, said):
    file = tmp_path / "matrix.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=said):
        Pram("x", file).check()


def test_missing_values_without_a_rule_and_a_missing_key_are_refused():
    with pytest.raises(InputError, match="5 missing values, and no rule for them"):
        prepared(letters(100, missing=5), Pram("x", MATRIX), KEY)
    with pytest.raises(InputError, match="key: pram of column 'x'"):
        prepared(letters(100), Pram("x", MATRIX), None)


def test_too_many_values_for_a_matrix_are_refused():
    table = pa.table({"x": pa.array(range(2001))})
    with pytest.raises(InputError, match=r"2,001 values, and a matrix may have up to 2,000. Recode"):
        prepared(table, Pram("x", invariant=0.5), KEY)
