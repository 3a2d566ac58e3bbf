"""Differentially private answers: exact counts in every way to run, sensitivities by brute force, and bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif import Budget, InputError, release
from gpupif.errors import ColumnNotFoundError, ColumnTypeError
from gpupif.release import mechanisms
from gpupif.release.ledger import Terms
from gpupif.release.queries import Counts, Histogram, Mean, Quantile, read_queries
from gpupif.utils.progress import Reporter
from tests.helpers.counting_ways import WAYS
from tests.helpers.tables import SHARED_FIXTURES

TABLE = pd.DataFrame(
    {
        "sex": ["f", "m", None, "f", "m", "f", "f", "m", "x", "f"],
        "size": [1, 2, 2, 3, 1, 1, 4, 2, 2, 9],
        "income": [10.5, None, 30.0, 99.0, -5.0, 10.5, 20.25, 0.0, 50.0, 40.0],
        "of": [bool(number % 2) for number in range(10)],
    }
)
QUERIES = [
    {"ask": "counts", "by": ["size", "sex"], "values": {"sex": ["m", "f", None], "size": [1.0, 2, 7]}, "epsilon": 1},
    {"ask": "counts", "by": "of", "values": [True, False], "epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"},
    {"ask": "counts", "by": ["sex"], "delta": 1e-6, "epsilon": 1},
    {"ask": "histogram", "column": "income", "bins": [0, 10.5, 40], "epsilon": 1},
    {"ask": "mean", "column": "income", "bounds": [0, 40], "epsilon": 1, "name": "mean income"},
    {"ask": "quantile", "column": "income", "q": 0.5, "candidates": [0, 20, 20.25, 90], "epsilon": 1},
]
pytestmark = [pytest.mark.every_engine]


@pytest.fixture
def budget(tmp_path):
    return Budget(tmp_path / "ledger.json", epsilon=50, delta=1e-4)


@pytest.fixture
def no_noise(monkeypatch):
    """OpenDP draws nothing: answers are exact."""
    for name in ("laplace", "gaussian", "threshold"):
        make = getattr(mechanisms, name)

        def exact(*arguments, make=make):
            return replace(make(*arguments), draw=lambda counts: counts)

        monkeypatch.setattr(f"gpupif.release.queries.{name}", exact)
    make_choice = mechanisms.choice
    lowest = {"draw": lambda scores: scores.index(min(scores))}
    monkeypatch.setattr("gpupif.release.queries.choice", lambda *given: replace(make_choice(*given), **lowest))


@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("way", WAYS)
def test_without_noise_answers_are_those_of_pandas(way, budget):
    by_both, by_truth, by_sex, bins, mean, median = way(release.answer, TABLE, QUERIES, budget).answers
    for row in by_both.table.itertuples():
        same = TABLE["sex"].isna() if row.sex is None or row.sex != row.sex else TABLE["sex"] == row.sex
        assert row.count == (same & (TABLE["size"] == row.size)).sum()
    assert list(by_both.table["size"]) == [1, 1, 1, 2, 2, 2, 7, 7, 7]
    assert by_truth.table.to_dict("list") == {"of": [True, False], "count": [5, 5]}
    assert dict(zip(by_sex.table["sex"].fillna(""), by_sex.table["count"], strict=True)) == {
        "": 1,
        "f": 5,
        "m": 3,
        "x": 1,
    }
    assert bins.table["count"].tolist() == [1, 5]
    clipped = TABLE["income"].dropna().clip(0, 40)
    assert (mean.value, mean.count, mean.name) == (pytest.approx(clipped.mean(), rel=1e-8), 9, "mean income")
    assert median.value == TABLE["income"].median()


@pytest.mark.slow
def test_a_release_prints_and_can_be_published(budget):
    found = release.answer(TABLE, QUERIES, budget)
    assert "6 answers with noise." in str(found)
    document = json.loads(found.to_json())
    assert document["budget"]["head"] == budget.to_dict()["head"]
    assert [own["ask"] for own in document["answers"]] == [own["ask"] for own in QUERIES]
    assert str(budget.path) not in found.to_json()
    assert found.answers[2].threshold > 10
    assert len(found.answers[2].table) == 0
    assert "of at least" in str(found.answers[2])


def counted(table, query):
    """What a query needs of a table, exactly."""
    from gpupif.marginals.open_counts import open_counts
    from gpupif.marginals.request import CountRequest
    from gpupif.marginals.set_counts import SetRequest
    from gpupif.release.answers import _make_combinations, _together
    from gpupif.release.queries import TrueCounts

    with Reporter() as report, open_counts(table, CountRequest(), report) as counts:
        names = list(counts.names)
        by = list(query.columns)
        found = counts.count([SetRequest([names.index(name) for name in by])], _make_combinations)
    combinations = {tuple(by): _together(found.found[0])}
    return query.exact(TrueCounts({own.name: own for own in found.columns}, combinations))


OF_BRUTE_FORCE = [
    Counts(by=["a"], values=[0, 1, 2], epsilon=1),
    Histogram(column="x", bins=[-1, 0, 3], epsilon=1),
    Mean(column="x", bounds=[-2, 3], epsilon=1),
    Quantile(column="x", q=0.3, bounds=[-2, 3], epsilon=1),
]


@settings(SHARED_FIXTURES, max_examples=15)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([-5.0, -2.0, 0.0, 0.7, 3.0, 8.0])), min_size=2, max_size=6
    ),
    neighbours=st.sampled_from(["add-remove", "replace"]),
    other=st.tuples(st.integers(0, 3), st.sampled_from([-5.0, 3.0])),
)
def test_neighbours_differ_by_no_more_than_the_noise_is_made_for(rows, neighbours, other):
    """By brute force: every row taken away, or replaced."""
    terms = Terms(1.0, 0.0, neighbours)
    for query in OF_BRUTE_FORCE:
        losses = [noise.loss for noise in query.noises(terms)]
        exact = np.array(counted(pd.DataFrame(rows, columns=["a", "x"]), query), float)
        for place in range(len(rows)):
            fewer = [*rows[:place], *rows[place + 1 :]]
            there = [*fewer, other] if terms.replaced else fewer
            change = np.abs(exact - np.array(counted(pd.DataFrame(there, columns=["a", "x"]), query), float))
            if isinstance(query, Mean):
                assert (change <= [loss.sensitivity for loss in losses]).all()
            elif isinstance(query, Quantile):
                # Permute-and-flip: epsilon is 2 shift / scale.
                assert change.max() <= (10 if terms.replaced else 7)
            else:
                assert change.max() <= losses[0].sensitivity
                assert change.sum() <= losses[0].sensitivity * losses[0].times


@pytest.mark.parametrize(("neighbours", "factor"), [("add-remove", 1), ("replace", 2)])
def test_contributions_and_groups_multiply_the_noise(neighbours, factor):
    """A histogram's sensitivity is 1 row if a person is added, and 2 if a person is replaced."""
    for query in OF_BRUTE_FORCE[:2]:
        plain = query.noises(Terms(1.0, 0.0, neighbours))[0].loss
        more = query.noises(Terms(1.0, 0.0, neighbours, contributions=3, group=2))[0].loss
        assert (round(plain.scale, 9), round(more.scale, 9)) == (factor, 6 * factor)
        assert (plain.epsilon, more.epsilon) == (1, 1)
    [tied] = Quantile(column="x", q=0.25, bounds=[0, 1], epsilon=1).noises(Terms(1.0))
    assert tied.loss.epsilon == 1
    gaussian, threshold = (
        own.noises(Terms(1.0, 1e-6, neighbours))[0].loss
        for own in (
            Counts(by=["a"], values=[1], epsilon=1, delta=1e-6, mechanism="gaussian"),
            Counts(by=["a"], epsilon=1, delta=1e-6),
        )
    )
    assert (gaussian.times, gaussian.delta, gaussian.epsilon) == (factor, 1e-6, 1)
    assert (threshold.times, threshold.failure, threshold.epsilon) == (factor, 1e-6, 1)


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 3.0])
def test_noise_has_the_moments_of_theory(epsilon):
    for noise in (
        mechanisms.laplace(epsilon, 1),
        mechanisms.laplace(epsilon, 1 << 30),
        mechanisms.gaussian(epsilon, 1e-6, 1),
    ):
        assert sum(loss.epsilon for loss in [noise.loss]) == epsilon
        drawn = np.array(noise.drawn([5] * 4000), float)
        assert abs(drawn.mean() - 5) < 6 * noise.standard_error / math.sqrt(4000)
        assert 0.8 < drawn.std() / noise.standard_error < 1.2
    assert noise.drawn([]) == []


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_single_rows_pass_a_threshold_with_probability_delta_at_most(epsilon):
    noise = mechanisms.threshold(epsilon, 1e-4, 1)
    scale = noise.loss.scale
    # P(1 + noise >= threshold), exactly; with a threshold that is one lower it is above delta.
    passes = [
        math.exp(-(least - 1) / scale) / (1 + math.exp(-1 / scale)) for least in (noise.threshold, noise.threshold - 1)
    ]
    assert passes[0] <= 1e-4 < passes[1]


