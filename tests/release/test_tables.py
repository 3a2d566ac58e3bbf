"""Tables of counts and sums against definitions: counting, rounding, suppression and its audit, cell keys, rules."""

from __future__ import annotations

import importlib.util
import sys
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gpupif
from gpupif.release.cell_keys import NoiseTable
from gpupif.release.linear import Additivity, bound_cells
from gpupif.release.magnitude import Dominance, PPercent
from gpupif.release.rounding import round_controlled, round_nearest, round_random
from tests.helpers.counting_ways import OTHERS, WAYS, in_memory

KEY = bytes(range(32))
UNITS = (1.0, 2.0**-50, 2.0**40)


def people(rows=120, seed=0):
    draw = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "area": draw.integers(0, 4, rows),
            "job": draw.choice(["cook", "nurse", None], rows, p=[0.5, 0.4, 0.1]),
            "sex": draw.choice(["f", "m"], rows),
            "pay": draw.integers(0, 400, rows) / 8,
            "id": np.arange(rows),
        }
    )


def with_totals(inner):
    for axis in range(inner.ndim):
        inner = np.concatenate([inner, inner.sum(axis, keepdims=True)], axis)
    return inner


def exact(table, by, value=None):
    """Return the figure of each cell by its texts, from the definition: "Total" matches every value."""
    texts = [[None if own is None or own != own else str(own) for own in table[name]] for name in by]
    rows = list(zip(*texts, strict=True))
    weight = [1] * len(table) if value is None else table[value].tolist()
    axes = [[*dict.fromkeys(own), "Total"] for own in texts]
    return {
        cell: sum(
            own
            for row, own in zip(rows, weight, strict=True)
            if all(wanted in ("Total", value) for wanted, value in zip(cell, row, strict=True))
        )
        for cell in product(*axes)
    }


def cells(result):
    rows = result.counts.astype(object).to_numpy().tolist()
    return {tuple(None if own is None or own is pd.NA else own for own in row[:-1]): row[-1] for row in rows}


@pytest.mark.every_engine
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [None, "pay"])
def test_counts_and_sums_with_all_totals_are_those_of_the_definition(way, value):
    table = people()
    found = way(gpupif.tables, table, ["job", "area"], value=value)
    assert cells(found) == exact(table, ["job", "area"], value)
    assert found.rows == len(table)


def test_sums_have_the_decimal_places_of_what_is_summed():
    table = pd.DataFrame({"sex": ["f"] * 3, "pay": [0.1, 0.2, 519.53], "long": [1 / 3, 1.0, 2e15]})
    assert gpupif.tables(table, "sex", value="pay").counts["sum"].tolist() == [519.83] * 2
    assert gpupif.tables(table, "sex", weights="pay").counts["count"].tolist() == [519.83] * 2
    assert gpupif.tables(table, "sex", value="long").counts["sum"].tolist() == [2e15 + 4 / 3] * 2


@pytest.mark.every_engine
@pytest.mark.parametrize("way", OTHERS)
@pytest.mark.parametrize(
    "how",
    [
        {"round": 3, "method": "random", "key": KEY},
        {"method": "cell-key", "key": KEY},
        {"method": "cell-key", "key": KEY, "record_id": "id"},
        {"weights": "pay", "suppress_below": 9},
        {"value": "pay", "p_percent": 90},
    ],
    ids=lambda how: next(iter(how.values())),
)
def test_every_way_to_run_gives_the_same_table(way, how):
    first, other = (run(gpupif.tables, people(), ["area", "job"], **how) for run in (in_memory, way))
    pd.testing.assert_frame_equal(first.counts, other.counts)


