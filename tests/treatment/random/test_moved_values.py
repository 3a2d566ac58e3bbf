"""Noise, jitter and shifted dates: how far values move, which parts of values stay, and refused values."""

from __future__ import annotations

import datetime as dt
import math
import statistics
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import ColumnTypeError, InputError
from gpupif.treatment.random.draws import whole_steps
from gpupif.treatment.random.moved_values import DISTRIBUTIONS, Jitter, Noise, ShiftDates, variates
from tests.helpers.treated_chunks import prepared, treated

KEY = gpupif.treatments.Key.from_any(bytes(range(50, 82)))
ROWS = 20_000
DAY = dt.date(2020, 2, 27)


def table_of(values, kind=None):
    return pa.table({"x": pa.array(values, kind)})


def after(values, treatment, kind=None, cuts=()):
    return treated(table_of(values, kind), treatment, KEY, cuts)["x"]


def naive_variate(distribution, number):
    """Return the inverse of the distribution function, by Python's libraries."""
    part = (2 * (number >> 12) + 1) / 2**53
    if distribution == "normal":
        return statistics.NormalDist().inv_cdf(part)
    if distribution == "uniform":
        return 2 * part - 1
    rest = (2 * ((2 * number % 2**64) >> 12) + 1) / 2**53
    return math.log(rest) * (1 if number >> 63 else -1)


@pytest.mark.parametrize("distribution", ["normal", "laplace", "uniform"])
def test_noise_is_the_inverse_of_the_distribution_function(distribution):
    numbers = [int(one) for one in KEY.draws(0, "x").of_rows(0, 500)]
    numbers += [0, 1, 2**12, 2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2**12]
    found = variates(DISTRIBUTIONS[distribution], np.array(numbers, np.uint64))
    assert found == pytest.approx([naive_variate(distribution, number) for number in numbers], rel=1e-13, abs=1e-15)
    moved = after([5.0] * 500, Noise("x", 3, distribution)).to_numpy()
    assert moved == pytest.approx(5 + 3 * found[:500], rel=1e-13)


def test_noise_has_the_same_bits_on_every_machine():
    """Compare the bits of noise with bits that were computed on another machine."""
    found = after([0.0] * 3, Noise("x", 1.0)).to_pylist() + after([0.0] * 3, Noise("x", 1.0, "laplace")).to_pylist()
    assert [value.hex() for value in found] == BITS


BITS = [
    "0x1.b42a235d2ad15p-1",
    "-0x1.0d40a7910b5d7p-2",
    "-0x1.11724e6cea9a1p-2",
    "-0x1.00aef94816a53p-1",
    "0x1.dc0ad0436884fp-3",
    "0x1.e43608679aefdp-3",
]


@pytest.mark.parametrize(
    ("distribution", "variance", "tails"), [("normal", 1, 3), ("laplace", 2, 6), ("uniform", 1 / 3, 1.8)]
)
def test_noise_has_the_mean_and_variance_of_its_distribution(distribution, variance, tails):
    """Check mean and variance to 5 standard errors, and the tails by the kurtosis."""
    moved = after([10.0] * ROWS, Noise("x", 2, distribution)).to_numpy()
    assert abs(moved.mean() - 10) < 5 * math.sqrt(4 * variance / ROWS)
    assert abs(moved.var() / 4 - variance) < 5 * variance * math.sqrt((tails - 1) / ROWS)


def test_relative_noise_scales_with_the_value_or_the_deviation():
    values = [100.0, 0.0, -100.0, 1.0] * 2500
    moved = after(values, Noise("x", 0.1, relative="value")).to_numpy() - np.array(values)
    assert (moved[1::4] == 0).all()
    assert moved[::4].std() == pytest.approx(10, rel=0.1)
    assert moved[3::4].std() == pytest.approx(0.1, rel=0.1)
    moved = after(values, Noise("x", 0.1, relative="deviation")).to_numpy() - np.array(values)
    assert moved.std() == pytest.approx(0.1 * np.std(values), rel=0.1)
    assert prepared(table_of(values), Noise("x", 0.1, relative="deviation"), KEY).record["scale"] == pytest.approx(
        0.1 * np.std(values)
    )


