"""Cost and benefit of attacks, row by row in exact fractions."""

from __future__ import annotations

import doctest
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
import gpupif.disclosure.attack_game
from gpupif.errors import InputError
from tests.helpers.naive_disclosure import classes_of, moves_of

AMOUNTS = st.sampled_from([0, 1, 2.5, 0.1, 0.3, 0.7, 4, 300, 1200, 1e-3])
GAMES = st.builds(gpupif.models.Game, AMOUNTS, AMOUNTS, AMOUNTS, AMOUNTS)
SIZES = st.lists(st.integers(1, 90), min_size=1, max_size=30)


def stakes(game):
    """Return the amounts of a game as exact decimal numbers."""
    return [Fraction(str(amount)) for amount in vars(game).values()]


@given(game=GAMES, sizes=SIZES)
def test_payoffs_follow_from_sizes_of_classes(game, sizes):
    found = game.payoffs(sizes)
    moves = moves_of([size for size in sizes for _ in range(size)], *stakes(game))
    attacked, deterred, publishable, attacks, payouts = zip(*moves, strict=True)
    assert (found.game, found.rows) == (game, sum(sizes))
    assert (found.attacked, found.deterred, found.publishable) == (sum(attacked), sum(deterred), sum(publishable))
    # Sums over whole classes are exact: they are amounts of few digits.
    assert found.publisher_payout == pytest.approx(float(sum(payouts)), rel=1e-15, abs=1e-12)
    assert found.best_payout == pytest.approx(float(sum(max(one, 0) for one in payouts)), rel=1e-15, abs=1e-12)
    assert found.deterring_payout == pytest.approx(float(stakes(game)[0] * sum(deterred)), rel=1e-15)
    assert found.adversary_payoff == pytest.approx(float(sum(max(one, 0) for one in attacks)), rel=1e-15, abs=1e-12)


@given(game=GAMES)
def test_the_least_sizes_that_deter_and_that_are_publishable_are_found(game):
    """Try all sizes, up to a size beyond which nothing changes."""
    found = game.payoffs([1])
    for place, size in ((1, found.deterring_size), (2, found.publishable_size)):
        holds = [move[place] for move in moves_of([*range(1, 200), 10**9], *stakes(game))]
        if not any(holds):
            assert size is None
        elif any(holds[:-1]):
            assert size == 1 + holds.index(True)
        else:
            assert [move[place] for move in moves_of([size - 1, size], *stakes(game))] == [False, True]


@given(game=GAMES, sizes=st.lists(st.integers(1, 400) | st.just(2**40), min_size=1, max_size=20),
       information=st.sampled_from([1, 0, 0.5, 0.25]))  # fmt: skip
def test_each_row_has_its_payoffs(game, sizes, information):
    found = game.rows(sizes, information)
    assert list(found.columns) == ["attacked", "deterred", "publishable", "adversary_payoff", "publisher_payout"]
    for (_, row), move in zip(found.iterrows(), moves_of(sizes, *stakes(game), Fraction(information)), strict=True):
        assert tuple(row.iloc[:3]) == move[:3]
        assert row["adversary_payoff"] == pytest.approx(float(move[3]), rel=1e-12, abs=1e-12)
        assert row["publisher_payout"] == pytest.approx(float(move[4]), rel=1e-12, abs=1e-12)


def test_sizes_may_be_fractions_of_people():
    """Count fewer people than one as one; nobody is found if nobody is there."""
    found = gpupif.models.Game(10, 30, 30, 4).rows([0, 0.25, 1, 2.5, 7.5, 8])
    assert found["attacked"].tolist() == [False, True, True, True, False, False]
    assert found["deterred"].tolist() == [True, False, False, False, False, True]
    assert found["publishable"].tolist() == [True, False, False, False, True, True]
    assert found["adversary_payoff"].tolist() == [-4.0, 26.0, 26.0, 8.0, 0.0, -0.25]
    assert found["publisher_payout"].tolist() == [10.0, -20.0, -20.0, -2.0, 10.0, 10.0]
    free = gpupif.models.Game(10, 30, 30, 0).rows([0, 1])
    assert (free["attacked"].tolist(), free["deterred"].tolist()) == ([False, True], [False, False])