def test_roundings_are_adjacent_multiples_additive_and_unbiased():
    draw = np.random.default_rng(3)
    for shape, base in (((4, 6), 3), ((3, 3, 4), 5), ((2, 3, 2, 3), 10)):
        table = with_totals(draw.poisson(4, shape))
        figures = table.ravel()
        numbers = draw.integers(0, 2**64, len(figures), np.uint64)
        totals = Additivity(table.shape)
        none = np.zeros(len(figures), bool)
        controlled = round_controlled(figures, base, totals, none)
        for rounded in (round_nearest(figures, base), round_random(figures, base, numbers), controlled):
            assert (rounded % base == 0).all()
            assert (np.abs(rounded - figures) < base).all()
        assert (np.abs(round_nearest(figures, base) - figures) <= base / 2).all()
        additive = with_totals(controlled.reshape(table.shape)[tuple(slice(0, -1) for _ in shape)])
        assert (additive.ravel() == controlled).all()
    for rest in range(4):
        many = round_random(np.full(200_000, 4 + rest), 4, draw.integers(0, 2**64, 200_000, np.uint64))
        error = many.mean() - (4 + rest)
        assert abs(error) <= 5 * np.sqrt(max(rest * (4 - rest), 1e-9) / len(many))
        assert many.var() == pytest.approx(rest * (4 - rest), rel=0.03)


def test_random_rounding_is_the_same_for_a_cell_of_every_table():
    pair, alone = (
        cells(gpupif.tables(people(), by, round=5, method="random", key=KEY)) for by in (["area", "job"], ["job"])
    )
    assert {(job,): pair["Total", job] for (job,) in alone} == alone
    other = cells(gpupif.tables(people(), ["area", "job"], round=5, method="random", key=KEY[::-1]))
    assert other != pair


def test_controlled_rounding_does_not_read_suppressed_cells():
    table = with_totals(np.array([[1, 2, 9], [2, 1, 8], [7, 7, 7]]))
    hidden = np.zeros(table.shape, bool)
    hidden[:2, :2] = True
    other = table.copy()
    other[:2, :2] = [[2, 1], [1, 2]]
    first, second = (round_controlled(own.ravel(), 3, Additivity(own.shape), hidden.ravel()) for own in (table, other))
    assert (first[~hidden.ravel()] == second[~hidden.ravel()]).all()