def test_whole_and_decimal_numbers_keep_their_types():
    found = after([7, None, 8] * 100, Noise("x", 2.5))
    assert found.type == pa.int64()
    assert found[1].as_py() is None
    raw = 2.5 * np.array([naive_variate("normal", int(one)) for one in KEY.draws(0, "x").of_rows(0, 300)])
    assert [found[row].as_py() for row in (0, 2, 3)] == [7 + round(raw[0]), 8 + round(raw[2]), 7 + round(raw[3])]
    found = after([Decimal("7.25"), Decimal("8.00"), None] * 50, Noise("x", 2.5), pa.decimal128(10, 2))
    assert found.type == pa.decimal128(10, 2)
    assert [float(found[row].as_py()) for row in (0, 1)] == pytest.approx([7.25 + raw[0], 8 + raw[1]], abs=0.005001)


TREATMENTS = [
    (Noise("x", 1.5), [1.0, 2.0, None, -0.0], None),
    (Noise("x", 0.5, "laplace", "deviation"), [1, 2, None, 900], None),
    (Jitter("x", 3), [1, 2, None, 900], None),
    (Jitter("x", 3), [DAY, None, DAY + dt.timedelta(40)], None),
    (Jitter("x", 3), ["20200227", "1e-07", None, "123456789000.0"], None),
    (Noise("x", 0.5), ["1e-07", None, "123456789000.0", "+12"], None),
    (Jitter("x", 400), ["2020-02-27", None, "2021-12-31", "1999-01-01"], None),
]


@pytest.mark.parametrize("treatment", [Noise("x", 0.25), Jitter("x", 3)])
def test_texts_that_are_numbers_move_as_decimals(treatment):
    texts = ["1e-07", None, "123456789000.0", "+12", "-0.5"] * 20
    moved = after(texts, treatment)
    exact = after([None if one is None else Decimal(one) for one in texts], treatment, pa.decimal128(20, 7))
    assert moved.type == pa.string()
    assert moved.to_pylist() == [None if one is None else f"{one:.7f}" for one in exact.to_pylist()]
    whole = after(["12", "-7", None] * 20, treatment).to_pylist()
    assert whole == [None if one is None else str(one) for one in after([12, -7, None] * 20, treatment).to_pylist()]


@pytest.mark.parametrize(("treatment", "values", "kind"), TREATMENTS)
@settings(max_examples=6, deadline=None)
@given(cuts=st.lists(st.integers(0, 900), max_size=4))
def test_any_cut_of_the_rows_moves_values_the_same(treatment, values, kind, cuts):
    assert after(values * 200, treatment, kind, cuts).to_pylist() == after(values * 200, treatment, kind).to_pylist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([DAY, dt.date(1961, 3, 1), None], pa.date32()),
        ([DAY, dt.date(1961, 3, 1), None], pa.date64()),
        ([dt.datetime(2020, 2, 27, 23, 59, 1), None], pa.timestamp("us")),
        ([dt.datetime(2020, 2, 27, 23, 59, 1), None], pa.timestamp("ns", "Europe/Berlin")),
        ([dt.datetime(1969, 2, 27, 23, 59, 1)], pa.timestamp("s")),
        ([dt.datetime(2250, 2, 27), dt.datetime(1690, 2, 27)], pa.timestamp("ns")),
    ],
)
def test_jitter_moves_dates_by_days(values, kind):
    rows = 1200
    before = pa.array((values * rows)[:rows], kind)
    found = treated(pa.table({"x": before}), Jitter("x", 14), KEY)["x"]
    assert found.type == kind
    steps = whole_steps(KEY.draws(0, "x").of_rows(0, rows), 14).tolist()
    days = [dt.timedelta(step) for step in steps]
    was = before.to_pylist()
    assert [None if one is None else one + by for one, by in zip(was, days, strict=True)] == found.to_pylist()
    assert set(steps) == set(range(-14, 15))


@pytest.mark.parametrize("layout", ["%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y/%m/%d", "%Y%m%d"])
def test_texts_of_dates_keep_their_layout(layout):
    day = dt.datetime(2020, 2, 27, 22, 30)
    found = after([day.strftime(layout)] * 50, Jitter("x", 14)).to_pylist()
    steps = whole_steps(KEY.draws(0, "x").of_rows(0, 50), 14).tolist()
    assert found == [(day + dt.timedelta(step)).strftime(layout) for step in steps]


def test_jitter_of_numbers_is_uniform():
    moved = after([1000] * ROWS, Jitter("x", 4)).to_numpy() - 1000
    counts = np.bincount(moved + 4, minlength=9)
    # Chi-square with 8 degrees of freedom: above 31.8 once in 10,000 keys.
    assert (((counts - ROWS / 9) ** 2) / (ROWS / 9)).sum() < 31.8
    assert set((after([0.5] * 500, Jitter("x", 2)).to_numpy() - 0.5).tolist()) == {-2.0, -1.0, 0.0, 1.0, 2.0}
    found = after([Decimal("0.50")] * 50, Jitter("x", 1), pa.decimal128(9, 2)).to_pylist()
    assert set(found) == {Decimal("-0.50"), Decimal("0.50"), Decimal("1.50")}