def test_opendp_states_the_delta_of_counts_above_its_threshold():
    """If this fails, OpenDP is mended, and `threshold` may take its threshold as it is."""
    library = mechanisms.opendp()
    domain = library.map_domain(library.atom_domain(T="i64"), library.atom_domain(T="i64"))
    metric = library.l01inf_distance(library.absolute_distance(T="i64"))
    made = library.m.make_laplace_threshold(domain, metric, scale=1.0, threshold=5)
    assert made.map((1, 1, 1))[1] == pytest.approx(math.exp(-5) / (1 + math.exp(-1)))
    assert min(made(dict.fromkeys(range(500), 5)).values()) == 5


@pytest.mark.usefixtures("no_noise")
def test_several_queries_of_a_file_are_one_charge(budget, tmp_path):
    (tmp_path / "q.json").write_text(json.dumps({"query": QUERIES[:2]}))
    before = len(budget.charges)
    release.answer(TABLE, tmp_path / "q.json", budget)
    assert len(budget.charges) == before + 1
    assert len(budget.charges[-1].losses) == 2


BAD = [
    ({"ask": "sum"}, "query 1: ask: expected 'counts', 'histogram', 'mean', 'quantile'; got 'sum'"),
    ({"ask": "mean", "colum": "x", "epsilon": 1}, r"there is no key 'colum'\. Did you mean 'column'\?"),
    ({"ask": "mean", "epsilon": 1}, "query 1: expected a key 'column', got none"),
    ({"ask": "mean", "column": "income", "epsilon": 1}, r"bounds: expected bounds=\(lowest, highest\), got none"),
    (
        {"ask": "mean", "column": "income", "epsilon": 1, "bounds": [4, 4]},
        "bounds: expected the lowest below the highest",
    ),
    ({"ask": "mean", "column": "income", "epsilon": 1, "bounds": [0, math.inf]}, "bounds: expected two numbers"),
    ({"ask": "mean", "column": "income", "epsilon": 1, "bounds": [0, 5e-324]}, "bounds: expected a distance"),
    ({"ask": "mean", "column": "income", "epsilon": 1, "bounds": [0, 1], "name": ["x"]}, "name: expected a text"),
    *(
        ({"epsilon": tiny, **query}, "epsilon: expected one whose noise fits .* nothing was spent")
        for query in (
            {"ask": "counts", "by": "sex", "values": ["f"]},
            {"ask": "counts", "by": "sex", "delta": 1e-6},
            {"ask": "mean", "column": "income", "bounds": [0, 40]},
            {"ask": "quantile", "column": "income", "bounds": [0, 40], "q": 0.5},
        )
        for tiny in (5e-324, 1e-300, 1e-18)
    ),
    ({"ask": "counts", "by": "sex", "epsilon": 4e-18, "delta": 1e-320}, "delta: no threshold hides"),
    ({"ask": "mean", "column": "income", "epsilon": 2e-9, "bounds": [0, 40]}, "epsilon: expected one whose noise fits"),
    ({"ask": "mean", "column": ["income"], "epsilon": 1, "bounds": [0, 1]}, "column: expected the name of a column"),
    ({"ask": "mean", "column": "income", "epsilon": 0, "bounds": [0, 1]}, "epsilon: expected a number above 0"),
    ({"ask": "histogram", "column": "income", "epsilon": 1, "bins": [1, 0]}, "bins: expected ascending edges"),
    ({"ask": "histogram", "column": "income", "epsilon": 1, "bins": [1]}, "bins: expected a list of edges"),
    ({"ask": "quantile", "column": "income", "epsilon": 1, "q": 2, "bounds": [0, 1]}, "q: expected a probability"),
    (
        {"ask": "quantile", "column": "income", "epsilon": 1, "q": 0.5, "candidates": []},
        "candidates: expected at least one value",
    ),
    ({"ask": "quantile", "column": "income", "epsilon": 1, "q": 0.5, "candidates": 3}, "candidates: expected a list"),
    ({"ask": "counts", "by": [], "epsilon": 1, "values": [1]}, "by: expected at least one column"),
    (
        {"ask": "counts", "by": "sex", "epsilon": 1, "values": ["f", 1]},
        "column 'sex': expected texts.*got 1. Put it in",
    ),
    (
        {"ask": "counts", "by": "size", "epsilon": 1, "values": [1, "2"]},
        "expected numbers.*got '2'. Write a number, without quotes",
    ),
    ({"ask": "counts", "by": "sex", "epsilon": 1}, "values: expected all values of each column, or delta="),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": []}, "values: column 'sex': expected at least one value"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": ["f", "f"]}, "a value was given twice"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": [2**70]}, "column 'sex': expected texts by its type"),
    (
        {"ask": "counts", "by": ["sex", "of"], "epsilon": 1, "values": {"sex": ["f"]}},
        "column 'of': expected a list of values, got none",
    ),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": {"sx": ["f"]}}, "values: no column 'sx' in by"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": range(2_000_000)}, "expected at most 1,000,000 cells"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "delta": 0}, "delta: expected a number above 0 to below 1"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": ["f"], "delta": 0.1}, "delta: Laplace noise .* needs none"),
    ({"ask": "counts", "by": "sex", "epsilon": 1, "values": ["f"], "mechanism": "gaussian"}, "delta of Gaussian noise"),
    (
        {"ask": "counts", "by": "sex", "epsilon": 1, "delta": 0.1, "mechanism": "gaussian"},
        "a threshold takes 'laplace'",
    ),
]