@pytest.mark.parametrize("how", [{}, {"suppress_below": 3}, {"totals": False}, {"round": 3}, {"value": "pay"}], ids=str)
def test_rows_and_columns_with_all_people_in_one_cell_are_counted(how):
    counted = []
    for seed in range(12):
        found = gpupif.tables(people(3 + seed // 2, seed), ["area", "job", "sex"][: 1 + seed % 3], **how)
        published = cells(found)
        lines = 0
        for axis in range(len(found.by)):
            values = {cell[axis] for cell in published} - {"Total"}
            for others in {cell[:axis] + cell[axis + 1 :] for cell in published}:
                line = [published[(*others[:axis], value, *others[axis:])] for value in values]
                # A suppressed count is above 0.
                lines += len(line) > 1 and sum(own is pd.NA or own > 0 for own in line) == 1
        assert found.one_cell_lines == ("value" not in how) * lines
        # A rounded 0 may be 1: that all people are in one cell is said of exact figures alone.
        words = "only one cell is not shown as 0; each of the others may truly have up to 1."
        words = words if "round" in how else "all people are in one cell, which"
        assert any(words in line for line in found.verdict()) == (found.one_cell_lines > 0)
        counted.append(found.one_cell_lines)
    assert "value" in how or len(set(counted)) > 3


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("seed", range(4))
def test_audits_bound_cells_as_all_tables_that_fit_do(seed, least):
    draw = np.random.default_rng(seed)
    table = with_totals(draw.integers(least, 5, (3, 3)))
    hidden = np.zeros(table.shape, bool)
    hidden.flat[draw.choice([0, 1, 2, 4, 5, 6, 8, 9, 10], 5, replace=False)] = True
    # No hidden cell is above the largest total of a row or column, 12.
    fits = np.array(np.meshgrid(*[range(least, 13)] * 5)).reshape(5, -1)
    tried = np.repeat(table.reshape(16, 1), fits.shape[1], 1)
    tried[hidden.ravel()] = fits
    tried = tried.reshape(4, 4, -1)
    same = (tried[:3].sum(0) == tried[3]).all(0) & (tried[:, :3].sum(1) == tried[:, 3]).all(0)
    fits = fits[:, same]
    lower, upper = bound_cells(
        Additivity(table.shape), table.ravel().astype(float), hidden.ravel(), hidden.ravel(), least
    )
    assert np.allclose(lower, fits.min(1))
    assert np.allclose(upper, fits.max(1))


@pytest.mark.parametrize(("shape", "seed"), [((5, 6), 1), ((3, 3, 3), 2), ((2, 2, 2, 3), 3)])
def test_secondary_suppression_passes_an_audit_of_the_published_table(shape, seed):
    draw = np.random.default_rng(seed)
    by = [f"c{axis}" for axis in range(len(shape))]
    table = pd.DataFrame({name: draw.binomial(size - 1, 0.4, 90) for name, size in zip(by, shape, strict=True)})
    found = gpupif.tables(table, by, suppress_below=4)
    true, shown = exact(table, by), cells(found)
    assert found.primary == sum(0 < own < 4 for own in true.values()) > 0
    for cell, own in shown.items():
        assert own is pd.NA if 0 < true[cell] < 4 else own is pd.NA or own == true[cell]
        assert true[cell] or own == 0
    audit = gpupif.audit_table(found.counts, least=1, width=3)
    assert (audit.passes, audit.suppressed) == (True, found.primary + found.secondary)
    for *cell, low, high, _ in audit.bounds.to_numpy(object).tolist():
        assert low <= true[tuple(cell)] <= high


def test_the_limit_of_suppression_is_for_cells_with_rows():
    draw = np.random.default_rng(3)
    area = draw.integers(0, 400, 3_000)
    table = pd.DataFrame({"state": area // 8, "area": area})
    found = gpupif.tables(table, ["state", "area"], suppress_below=3)
    assert len(found.counts) == 51 * 401
    areas = found.counts[(found.counts["state"] == "Total") & (found.counts["area"] != "Total")]
    few = table["area"].astype(str).value_counts()
    assert areas.set_index("area")["count"].isna()[few.index[few < 3]].all()
    assert found.audit.passes
    assert gpupif.audit_table(found).bounds.equals(found.audit.bounds)
    with pytest.raises(gpupif.InputError, match=r"^by: expected at most 20,000 cells .* got 20,001\. Name"):
        gpupif.tables(pd.DataFrame({"id": range(20_000)}), "id", suppress_below=3)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e5, 1e10])
def test_sums_of_any_size_are_suppressed_and_audited(size):
    draw = np.random.default_rng(5)
    table = pd.DataFrame(
        {name: draw.integers(0, values, 76) for name, values in (("a", 3), ("b", 2), ("c", 3), ("d", 2))}
    )
    # A few firms, much larger than the others.
    table["pay"] = np.where(np.arange(76) < 30, size, 1.0) * draw.integers(1, 5_000, 76) / 64
    found = gpupif.tables(table, list("abcd"), value="pay", dominance=(1, 60), p_percent=5)
    assert found.audit.passes
    assert found.secondary > 0
    lower, upper = (found.audit.bounds[name] for name in ("lower", "upper"))
    true = found.audit.bounds.merge(gpupif.tables(table, list("abcd"), value="pay").counts)["sum"]
    close = 1e-6 * np.maximum(true, 1e-7 * true.max())
    assert (lower <= true + close).all()
    assert (true <= upper + close).all()


@pytest.mark.parametrize("seed", range(4))
def test_bounds_of_sums_are_in_proportion_to_the_sums(seed):
    draw = np.random.default_rng(seed)
    inner = draw.integers(1, 400, (3, 4, 3)) / 8
    true = with_totals(inner)
    suppressed = draw.random(true.shape) < 0.6
    labels = [[*map(str, range(size - 1)), "Total"] for size in true.shape]
    frame = pd.DataFrame(product(*labels), columns=list("abc"))
    one, *others = [
        gpupif.audit_table(frame.assign(sum=np.where(suppressed, np.nan, true * unit).ravel())).bounds for unit in UNITS
    ]
    assert one["disclosed"].any()
    assert (one["lower"] < one["upper"]).any()
    for unit, other in zip(UNITS[1:], others, strict=True):
        for end in ("lower", "upper"):
            assert np.allclose(other[end] / unit, one[end], rtol=1e-6, atol=1e-5)


def test_totals_without_a_row_may_be_0():
    rows = {("N", "Ayr"): 2, ("N", "Dee"): 20, ("N", "Esk"): 9, ("S", "Lea"): 7, ("S", "Rye"): 30}
    people = [(*place, sex) for place, number in rows.items() for sex in "fm" for _ in range(number)]
    counts = gpupif.tables(pd.DataFrame(people, columns=list("abc")), list("abc"), suppress_below=5).counts
    # Rows of a district in another state are left out, totals among them.
    left = counts[
        [a == "Total" or b == "Total" or (a, b) in rows for a, b in zip(counts["a"], counts["b"], strict=True)]
    ]
    assert len(left) < len(counts)
    audit = gpupif.audit_table(left, least=1, width=4)
    assert (audit.passes, audit.suppressed) == (True, counts["count"].isna().sum())


def test_figures_that_contradict_each_other_without_a_suppressed_cell_among_them_are_refused():
    figures = [None, 7, 9, 1, 2, 4]
    table = pd.DataFrame({"a": [*"xxxyyy"], "b": ["p", "q", "Total"] * 2, "n": figures})
    with pytest.raises(gpupif.InputError, match=r"^table: expected figures that sum to their totals"):
        gpupif.audit_table(table, total={"a": None, "b": "Total"})


def test_files_hold_no_suppressed_figure_below_their_mask(tmp_path):
    table = pd.DataFrame({"sex": [*"ffmm"] * 3, "job": [*"cn"] * 5 + ["n"] * 2})
    found = gpupif.tables(table, ["sex", "job"], suppress_below=6)
    hidden = found.counts["count"].isna()
    assert hidden.sum() > 1
    found.write(tmp_path / "t.feather")
    column = pa.ipc.open_file(tmp_path / "t.feather").read_all()["count"].chunk(0)
    assert (np.frombuffer(column.buffers()[1], np.int64)[: len(hidden)][hidden] == 0).all()


def test_a_single_suppressed_cell_is_disclosed_to_the_audit_and_slack_hides_it(tmp_path):
    table = pd.DataFrame({"sex": ["f", "m", "Total"], "count": [7, None, 9]})
    audit = gpupif.audit_table(table)
    assert (audit.computed, audit.bounds["lower"].tolist(), audit.bounds["upper"].tolist()) == (1, [2], [2])
    assert "1 of 3 cells is suppressed, yet 1 can be computed exactly" in str(audit)
    assert "If you have the rows, gpupif tables finds them" in str(audit)
    two = pd.DataFrame({"sex": ["f", "m", "other", "Total"], "count": [None, None, 0, 2]})
    assert str(gpupif.audit_table(two).bounds["lower"].tolist()) == "[0.0, 0.0]"
    # Who knows that no zero is suppressed knows both.
    assert "say least=1 to audit_table" in gpupif.audit_table(two).verdict()[-1]
    known = gpupif.audit_table(two, least=1)
    assert (known.computed, "least=1" in str(known)) == (2, False)
    rounded = gpupif.audit_table(table, slack=2)
    assert (rounded.passes, rounded.bounds["lower"].tolist(), rounded.bounds["upper"].tolist()) == (True, [0], [6])
    table.to_csv(tmp_path / "t.csv", index=False)
    assert gpupif.audit_table(tmp_path / "t.csv").to_dict() == audit.to_dict()
    other = table.replace("Total", "All")
    for total in ("All", {"sex": "All"}):
        assert gpupif.audit_table(other, total=total).to_dict() == audit.to_dict()
    for total in ("Total", " All", {}):
        with pytest.raises(gpupif.InputError, match=r"^total: column 'sex': expected .*total='All'.*None\}\.$"):
            gpupif.audit_table(other, total=total)
    for total in (None, {"sex": None}):
        unbounded = gpupif.audit_table(table.head(2), total=total)
        assert (unbounded.passes, unbounded.bounds["upper"].tolist()) == (True, [np.inf])
    assert gpupif.audit_table(gpupif.tables(people(), "sex", totals=False)).passes
    with pytest.raises(gpupif.InputError, match="column 'count' to have numbers, empty where suppressed"):
        gpupif.audit_table(pd.DataFrame({"sex": ["f", "Total"], "count": [7, "x"]}))
    with pytest.raises(gpupif.InputError, match="sum to their totals"):
        gpupif.audit_table(pd.DataFrame({"a": ["x", "y", "z", "Total"], "count": [1, 2, None, 1]}))


@pytest.mark.parametrize("seed", range(5))
def test_rules_for_sums_are_those_of_the_definitions(seed):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame({"area": draw.integers(0, 6, 25), "pay": draw.lognormal(2, 2, 25).round(1)})
    cases = {"dominance": (2, 80), "p_percent": 25}
    for rule, given in cases.items():
        found = gpupif.tables(table, "area", value="pay", **{rule: given})
        unsafe = 0
        groups = [*table.groupby("area")["pay"], ("Total", table["pay"])]
        for _, own in groups:
            first, second = [*sorted(own, reverse=True), 0, 0][:2]
            if rule == "dominance":
                unsafe += first + second > 0.8 * own.sum()
            else:
                # The second largest subtracts itself from the sum: an upper bound of the largest.
                unsafe += own.sum() - second < 1.25 * first
        assert found.primary == unsafe
        bounds = {row["area"]: row for row in found.audit.bounds.to_dict("records")}
        for area, own in ((str(name), own) for name, own in groups):
            largest = np.sort(np.append([0, 0], own))[None, -2:]
            rules = Dominance(2, 80) if rule == "dominance" else PPercent(25)
            margin = rules.margin(np.array([own.sum()]), largest)[0]
            if margin > 1e-9:
                assert bounds[area]["upper"] >= own.sum() + margin - 1e-3
                assert bounds[area]["lower"] <= max(0, own.sum() - margin) + 1e-3


@pytest.mark.parametrize("seed", range(6))
def test_who_is_alone_in_a_cell_cannot_estimate_another_sum_of_the_line(seed):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(draw.integers(0, [5, 4, 2][: 2 + seed % 2], (40, 2 + seed % 2)))
    table = table.rename(columns="c{}".format).assign(pay=draw.lognormal(2, 1, 40).round(1))
    by = list(table.columns[:-1])
    found = gpupif.tables(table, by, value="pay", p_percent=20)
    shown, sums, rows = cells(found), exact(table, by, "pay"), exact(table, by)
    owners = 0
    for axis in range(len(by)):
        values = {cell[axis] for cell in shown}
        for others in {cell[:axis] + cell[axis + 1 :] for cell in shown}:
            line = [(*others[:axis], value, *others[axis:]) for value in values]
            total = (*others[:axis], "Total", *others[axis:])
            hidden = [cell for cell in line if shown[cell] is pd.NA or shown[cell] != shown[cell]]
            for own, other in product(hidden, hidden):
                if own == other or rows[own] != 1 or rows[total] == 1:
                    continue
                owners += 1
                rest = [cell for cell in hidden if cell not in (own, other)]
                assert rest
                if total not in hidden:
                    # The others of the line may be 0 for all that the owner knows.
                    texts = table[by].astype(str)
                    inside = [texts[name] == value for name, value in zip(by, other, strict=True) if value != "Total"]
                    pays = np.sort(np.append([0, 0], table["pay"][np.all(inside, axis=0)]))
                    assert sum(sums[cell] for cell in rest) >= 0.2 * pays[-1] - pays[:-2].sum() - 1e-6
    assert owners > 4
    assert "Who is alone" in str(found.verdict())


def test_cell_keys_give_the_same_rows_the_same_noise_in_every_table(tmp_path):
    table = people(400)
    given = {"method": "cell-key", "key": KEY, "record_id": "id"}
    pair = cells(gpupif.tables(table, ["area", "job"], **given))
    for area in range(4):
        part = cells(gpupif.tables(table[table["area"] == area].sample(frac=1, random_state=1), "job", **given))
        assert part == {(job,): pair[str(area), job] for (job,) in part}
    true = exact(table, ["area", "job"])
    assert max(abs(pair[cell] - own) for cell, own in true.items()) == 2
    pd.DataFrame({"count": 1, "noise": [-1, 5], "probability": [0, 1.0]}).to_csv(tmp_path / "p.csv", index=False)
    moved = gpupif.tables(table, ["area", "job"], p_table=tmp_path / "p.csv", **given)
    assert cells(moved) == {cell: own + 5 * (own > 0) for cell, own in true.items()}
    assert moved.to_dict()["differentially_private"] is False
    assert "not differential privacy" in str(moved)
    keys = np.random.default_rng(0).integers(0, 2**64, 100_000, np.uint64)
    for count, shares in ((1, {-1: 0.25, 0: 0.5, 1: 0.25}), (9, {-2: 0.1, -1: 0.2, 0: 0.4, 1: 0.2, 2: 0.1})):
        noise = NoiseTable.from_any().perturb(np.full(len(keys), count), keys) - count
        assert {own: (noise == own).mean() for own in np.unique(noise)} == pytest.approx(shares, abs=0.01)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"by": "town"}, "no column 'town'"),
        ({"by": "mixed"}, "column 'mixed': expected values of a single plain type, got int and str"),
        ({"by": []}, "at least one column"),
        ({"round": 1}, "round: expected a whole number, 2 or more"),
        ({"round": 3, "method": "up"}, "method: expected 'nearest'"),
        ({"method": "random"}, "needs a base"),
        ({"round": 3, "method": "random"}, "secret key"),
        ({"round": 3, "key": KEY}, "key: goes with"),
        ({"method": "cell-key", "key": KEY, "round": 3}, "noise in place of rounding"),
        ({"method": "cell-key", "key": KEY, "value": "pay"}, "value: cell keys are for counts"),
        ({"method": "cell-key", "key": KEY, "p_table": pd.DataFrame({"count": [1]})}, "p_table: no column"),
        (
            {
                "method": "cell-key",
                "key": KEY,
                "p_table": pd.DataFrame({"count": [1], "noise": [-2], "probability": [1]}),
            },
            "noise of -count or more",
        ),
        (
            {
                "method": "cell-key",
                "key": KEY,
                "p_table": pd.DataFrame({"count": [1], "noise": [1], "probability": [0.5]}),
            },
            "sum to 1, got 0.5",
        ),
        ({"record_id": "id"}, "record_id: goes with"),
        ({"method": "cell-key", "key": KEY, "record_id": "half"}, "got 200 rows that share"),
        ({"method": "cell-key", "key": KEY, "record_id": ["area", "half", "job"]}, "rows that share"),
        ({"suppress_below": 1}, "suppress_below: expected a whole number of rows, 2 or more"),
        ({"dominance": (2, 85)}, "rule for sums"),
        ({"dominance": 2, "value": "pay"}, "pair (n, k)"),
        ({"p_percent": 0, "value": "pay"}, "above 0 and at most 100"),
        ({"value": "tiny"}, "not 2^60 times as large"),
        ({"value": "job"}, "numbers of 0 or more, got 'cook'"),
        ({"value": "pay", "weights": "pay"}, "take no weights"),
        ({"width": 2}, "width: goes with"),
        ({"total": "cook", "by": "job"}, "which marks totals"),
        ({"missing": "error"}, "missing"),
        ({"missing": "wildcard"}, "missing: expected 'category' or 'error'"),
        ({"by": ["id", "pay", "area", "job", "sex"]}, "at most 1,000,000 cells"),
        ({"by": ["id", "pay", "sex", "job"], "round": 3, "method": "controlled"}, "method='random'"),
    ],
)
def test_bad_arguments_are_refused_in_a_line(how, words):
    tiny = people(200).assign(
        tiny=[1e-30, *[1e10] * 199], half=np.arange(200) // 2, mixed=pd.Series([1, "1"] * 100, dtype=object)
    )
    with pytest.raises(gpupif.InputError) as error:
        gpupif.tables(tiny, **({"by": ["area", "job"]} | how))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("package", ["scipy", "highspy"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else found(name))
    with pytest.raises(gpupif.InputError, match=rf"^suppress_below: needs {package}, .* 'gpupif\[release\]'$"):
        gpupif.tables(people(), "area", suppress_below=3)


@pytest.mark.parametrize("rule", [{"suppress_below": 2}, {"dominance": (1, 85)}, {"p_percent": 10}], ids=str)
def test_sums_without_totals_suppress_what_the_rule_names(rule):
    """Without totals nothing adds up, so that no further cell is needed."""
    table = pd.DataFrame({"firm": [*"xyyzz"], "tax": [5.0, 2.0, 7.0, 8.0, 8.0]})
    done = gpupif.tables(table, "firm", value="tax", totals=False, **rule)
    unsafe = ["x", "y", "z"] if "p_percent" in rule else ["x"]
    assert done.counts["firm"][done.counts["sum"].isna()].tolist() == unsafe
    assert (done.primary, done.secondary) == (len(unsafe), 0)