def visits(rows=600, nobody=0, texts=False):
    random = np.random.default_rng(4)
    days = [DAY + dt.timedelta(int(day)) for day in random.integers(0, 900, rows)]
    later = [day + dt.timedelta(int(more)) for day, more in zip(days, random.integers(0, 40, rows), strict=True)]
    persons = [None if row < nobody else f"p{number}" for row, number in enumerate(random.integers(0, 90, rows))]
    dates = [[one.isoformat() if texts else one for one in column] for column in (days, later)]
    dates[1][-1] = None
    return pa.table({"person": persons, "in": dates[0], "out": dates[1]})


SHIFT = ShiftDates(["in", "out"], person="person", days=30)


@pytest.mark.parametrize("texts", [False, True])
def test_intervals_between_dates_of_a_person_stay(texts):
    table = visits(texts=texts)
    found = treated(table, SHIFT, KEY, cuts=[17, 200])
    assert found.schema == table.schema
    shifts = {}
    as_date = dt.date.fromisoformat if texts else lambda day: day
    for name in ("in", "out"):
        pairs = zip(table["person"].to_pylist(), table[name].to_pylist(), found[name].to_pylist(), strict=True)
        for person, was, now in pairs:
            assert (was is None) == (now is None)
            if was is not None:
                shifts.setdefault(person, set()).add((as_date(now) - as_date(was)).days)
    assert all(len(several) == 1 for several in shifts.values())
    of_persons = [one for several in shifts.values() for one in several]
    assert max(map(abs, of_persons)) <= 30
    assert len(set(of_persons)) > 30
    assert found["person"].equals(table["person"]) or found["person"].to_pylist() == table["person"].to_pylist()


def test_shifts_are_the_keyed_hash_of_the_person():
    """Check equal shifts for all types of the person's number, and in all tables."""
    shift = ShiftDates(["in"], "person", 30)
    found = [
        treated(pa.table({"person": pa.array([12, 7], kind), "in": [DAY] * 2}), shift, KEY)["in"]
        for kind in (pa.int64(), pa.int8(), pa.float64())
    ]
    assert found[0].to_pylist() == found[1].to_pylist() == found[2].to_pylist()
    steps = whole_steps(KEY.draws(0, "person").of_values(["12", "7"]), 30).tolist()
    assert found[0].to_pylist() == [DAY + dt.timedelta(step) for step in steps]


def test_rows_without_a_person_move_alone_or_are_suppressed():
    table = visits(nobody=200)
    rows = treated(table, ShiftDates(["in"], "person", 30, missing="row"), KEY, cuts=[70])
    moved = [(now - was).days for now, was in zip(rows["in"].to_pylist()[:200], table["in"].to_pylist(), strict=False)]
    assert len(set(moved)) > 30
    assert moved == whole_steps(KEY.draws(0, "person", "rows without a person").of_rows(0, 200), 30).tolist()
    gone = treated(table, ShiftDates(["in"], "person", 30, missing="suppress"), KEY)
    assert gone["in"].to_pylist() == [None] * 200 + rows["in"].to_pylist()[200:]
    with pytest.raises(InputError, match=r"'person': 200 rows without a person, and no rule .* missing='row'"):
        prepared(table, SHIFT, KEY)


def test_columns_without_any_value_stay_as_they_are():
    table = pa.table({"x": pa.nulls(5), "y": pa.nulls(5, pa.string()), "p": ["a"] * 5})
    for treatment in (Noise("x", 1), Jitter("x", 1), Jitter("y", 1), ShiftDates(["x", "y"], "p", 3)):
        assert treated(table, treatment, KEY, cuts=[2]).to_pylist() == table.to_pylist()


