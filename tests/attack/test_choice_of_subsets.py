"""The sets of columns for attackers who know any few: all, or a sample."""

from __future__ import annotations

import math
from itertools import combinations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.attackers import AnyKnown, choose_subsets
from gpupif.errors import InputError


@given(st.integers(2, 9), st.data())
@settings(deadline=None, max_examples=25)
def test_samples_are_real_subsets(columns, data):
    known = data.draw(st.integers(0, columns - 1))
    names = [f"c{place}" for place in range(columns)]
    scored_columns = data.draw(st.lists(st.integers(0, columns - 1), min_size=1, unique=True))
    pool = data.draw(st.lists(st.integers(0, columns - 1), min_size=known, unique=True))
    if any(len(set(pool) - {scored_column}) < known for scored_column in scored_columns):
        pool = list(range(columns))
    number, seed = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 9))
    subsets = choose_subsets(AnyKnown(known, subsets=number, seed=seed), names, scored_columns, pool, 100)
    for scored_column in scored_columns:
        others = {names[place] for place in pool if place != scored_column}
        possible = math.comb(len(others), known)
        some = subsets.for_column(names[scored_column])
        assert len(some) == len(set(some)) == min(number, possible) == subsets.scored[names[scored_column]]
        assert subsets.possible[names[scored_column]] == possible
        assert all(len(set(each)) == known and set(each) <= others for each in some)
        if number >= possible:
            assert sorted(some) == sorted(combinations([name for name in names if name in others], known))
    assert subsets.sampled == any(
        number < math.comb(len(set(pool) - {scored_column}), known) for scored_column in scored_columns
    )
    again = choose_subsets(AnyKnown(known, subsets=number, seed=seed), names, scored_columns, pool, 100)
    assert again.sets == subsets.sets


def test_samples_are_drawn_evenly():
    """Each subset of a scored column is about as often drawn as any other."""
    drawn = [
        known
        for seed in range(400)
        for known in choose_subsets(
            AnyKnown(2, subsets=3, seed=seed), list("abcdef"), range(6), range(6), 10
        ).for_column("c")
    ]
    counts = pd.Series(drawn).value_counts()
    assert len(counts) == 10
    assert counts.between(80, 160).all()


def test_subsets_are_sampled_from_more_sets_than_can_be_listed():
    names = [f"c{place}" for place in range(200)]
    subsets = choose_subsets(AnyKnown(20, subsets=30, seed=1), names, range(200), range(200), 10)
    assert subsets.possible["c7"] == math.comb(199, 20)
    for name in names:
        some = subsets.for_column(name)
        assert len(some) == len(set(some)) == 30
        assert all(len(set(each)) == 20 and name not in each for each in some)


@pytest.mark.usefixtures("on_cpu")
def test_too_many_subsets_are_refused_with_advice():
    frame = gpupif.datasets.census(50, columns=40)
    with pytest.raises(
        InputError, match=r"there are 76,904,685 subsets|there are [\d,]+ subsets of 8 columns"
    ) as error:
        gpupif.score(frame, known=8)
    assert f"{40 * math.comb(39, 8):,} subsets" in str(error.value)
    assert "subsets=1000" in str(error.value)
    with pytest.raises(InputError, match=r"subsets: 100,000 for each of 40 columns .* Give at most subsets=50000"):
        gpupif.score(frame, known=gpupif.AnyKnown(8, subsets=100_000))
    assert gpupif.score(frame, known=gpupif.AnyKnown(8, subsets=2)).subsets.scored == dict.fromkeys(frame, 2)
