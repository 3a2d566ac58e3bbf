"""Percentiles, means and counts of scores by column, by their definitions; the same of runs that keep none."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import AnyKnown, Population
from gpupif.attack.arguments import Arguments
from gpupif.errors import InputError, NotScoredError
from gpupif.out_of_core.output_options import OutputOptions
from gpupif.results.score_distribution import ColumnAnswer, ColumnQuery, ScoreQuestions, answer_column
from gpupif.scoring.files import score_file
from gpupif.utils.percentiles import ONCE
from tests.helpers.pieces import in_pieces, write_parts

SPECIAL = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e300, -1e-300, -5e-324]
NUMBERS = st.sampled_from(SPECIAL) | st.floats(-9, 9)
ROWS = 60
TABLE = gpupif.datasets.census(ROWS, columns=4, seed=5).assign(people=np.arange(ROWS) % 4 / 2)
TABLE.loc[TABLE.index % 7 == 1, "age"] = None
COLUMNS = ["region", "age", "sex"]
MEASURES = ["cig", "wcig", "csf", "pointwise_information", "cohort_size"]
ASKED = {
    "one": {"known": ["sex", "marital_status"]},
    "both, weights": {
        "attackers": {"neighbour": ["age", "sex"], "anyone": AnyKnown(1, among=["age", "sex", "region"])},
        "weights": "people",
    },
    "wildcards, population": {
        "missing": "wildcard",
        "known": ["age", "sex"],
        "population": Population(TABLE[:40], lacks="count"),
    },
    "population": {"known": ["age", "sex"], "population": Population(TABLE[:40], lacks="count")},
    "float32": {"known": ["sex"], "dtype": "float32"},
}
QUICK = ("one", "both, weights")
KINDS = [
    pytest.param(options, id=name, marks=() if name in QUICK else pytest.mark.slow) for name, options in ASKED.items()
]


def between(low, high, share):
    """Linear, but infinite between a number and infinity."""
    if math.isinf(low) or math.isinf(high):
        return low if low == high else low + high
    return np.percentile([low, high], 100 * share)


def by_definition(numbers, query):
    """The answer, from all numbers in order."""
    known = sorted(number + 0.0 for number in numbers if number == number)
    percentiles = {}
    for percent in query.percentiles:
        place = percent / 100 * (len(known) - 1)
        ends = known[math.floor(place)], known[math.ceil(place)]
        percentiles[percent] = between(*ends, place % 1)
    infinite = sum(number for number in known if math.isinf(number))
    total = infinite if infinite else float(sum(map(Fraction, known)) / len(known))
    return percentiles, {limit: sum(number > limit for number in known) for limit in query.above}, total


@pytest.mark.slow
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=12), cuts=st.integers(1, 4), repeat=st.integers(1, 3))
@settings(deadline=None)
def test_answers_follow_from_the_numbers(numbers, cuts, repeat):
    query = ColumnQuery((0.0, 12.5, 50.0, 100.0), (-1.0, 0.0, 2.5), mean=True)
    pieces = np.array_split(np.array(numbers), cuts)
    found = answer_column(lambda: [(piece, ONCE) for piece in pieces], query)
    times = [(piece, np.full(len(piece), 1, np.int64)) for piece in pieces]
    assert repr(answer_column(lambda: times, query)) == repr(found)
    if not any(number == number for number in numbers):
        assert all(math.isnan(one) for one in (*found.percentiles.values(), found.mean))
        assert set(found.above.values()) == {0}
        return
    percentiles, above, mean = by_definition(numbers, query)
    assert found.percentiles == pytest.approx(percentiles, rel=1e-12, nan_ok=True)
    assert found.above == above
    assert found.mean == mean or (math.isnan(found.mean) and math.isnan(mean))
    often = [(np.array(numbers), np.full(len(numbers), repeat, np.int64))]
    each = [(np.repeat(numbers, repeat), ONCE)]
    assert repr(answer_column(lambda: often, query)) == repr(answer_column(lambda: each, query))
    assert ColumnAnswer.from_stored(found.to_stored()).covers(query)


@pytest.mark.every_engine
def test_percentiles_means_and_counts_of_columns_are_exact(engine):
    table = TABLE.fillna({"age": 40})
    scores = gpupif.score(table, MEASURES, COLUMNS, known=["sex", "marital_status"])
    for measure in MEASURES:
        frame = scores[measure].astype(float)
        shares = scores.percentiles(measure, [0, 33.3, 95])
        assert shares.columns.tolist() == [0, 33.3, 95]
        assert shares.to_numpy().T.tolist() == np.percentile(frame, [0, 33.3, 95], axis=0).tolist()
        exact = [float(sum(map(Fraction, column)) / ROWS) for column in frame.to_numpy().T.tolist()]
        assert scores.means(measure).tolist() == exact
        assert scores.count_above(measure, 0.25).to_dict() == (frame > 0.25).sum().to_dict()


def test_bad_shares_and_measures_that_were_not_scored_are_refused():
    scores = gpupif.score(TABLE, ["csf"], COLUMNS, known=["sex"])
    with pytest.raises(InputError, match="from 0 to 100"):
        scores.percentiles("csf", 101)
    for ask in (scores.means, lambda measure: scores.percentiles(measure, 50)):
        with pytest.raises(NotScoredError, match="'emd' was not scored"):
            ask("emd")


def scored(folder, options, output=None, **kept):
    """Scores of a folder, on disk in pieces of a few rows, and the questions that they were asked."""
    measures = [*MEASURES, *(["population_size"] if "population" in options else [])]
    query = ColumnQuery((0.0, 33.3, 95.0), (0.25, 2.0), mean=True)
    questions = ScoreQuestions(dict.fromkeys(measures, query), (12.5, 95.0))
    if "population" in options:
        path = folder.parent / "people.parquet"
        TABLE[:40].to_parquet(path, index=False)
        options = options | {"population": Population(path, lacks="count")}
    arguments = Arguments.from_user(MEASURES, COLUMNS, **options)
    asked = replace(OutputOptions.from_arguments(output, **kept), questions=questions)
    # Rows with wildcards have to be in one place.
    with in_pieces(16, 200 if "missing" in options else 25), gpupif.config(memory_limit="8GiB", progress=False):
        return score_file(folder, arguments, replace(asked, memory_limit=1 << 33)).scores, questions


@pytest.mark.parametrize("options", KINDS)
def test_the_distribution_is_found_while_no_score_is_kept(tmp_path, options):
    """The figures have the bits of the scores in memory."""
    folder = write_parts(tmp_path / "in", TABLE, [20, 50])
    found, questions = scored(folder, options, summary_only=True)
    expected = gpupif.score(TABLE, MEASURES, COLUMNS, **options)
    for name in expected.attackers or [None]:
        for aggregate in ("worst", "mean"):
            one, other = (
                getattr(scores if name is None else scores.against(name), aggregate) for scores in (found, expected)
            )
            assert one.pif([12.5, 95]) == other.pif([12.5, 95])
            for measure, query in questions.of_columns.items():
                answers = one.column_answers(measure, query)
                assert [*map(repr, answers)] == [*map(repr, other.column_answers(measure, query))], measure
    with pytest.raises(NotScoredError, match="were not kept"):
        found.percentiles("csf", 77)


def test_the_distribution_is_found_while_cells_are_written(tmp_path):
    """The cells hold no other scores; all scores, if written, are not read again."""
    from gpupif.results.cell_selection import Selection

    folder, options = write_parts(tmp_path / "in", TABLE, [20, 50]), ASKED["one"]
    expected = gpupif.score(TABLE, MEASURES, COLUMNS, **options).percentiles("csf", [33.3, 95])
    cells, _ = scored(folder, options, tmp_path / "cells.parquet", selection=Selection.from_user("cig > 1"))
    every, _ = scored(folder, options, tmp_path / "all.parquet")
    for file in every.files:
        file.unlink()
    for scores in (cells, every):
        pd.testing.assert_frame_equal(scores.percentiles("csf", [33.3, 95]), expected, check_exact=True)