@pytest.mark.parametrize(
    ("treatment", "values", "said"),
    [
        (Noise("x", 0), [1], "scale: expected a number above 0, got 0"),
        (Noise("x", math.nan), [1], "scale: expected a number above 0, got nan"),
        (Noise("x", "1"), [1], "scale: expected a number, got '1'"),
        (Noise("x", 1, "cauchy"), [1], "distribution: expected 'normal' or 'laplace' or 'uniform', got 'cauchy'"),
        (Noise("x", 1, relative="mean"), [1], "relative: expected 'value' or 'deviation', got 'mean'"),
        (Noise("x", 1e3), [2**63 - 1], "'x': a moved value does not fit into int64"),
        (Jitter("x", 2**31 - 1), [dt.datetime(2020, 1, 1)], "'x': a moved value does not fit into timestamp"),
        (Noise("x", 1e30), [1], "'x': a moved value does not fit into int64"),
        (Jitter("x", 0), [1], "within: expected a whole number of days or units, 1 or more; got 0"),
        (Jitter("x", 1.5), [1], "within: expected a whole number"),
        (Jitter("x", 400), [dt.date(9999, 12, 31)], "moved value does not fit into date32"),
        (Jitter("x", 1), ["2020-01-31", "31.1.2020"], "'x': expected numbers, or dates .*got '31.1.2020'. Convert"),
        (Noise("x", 1), ["1", "a"], "'x': expected numbers, got 'a'. Convert"),
        (Jitter("x", 1), ["1", "a"], "'x': expected numbers, got 'a'. Convert"),
        (Noise("x", 1), ["1e-17", "100"], "'x': the texts are numbers of up to 17 decimal places, .*Round"),
        (Jitter("x", 1), ["2020-02-30"], "got '2020-02-30'"),
        (ShiftDates([], "x", 3), [1], "columns: expected at least one column"),
        (ShiftDates(["x"], "x", 3), [1], "person: 'x' is one of the columns"),
        (ShiftDates(["x"], "p", 0), [1], "days: expected a whole number of days, 1 or more"),
        (ShiftDates(["x"], "p", 3, missing="keep"), [1], "missing: expected 'row' or 'suppress', got 'keep'"),
    ],
)
def test_bad_input_is_refused(treatment, values, said):
    with pytest.raises(InputError, match=said):
        treated(pa.table({"x": values * 20, "p": ["a"] * len(values * 20)}), treatment, KEY)


@pytest.mark.parametrize(
    ("treatment", "values", "expected"),
    [
        (Noise("x", 1), [True], "expected numbers, got bool"),
        (Noise("x", 1), [DAY], "expected numbers, got date32"),
        (Jitter("x", 1), [True], "expected numbers or dates, got bool"),
        (ShiftDates(["x"], "p", 3), [1], "expected dates, got int64"),
    ],
)
def test_columns_of_types_that_cannot_be_moved_are_refused(treatment, values, expected):
    with pytest.raises(ColumnTypeError, match=expected):
        prepared(pa.table({"x": values, "p": ["a"]}), treatment, KEY)


@pytest.mark.parametrize("treatment", [Noise("x", 1), Jitter("x", 1), ShiftDates(["x"], "p", 3)])
def test_a_missing_key_is_an_error(treatment):
    values = [DAY] if isinstance(treatment, ShiftDates) else [1]
    with pytest.raises(InputError, match=f"key: {treatment.do} of column .* draws by a secret key, and none was given"):
        prepared(pa.table({"x": values, "p": ["a"]}), treatment, None)


def test_dates_are_shifted_as_they_are_written():
    days = ["2024-01-31", "2024-02-05", "1999-12-01", None]
    texts = ["01/31/2024", "02/05/2024", "12/01/1999", None]
    numbers = pa.array([20240131, 20240205, 19991201, None])
    table = pa.table({"person": [1, 1, 2, 3], "iso": days, "us": texts, "number": numbers})
    iso = gpupif.treat(table, [ShiftDates(["iso"], "person", 30)], key=KEY).table["iso"].to_pylist()
    us = gpupif.treat(table, [ShiftDates(["us"], "person", 30, format="%m/%d/%Y")], key=KEY).table["us"]
    number = gpupif.treat(table, [ShiftDates(["number"], "person", 30, format="%Y%m%d")], key=KEY).table["number"]
    assert iso != days
    assert us.to_pylist() == [day and f"{day[5:7]}/{day[8:]}/{day[:4]}" for day in iso]
    assert number.to_pylist() == [day and int(day.replace("-", "")) for day in iso]
    assert number.type == numbers.type
    with pytest.raises(InputError, match=r"column 'us': expected dates as %d/%m/%Y, got '01/31/2024'.*format"):
        gpupif.treat(table, [ShiftDates(["us"], "person", 30, format="%d/%m/%Y")], key=KEY)
    with pytest.raises(InputError, match="format: expected signs of strptime"):
        gpupif.Plan([ShiftDates(["us"], "person", 30, format="us")])
