"""Risk of households and the threshold for a limit of the global risk, by their definitions in exact arithmetic.

Files and Dask give the same risk, and each row has the risk of its household.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.disclosure.households import risks_by_code, sum_households
from gpupif.disclosure.risk_threshold import KeyedSums, find_threshold
from gpupif.errors import ColumnNotFoundError, InputError
from tests.helpers import naive, naive_disclosure
from tests.helpers.dask_frames import cut
from tests.helpers.disclosure import outcome
from tests.helpers.pieces import in_pieces, write_parts
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables
from tests.helpers.weights import some_weights
from tests.helpers.wildcards import sparse

TABLE = pd.DataFrame(
    {
        "age": [30, 30, 30, 41, 41, 52],
        "sex": [*"fffmmm"],
        "home": [*"aabbcc"],
        "w": [2.0, 1.5, 4.0, 10.0, 20.0, 50.0],
    },
    index=[3, 1, 4, 5, 9, 2],
)


def risks_of(table, known, weights, wildcard):
    """Return the risk of each row."""
    classes = naive_disclosure.classes_of_rows(table, known, wildcard)
    if weights is None:
        return [1 / len(rows) for rows in classes]
    return [naive.individual_risk(len(rows), math.fsum(weights[row] for row in rows)) for rows in classes]


def risk_of_households(risks, households):
    """Return 1 - the product of 1 - r over the rows of each household, exactly."""
    safe = {}
    for risk, household in zip(risks, households, strict=True):
        safe[household] = safe.get(household, 1) * (1 - Fraction(risk))
    return {household: float(1 - share) for household, share in safe.items()}


@st.composite
def questions(draw):
    """Draw a table, quasi-identifiers, weights or none, households, and the treatment of missing values."""
    wildcard = draw(st.booleans())
    table = draw(sparse() if wildcard else tables())
    names = list(table)
    rows = len(table[names[0]])
    known = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    weights = some_weights(draw, rows, ("whole", "whole, nobody", "halves", "any")) if draw(st.booleans()) else None
    households = draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows))
    frame = frame_of(table).assign(home=households)
    how = {"missing": "wildcard" if wildcard else "category"}
    if weights is not None:
        frame, how = frame.assign(**{"how many": weights}), how | {"weights": "how many"}
    return table, frame, known, weights, households, how


@pytest.mark.slow
@pytest.mark.every_engine
@given(question=questions(), limit=st.floats(1e-3, 1.0))
@SHARED_FIXTURES
def test_household_risk_is_as_defined(engine, question, limit):
    table, frame, known, weights, households, how = question
    risks = risks_of(table, known, weights, how["missing"] == "wildcard")
    wanted = risk_of_households(risks, households)
    found = gpupif.risk(frame, known, threshold=0.3, household="home", max_global_risk=limit, **how)
    homes = found.households
    assert (homes.column, homes.households, homes.threshold) == ("home", len(wanted), 0.3)
    assert homes.risk.highest == pytest.approx(max(wanted.values()), rel=1e-12, abs=1e-300)
    assert homes.risk.average == pytest.approx(math.fsum(wanted.values()) / len(wanted), rel=1e-12, abs=1e-300)
    assert homes.reidentified == pytest.approx(math.fsum(wanted.values()), rel=1e-12, abs=1e-300)
    assert homes.rows == pytest.approx(math.fsum(wanted[one] for one in households), rel=1e-12, abs=1e-300)
    assert homes.row_share == pytest.approx(homes.rows / len(risks), rel=1e-15)
    if all(abs(risk - 0.3) > 1e-9 for risk in wanted.values()):
        assert homes.risk.at_risk == sum(risk > 0.3 for risk in wanted.values()) / len(wanted)
    of_rows = gpupif.models.household_risk(frame, known, "home", **how)
    assert of_rows.tolist() == pytest.approx([wanted[one] for one in households], rel=1e-12, abs=1e-300)
    assert found.risk_threshold.max_global_risk == limit
    assert found.risk_threshold.global_risk == pytest.approx(math.fsum(risks) / len(risks), rel=1e-12)
    capped = math.fsum(min(risk, found.risk_threshold.threshold) for risk in risks) / len(risks)
    assert capped == pytest.approx(min(limit, found.risk_threshold.global_risk), rel=1e-9)
    if all(abs(risk - found.risk_threshold.threshold) > 1e-9 for risk in risks):
        assert found.risk_threshold.rows_above == sum(risk > found.risk_threshold.threshold for risk in risks)


@pytest.mark.slow
@given(question=questions(), sensitive=st.booleans(), data=st.data())
@settings(SHARED_FIXTURES, max_examples=10)
def test_files_and_dask_give_the_same_risk(question, sensitive, data, tmp_path_factory, dask_in_one_thread):
    table, frame, known, _, _, how = question
    others = [name for name in table if name not in known and len(set(table[name])) > 1]
    asked = (known, others[:1] if sensitive else None)
    options = {"household": "home", "max_global_risk": 0.2, "groups": 0, "device": "cpu", **how}
    expected = outcome(frame, *asked, **options)
    edges = data.draw(st.lists(st.integers(0, len(frame)), max_size=3))
    folder = write_parts(tmp_path_factory.mktemp("t") / "in", frame, edges)
    rows = len(frame) if how["missing"] == "wildcard" else data.draw(st.integers(1, len(frame) + 1))
    with in_pieces(data.draw(st.integers(1, len(frame))), rows):
        assert outcome(folder, *asked, memory_limit="64GiB", **options) == expected
    parts = cut(frame, edges)
    assert outcome(parts, *asked, **options) == expected
    with gpupif.config(device="cpu"):
        lazy = gpupif.models.household_risk(parts, known, "home", **how).compute()
        pd.testing.assert_series_equal(lazy, gpupif.models.household_risk(frame, known, "home", **how))


def test_risks_and_threshold_are_those_computed_by_hand():
    """Compute by hand: 30 f has 3 rows and 7.5 people, 41 m has 2 rows and 30, 52 m has 1 row and 50."""
    f, p, q = 3 / 7.5, 2 / 30, 1 / 50
    odds = f / (1 - f)
    # The risk for f rows is p / (1-p) (1 / f - the risk for f - 1 rows); for one row it is p / (1-p) ln(1 / p).
    three = odds * (1 / 2 - odds * (1 - odds * -math.log(f)))
    two = p / (1 - p) * (1 - p / (1 - p) * -math.log(p))
    one = q / (1 - q) * -math.log(q)
    scores = gpupif.score(TABLE, "individual_risk", columns=["age"], known=["age", "sex"], weights="w")
    assert scores.individual_risk["age"].tolist() == pytest.approx([three] * 3 + [two] * 2 + [one], rel=1e-14)
    homes = [1 - (1 - three) ** 2, 1 - (1 - three) * (1 - two), 1 - (1 - two) * (1 - one)]
    found = gpupif.risk(TABLE, ["age", "sex"], weights="w", household="home", max_global_risk=0.1)
    assert found.households.reidentified == pytest.approx(sum(homes), rel=1e-14)
    assert found.households.rows == pytest.approx(2 * sum(homes), rel=1e-14)
    # The lowest risks, of three rows, stay as they are. The threshold is (6 / 10 - their sum) / 3.
    assert found.risk_threshold.threshold == pytest.approx((0.6 - 2 * two - one) / 3, rel=1e-14)
    assert (found.risk_threshold.rows_above, found.risk_threshold.share_above) == (3, 0.5)
    of_rows = gpupif.models.household_risk(TABLE, ["age", "sex"], "home", weights="w")
    assert of_rows.tolist() == pytest.approx([risk for risk in homes for _ in range(2)], rel=1e-14)
    assert of_rows.index.tolist() == TABLE.index.tolist()
    shown = str(found)
    assert "re-identified households expected" in shown
    assert "threshold for a global risk of 10 %" in shown


def test_each_kind_of_table_has_the_same_risk(tmp_path, dask_in_one_thread):
    expected = gpupif.models.household_risk(TABLE, ["age", "sex"], "home")
    assert (expected.name, expected.tolist()[4:]) == ("household_risk", [1.0, 1.0])
    polars = gpupif.models.household_risk(pl.from_pandas(TABLE), ["age", "sex"], "home")
    arrow = gpupif.models.household_risk(pa.Table.from_pandas(TABLE), ["age", "sex"], "home")
    TABLE.to_parquet(tmp_path / "in.parquet")
    file = gpupif.models.household_risk(tmp_path / "in.parquet", ["age", "sex"], "home")
    assert isinstance(polars, pl.Series)
    assert isinstance(arrow, pa.Array)
    assert polars.to_list() == arrow.to_pylist() == file.tolist() == expected.tolist()


def test_no_sum_of_a_household_overflows():
    """Add up very many rows, and very certain ones."""
    rows = 200_000
    for risk, expected in ((1.0, 1.0), (1 - 2.0**-53, 1.0), (1e-9, -math.expm1(rows * math.log1p(-1e-9)))):
        found = sum_households(np.full(3, risk), np.array([rows - 2, 1, 1]), np.array([7, 7, 7]))
        several = KeyedSums.total([found] + [sum_households(np.zeros(1), np.ones(1, int), np.array([7]))] * 200)
        assert risks_by_code(several).tolist() == pytest.approx([expected], rel=1e-14)
    for risk in (0.0, 5e-324, 1e-300, 1e-17, 0.1, 0.25, 0.5, 1 - 1e-9):
        found = risks_by_code(sum_households(np.array([risk]), np.ones(1, int), np.zeros(1, int)))
        # Logarithms are summed in units of 2^-79 or less.
        assert found[0] == pytest.approx(risk, rel=1e-14, abs=2.0**-79)


@given(parts=st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=6), max_size=70))
def test_sums_by_key_add_up_in_any_parts(parts):
    several = [KeyedSums.from_amounts(*np.array(part, np.int64).reshape(-1, 2).T) for part in parts]
    found = KeyedSums.total([])
    for one in several:
        found = KeyedSums.total([found, one])
    expected = {}
    for key, amount in (pair for part in parts for pair in part):
        expected[key] = expected.get(key, 0) + amount
    if several:
        keys, (sums,) = found.whole()
        assert dict(zip(keys.tolist(), sums.tolist(), strict=True)) == expected
        assert keys.tolist() == sorted(expected)


@given(
    levels=st.dictionaries(st.sampled_from([0.0, 1e-9, 0.1, 0.25, 1 / 3, 0.5, 1.0]), st.integers(1, 5), min_size=1),
    limit=st.fractions(Fraction(1, 1000), 1),
)
def test_the_threshold_is_that_of_exact_arithmetic(levels, limit):
    """Find the highest r at which the mean of min(risk, r) is at most the limit, by trying each interval of risks."""
    limit = float(limit)
    risks = sorted(Fraction(risk) for risk, rows in levels.items() for _ in range(rows))
    rows_of_risk = KeyedSums.from_amounts(np.array(list(levels)), np.array(list(levels.values())))
    found = find_threshold(rows_of_risk, limit)
    allowed = Fraction(limit) * len(risks)
    if sum(risks) <= allowed:
        assert (found.threshold, found.rows_above) == (float(risks[-1]), 0)
        return
    for above in range(1, len(risks) + 1):
        cap = (allowed - sum(risks[:-above])) / above
        if above == len(risks) or risks[-above - 1] <= cap:
            break
    assert found.threshold == float(cap)
    assert found.rows_above == sum(risk > cap for risk in risks)


def test_bad_input_is_refused(dask_in_one_thread):
    with pytest.raises(InputError, match=r"household: expected a column that only says .* got 'sex', which quasi_iden"):
        gpupif.risk(TABLE, ["age", "sex"], household="sex")
    with pytest.raises(InputError, match=r"household: .* got 'sex', which sensitive= names too"):
        gpupif.risk(TABLE, "age", "sex", household="sex")
    with pytest.raises(InputError, match=r"household: .* got 'w', which weights= names too"):
        gpupif.models.household_risk(TABLE, "age", "w", weights="w")
    with pytest.raises(ColumnNotFoundError, match=r"household: no column 'hom' in the table. Did you mean 'home'"):
        gpupif.risk(TABLE, "age", household="hom")
    with pytest.raises(InputError, match=r"max_global_risk: expected a number above 0 and up to 1, got 2. Divide"):
        gpupif.risk(TABLE, "age", max_global_risk=2)
    lacking = TABLE.assign(home=["a", None, "b", "b", None, "c"])
    message = r"household: column 'home': expected a household in each row, got 2 missing values, which might be"
    for table in (lacking, cut(lacking, [])):
        for missing in ("category", "wildcard"):
            with pytest.raises(InputError, match=message):
                gpupif.risk(table, "age", household="home", missing=missing)
    with pytest.raises(InputError, match=message):
        gpupif.models.household_risk(lacking, "age", "home")
    with pytest.raises(InputError, match=message):
        gpupif.models.household_risk(cut(lacking, []), "age", "home").compute()


def test_the_command_prints_households_and_threshold(run, folder):
    TABLE.to_csv(folder / "t.csv", index=False)
    command = ("risk", "t.csv", "--quasi-identifiers", "age,sex", "--weights", "w")
    ended = run(*command, "--household", "home", "--max-global-risk", "0.1", "--json")
    assert (ended.code, ended.err) == (0, "")
    expected = gpupif.risk(TABLE, ["age", "sex"], weights="w", household="home", max_global_risk=0.1).to_dict()
    document = json.loads(ended.out)
    assert {key: document[key] for key in ("households", "risk_threshold")} == {
        key: expected[key] for key in ("households", "risk_threshold")
    }
    assert run(*command, "--household", "w").err.startswith("gpupif: error: --household: expected a column that only")