@pytest.mark.parametrize(("query", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_wrong_queries_are_refused_in_one_line_and_spend_nothing(budget, query, message):
    with pytest.raises(InputError, match=message) as caught:
        release.answer(TABLE, [query], budget)
    assert "\n" not in str(caught.value)
    assert budget.charges == []


def test_wrong_tables_and_files_are_refused_and_spend_nothing(budget, tmp_path, monkeypatch):
    with pytest.raises(ColumnNotFoundError, match=r"column: no column 'incom' in the table\. Did you mean 'income'"):
        release.mean(TABLE, "incom", budget, bounds=(0, 1), epsilon=1)
    with pytest.raises(ColumnTypeError, match="column 'sex': expected numbers"):
        release.mean(TABLE, "sex", budget, bounds=(0, 1), epsilon=1)
    # Whether objects are numbers depends on the rows.
    with pytest.raises(ColumnTypeError, match="column 'n': expected numbers, got object"):
        release.mean(pd.DataFrame({"n": pd.Series([1, 2], dtype=object)}), "n", budget, bounds=(0, 1), epsilon=1)
    with pytest.raises(ColumnNotFoundError, match="by: no column 'sexes'"):
        release.counts(TABLE, "sexes", budget, values=[1], epsilon=1)
    for column in (["1", "2"], [1, 2], [1, "1"]):
        with pytest.raises(InputError, match="column 'n': expected texts by its type, got 1"):
            release.counts(pd.DataFrame({"n": pd.Series(column, dtype=object)}), "n", budget, values=[1], epsilon=1)
    for column, value, expected in (
        ([True, False], "True", "true or false"),
        ([True, False], 1, "true or false"),
        ([1, 2], True, "numbers"),
        ([1.5, 2], "1.5", "numbers"),
        (["1", "2"], 1, "texts"),
    ):
        for kind in (None, "category"):
            frame = pd.DataFrame({"n": pd.Series(column, dtype=kind)})
            with pytest.raises(InputError, match=f"column 'n': expected {expected} by its type, got {value!r}"):
                release.counts(frame, "n", budget, values=[value], epsilon=1)
    (tmp_path / "q.toml").write_text("[[queries]]\nask = 'mean'\n")
    with pytest.raises(InputError, match=r"queries: .*q\.toml: expected queries, each under \[\[query\]\]"):
        release.answer(TABLE, tmp_path / "q.toml", budget)
    with pytest.raises(InputError, match="queries: expected at least one query, got none"):
        read_queries([])
    with pytest.raises(InputError, match="queries: two queries are called 'mean income'"):
        release.answer(TABLE, [QUERIES[0], QUERIES[4], QUERIES[4]], budget)
    assert budget.charges == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs opendp, which is not installed here: pip install 'gpupif\[release\]'"):
        release.histogram(TABLE, "income", budget, bins=[0, 1], epsilon=1)


@pytest.mark.slow
def test_the_commands_make_charge_and_show_a_ledger(folder, run):
    (folder / "q.toml").write_text('[[query]]\nask = "counts"\nby = "sex"\nvalues = ["f", "m"]\nepsilon = 0.5\n')
    assert run("budget", "l.json").err.startswith("gpupif: error: ledger: there is no l.json.")
    assert run("budget", "l.json", "--epsilon", "1").code == 0
    command = ["release", "people.csv", "--ledger", "l.json", "--query", "q.toml", "-o", "a.json"]
    told = run(*command, "--json", "--report", "r.html")
    assert (told.code, told.err) == (0, "")
    document = json.loads((folder / "a.json").read_text())
    assert document["answers"] == json.loads(told.out)["answers"]
    assert "input" not in document
    assert run(*command).err.startswith("gpupif: error: a.json: exists already.")
    assert run(*command, "--overwrite", "-q").out == ""
    told = run(*command, "--overwrite")
    assert told.code == 2
    assert told.err.startswith("gpupif: error: budget: all releases would take epsilon 1.5 of 1")
    told = run("budget", "l.json", "--json", "--report", "b.html")
    assert [own["epsilon"] for own in json.loads(told.out)["charges"]] == [0.5, 0.5]
    for name in ("r.html", "b.html"):
        assert "Budget" in (folder / name).read_text()
    assert gpupif.Budget(folder / "l.json").left == 0