def test_the_least_size_that_deters_is_that_of_arx():
    """Compare with ARX's ProfitabilityProsecutorNoAttack.

    It has 76 for its defaults, 1 without a gain, and a whole ratio plus 1.
    """
    for gain, cost, size in ((300, 4, 76), (300, 7, 43), (0, 0, 1), (0, 4, 1), (3, 4, 1), (4, 4, 2)):
        assert gpupif.models.Game(adversary_gain=gain, adversary_cost=cost).payoffs([1]).deterring_size == size
    assert gpupif.models.Game(adversary_cost=0).payoffs([1]).deterring_size is None
    # Amounts are decimal numbers as written: 0.3 is three times 0.1.
    assert gpupif.models.Game(adversary_gain=0.3, adversary_cost=0.1).payoffs([3]).deterring_size == 4


# The class sizes of UCI's Adult by race and marital status, the class sizes of every tenth row, and figures of ARX:
# publishable rows and their payout, deterred rows and their payout, with a prosecutor, then with a journalist.
ADULT = [54, 109, 8, 95, 10, 10, 67, 442, 33, 314, 18, 21, 452, 1, 766, 54, 1197, 240, 107, 23, 92, 14, 84, 13, 5, 3618,
         20, 12656, 261, 8036, 658, 684]  # fmt: skip
TENTH = [4, 11, 2, 14, 1, 0, 6, 38, 4, 31, 5, 1, 53, 0, 70, 7, 132, 20, 11, 3, 7, 1, 11, 0, 0, 355, 5, 1246, 28, 823,
         72, 56]  # fmt: skip
ARX = {
    (1200, 300, 300, 4): (30162, 36189900.0, 29811, 35773200.0, 3017, 3619937.481527053, 2978, 3573600.0),
    (100, 300, 300, 4): (30161, 3011900.0, 29811, 2981100.0, 3017, 301237.4815270532, 2978, 297800.0),
    (10, 300, 300, 4): (30019, 298990.0, 29811, 298110.0, 2999, 29865.65958088346, 2978, 29780.0),
    (2, 50, 7.5, 0.25): (30019, 60038.0, 30019, 60038.0, 2999, 5998.0, 2999, 5998.0),
}


@pytest.mark.parametrize("amounts", ARX)
def test_payoffs_are_those_of_arx(amounts):
    table = pd.DataFrame({"people": np.repeat(range(len(ADULT)), ADULT)})
    sample = pd.DataFrame({"people": np.repeat(range(len(TENTH)), TENTH)})
    games = gpupif.risk(sample, "people", population=table, game=gpupif.models.Game(*amounts)).games
    came = []
    for found in (gpupif.models.Game(*amounts).payoffs(ADULT), games["journalist"]):
        came += [found.publishable, found.best_payout, found.deterred, found.deterring_payout]
    assert came == pytest.approx(ARX[amounts], rel=1e-14)


def test_a_table_and_its_population_have_a_game_each(way_of_risk):
    people = gpupif.datasets.census(600, columns=4, seed=3)
    table = people.sample(200, random_state=1)
    known, game = ["age", "sex"], gpupif.models.Game(500, 300, 300, 40)
    found = way_of_risk(table, known, population=people, game=game)
    classes, there = (classes_of(frame.to_dict("list"), known) for frame in (table, people))
    assert found.games["prosecutor"] == game.payoffs([len(rows) for rows in classes.values()])
    sizes = [len(there[values]) for values, rows in classes.items() for _ in rows]
    attacked, _, publishable, attacks, payouts = zip(*moves_of(sizes, 500, 300, 300, 40), strict=True)
    journalist = found.games["journalist"]
    assert (journalist.rows, journalist.attacked, journalist.publishable) == (200, sum(attacked), sum(publishable))
    assert journalist.publisher_payout == pytest.approx(float(sum(payouts)), rel=1e-15)
    assert journalist.adversary_payoff == pytest.approx(float(sum(max(one, 0) for one in attacks)), rel=1e-14)
    assert found.to_dict()["games"]["journalist"]["game"]["adversary_cost"] == 40
    for text in ("Attacks that pay (benefit 500 a row", "prosecutor", "journalist", "rows that are worth publishing"):
        assert text in str(found)


