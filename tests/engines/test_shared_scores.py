"""Scores stored once for all rows that share them: every range of rows equals the range of all rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.engines.shared_scores import (
    AT_ONCE,
    ScoredColumnScores,
    SharedScores,
    Taken,
    put_rows,
    take_rows,
    take_scored_column,
)
from gpupif.rows.threads import Workers

ROWS = 5000


def shared(kinds, scored_columns=2, factor=3.0):
    """Return scores of each kind, and the arrays of all rows that they define."""
    random = np.random.default_rng(1)
    found, arrays = [], {}
    for _ in range(scored_columns):
        scores = random.integers(0, 2**20, (40, len(kinds))).astype(float)
        found.append(
            ScoredColumnScores(scores, random.integers(0, 40, 70, np.uint32), random.integers(0, 70, ROWS, np.uint32))
        )
    made = {}
    for slot, kind in enumerate(kinds):
        name, own = f"{slot} {kind}", np.dtype(kind)
        made[name] = SharedScores(found, [Taken(slot, factor, own)] * scored_columns, own)
        arrays[name] = np.array([one.scores[one.places[one.number], slot] * factor for one in found]).astype(own)
    return made, arrays


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.sampled_from(["float32", "float64", "int64"]), min_size=1, max_size=2 * AT_ONCE + 3),
    st.integers(0, ROWS - 1),
    st.integers(1, ROWS),
)
def test_any_rows_of_shared_scores_can_be_taken(kinds, start, size):
    made, arrays = shared(kinds)
    stop = min(ROWS, start + size)
    with Workers(2) as workers:
        assert_same(
            take_rows(made, start, stop, workers), {name: array[:, start:stop] for name, array in arrays.items()}
        )
    assert_same(
        take_scored_column(made, 1, start, stop), {name: array[1, start:stop] for name, array in arrays.items()}
    )


def test_shared_scores_and_arrays_can_be_taken_together():
    made, arrays = shared(["float64"])
    both, (name,) = made | {"array": np.arange(2 * ROWS).reshape(2, ROWS)}, made
    with Workers(1) as workers:
        assert_same(take_rows(both, 7, 9, workers), {name: arrays[name][:, 7:9], "array": both["array"][:, 7:9]})
    assert_same(take_scored_column(both, 0, 7, 9), {name: arrays[name][0, 7:9], "array": np.array([7, 8])})


def test_a_column_without_scores_can_be_put():
    put_rows(shared(["float64"])[0]["0 float64"].shared[0], [], 0, [])


def test_scores_of_a_file_are_shared_until_they_are_asked_for(tmp_path):
    table = gpupif.datasets.census(300, columns=3, seed=1)
    table.to_parquet(tmp_path / "in.parquet")
    scores = gpupif.score(tmp_path / "in.parquet", ["cig", "wcig"])
    held = scores._backing._values
    assert all(isinstance(array, SharedScores) for array in held.values())
    expected = gpupif.score(table, ["cig", "wcig"])
    scores.to_parquet(tmp_path / "out.parquet")
    scores.summary()
    assert all(isinstance(array, SharedScores) for array in held.values())
    np.testing.assert_array_equal(scores.cig.to_numpy(), expected.cig.to_numpy())
    assert isinstance(held["cig"], np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        scores.array("cig")[:] = 0