@pytest.fixture(params=["memory", "files", "dask"])
def way_of_risk(request, tmp_path):
    """Return `gpupif.risk` of a table and a population in memory, in files or on Dask."""
    from tests.helpers.dask_frames import cut
    from tests.helpers.pieces import in_pieces, write_parts

    def ask(table, known, population, **options):
        if request.param == "files":
            folders = [write_parts(tmp_path / name, one, [50]) for name, one in (("in", table), ("all", population))]
            with in_pieces(40, 30), gpupif.config(device="cpu", memory_limit="64GiB"):
                return gpupif.risk(folders[0], known, population=folders[1], **options)
        frames = [cut(one, [50]) for one in (table, population)] if request.param == "dask" else [table, population]
        with gpupif.config(device="cpu"):
            return gpupif.risk(frames[0], known, population=frames[1], **options)

    return ask


def test_weights_do_not_change_a_game_and_wildcards_do():
    table = pd.DataFrame({"age": [1, 1, None, 2], "w": [2.0, 3.0, 0.0, 1.0]})
    game = gpupif.models.Game(10, 30, 30, 12)
    weighted = gpupif.risk(table, "age", weights="w", game=game).games
    # Classes are counted by rows, whatever their weights.
    assert weighted == {"prosecutor": game.payoffs([2, 1, 1])}
    found = gpupif.risk(table, "age", missing="wildcard", game=game).games["prosecutor"]
    # Age 1 matches three rows, age 2 two rows, and the missing age all four.
    assert found == game.payoffs_of({2: 1, 3: 2, 4: 1})


def test_all_kinds_of_sizes_are_taken():
    expected = gpupif.models.Game().rows([1, 80])
    for sizes in (np.array([1, 80]), np.array([1.0, 80.0]), pl.Series([1, 80]), np.array([1, 80], object)):
        pd.testing.assert_frame_equal(gpupif.models.Game().rows(sizes), expected)
    named = gpupif.models.Game().rows(pd.Series([1, 80], index=["a", "b"]), information=[1, 0.5])
    assert (named.index.tolist(), named["publisher_payout"].tolist()) == (["a", "b"], [900.0, 600.0])
    assert len(gpupif.models.Game().rows([])) == 0


def test_a_game_of_large_tables_is_exact():
    found = gpupif.models.Game(1, 1, 1, 0).payoffs({1: 2**61, 3: 1})
    assert (found.rows, found.publisher_payout, found.adversary_payoff) == (2**61 + 3, 2.0, float(2**61 + 1))
    assert json.loads(json.dumps(found.to_dict()))["deterring_size"] is None


BAD = [
    (
        lambda: gpupif.models.Game(publisher_benefit=-1),
        "publisher_benefit: expected an amount, a number from 0 to 2.62; got -1",
    ),
    (lambda: gpupif.models.Game(adversary_cost=math.nan), "adversary_cost: expected an amount, .* got nan"),
    (lambda: gpupif.models.Game(publisher_loss="3"), "publisher_loss: expected an amount, .* got '3'"),
    (lambda: gpupif.models.Game(adversary_gain=True), "adversary_gain: expected an amount, .* got True"),
    (lambda: gpupif.models.Game().rows([1, -2]), "sizes: expected numbers from 0 on; got -2 at position 1"),
    (lambda: gpupif.models.Game().rows(["1"]), "sizes: expected numbers from 0 on; got '1' at position 0"),
    (lambda: gpupif.models.Game().rows([1, None]), "sizes: expected numbers from 0 on; got None at position 1"),
    (lambda: gpupif.models.Game().rows([[1], "x"]), "sizes: expected numbers from 0 on; got"),
    (lambda: gpupif.models.Game().rows(3), r"sizes: expected one number for each row, got shape \(\)"),
    (
        lambda: gpupif.models.Game().rows([1], 2),
        "information: expected shares, numbers from 0 to 1; got 2 at position 0",
    ),
    (
        lambda: gpupif.models.Game().rows([1], [1, 1]),
        r"information: expected one number for each row, got shape \(2,\)",
    ),
    (lambda: gpupif.risk(pd.DataFrame({"a": [1]}), "a", game=300), "game: expected a gpupif.models.Game, got 300"),
    (lambda: gpupif.models.Game().payoffs([0]), "class_sizes: expected whole numbers of rows from 1"),
]


@pytest.mark.parametrize(("ask", "message"), BAD)
def test_bad_input_is_refused(ask, message):
    with pytest.raises(InputError, match=message):
        ask()


def test_docstrings_hold():
    assert doctest.testmod(gpupif.disclosure.attack_game).failed == 0
