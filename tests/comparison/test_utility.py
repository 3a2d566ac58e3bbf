"""Utility figures against their definitions, row by row."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.comparison import compare
from gpupif.comparison.risk import RiskFigures
from tests.helpers import naive_comparison as naive

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
LETTERS = st.sampled_from(["a", "b", "c", "d", None])


def frame(table):
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})


@st.composite
def tables(draw):
    """A table, and it with any values in the place of some: mapped, drawn anew, suppressed, or a mixture."""
    rows = draw(st.integers(1, 12))
    before, after = {}, {}
    for name in ["x", "y", "z"][: draw(st.integers(1, 3))]:
        values = draw(st.lists(LETTERS, min_size=rows, max_size=rows))
        to = draw(st.fixed_dictionaries({value: st.sampled_from(["a", "b", "A"]) for value in "abcd"}))
        mapped = [to.get(value) for value in values]
        other = draw(st.lists(LETTERS, min_size=rows, max_size=rows))
        kind = draw(st.sampled_from(["same", "mapped", "other", "holes"]))
        made = {"same": values, "mapped": mapped, "other": other}.get(kind)
        holes = [None if value == "b" else value for value in other]
        before[name] = values
        after[name] = [one if two else None for one, two in zip(mapped, holes, strict=True)] if made is None else made
    return before, after


def compared(before, after):
    """What is lost, without risk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "measure_risk", lambda *_: RiskFigures({}, {}))
        return gpupif.compare(frame(before), frame(after))


def assert_information(own, before, lost):
    """Shares of the bits of a column are as expected, and add up to 1; NaN if the column has no bits."""
    whole = math.fsum(naive.bits_of_cells(before))
    shares = own[["information_lost_coarser", "information_lost_suppressed", "information_lost_changed"]].astype(float)
    if whole < 1e-9:
        assert math.isnan(own["information_kept"])
        return
    assert shares.tolist() == pytest.approx([one / whole for one in lost], rel=1e-9, abs=1e-9)
    assert own["information_kept"] + shares.sum() == pytest.approx(1)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(tables())
def test_every_figure_of_utility_follows_its_definition(both):
    before, after = both
    rows, names = len(before["x"]), list(before)
    detail = {name: naive.detail_of(before[name], after[name]) for name in names}
    found = compared(before, after)
    close = {"rel": 1e-9, "abs": 1e-9}
    for name in names:
        own = found.columns.loc[name]
        assert own["entropy_before"] == pytest.approx(naive.entropy(before[name]), **close)
        assert own["entropy_after"] == pytest.approx(naive.entropy(after[name]), **close)
        perturbed = own["detail"] == "perturbed"
        assert_information(own, before[name], naive.lost_bits(before[name], after[name], detail[name], perturbed))
        lost = naive.nonuniform_loss(before[name], after[name], detail[name], perturbed)
        assert own["nonuniform_entropy_loss"] == pytest.approx(lost, rel=1e-9, abs=1e-8)
        assert own["total_variation"] == pytest.approx(naive.variation(detail[name], after[name]), **close)
        # Texts are as far apart as any two.
        assert own["emd"] == pytest.approx(own["total_variation"], **close)
        changed = sum(one != other for one, other in zip(before[name], after[name], strict=True))
        assert own["cells_changed"] == changed
        assert own["cells_suppressed"] == sum(
            other is None and one is not None for one, other in zip(before[name], after[name], strict=True)
        )
    for (one, other), expected in naive.pairs(before, after, detail).items():
        own = found.pairs.set_index(["column_1", "column_2"]).loc[(one, other)]
        assert own["mutual_information_before"] == pytest.approx(expected[0], rel=1e-6, abs=2e-6)
        assert own["mutual_information_after"] == pytest.approx(expected[1], rel=1e-6, abs=2e-6)
        assert own["total_variation"] == pytest.approx(expected[2], **close)
        if not all(naive.is_function(before[name], after[name]) for name in (one, other)):
            assert math.isnan(own["mutual_information_kept"])
    for figure, value in naive.class_figures(before, after, detail, names).items():
        assert getattr(found.utility, figure) == pytest.approx(value, **close), figure
    changed = [any(before[name][row] != after[name][row] for name in names) for row in range(rows)]
    assert found.utility.rows_changed == sum(changed)


@settings(max_examples=10, deadline=None)
@given(tables())
def test_utility_keeps_its_bounds_for_any_treatment(both):
    found = compared(*both)
    own, utility = found.columns, found.utility
    assert (own[["total_variation", "emd", "nonuniform_entropy_loss"]] >= 0).all(axis=None)
    assert (found.pairs["total_variation"] >= 0).all()
    assert utility.entropy_lost == pytest.approx(own["entropy_lost"].sum(), abs=1e-9)
    assert utility.nonuniform_entropy_loss == math.fsum(own["nonuniform_entropy_loss"])
    for kept in (own["information_kept"], found.pairs["mutual_information_kept"]):
        assert kept.dropna().between(0, 1).all()
    for share in (utility.information_kept, utility.mutual_information_kept):
        assert share is None or 0 <= share <= 1
    hidden = own["cells_suppressed"] > 0
    assert (own.loc[(own["detail"] != "perturbed") & ~hidden, "entropy_lost"] >= -1e-12).all()
    # A suppressed cell whose value not all others have keeps less than all.
    assert (own.loc[hidden, "information_kept"].dropna() < 1).all()
    functions = own[(own["detail"] != "perturbed") & (own["cells_suppressed"] == 0)]
    assert (functions["nonuniform_entropy_loss"] - found.rows * functions["entropy_lost"]).abs().max() < 1e-8 or (
        functions.empty
    )
    assert (own["entropy_lost"] - (own["entropy_before"] - own["entropy_after"])).abs().max() < 1e-12


@settings(max_examples=10, deadline=None)
@given(tables())
def test_a_table_compared_with_itself_lost_nothing(both):
    before, _ = both
    found = compared(before, before)
    utility = found.utility.to_dict()
    zeros = ("entropy_lost", "nonuniform_entropy_loss", "total_variation", "emd", "cells_changed", "cells_suppressed")
    assert {name: utility[name] for name in (*zeros, "rows_changed", "rows_suppressed")} == dict.fromkeys(
        (*zeros, "rows_changed", "rows_suppressed"), 0
    )
    assert utility["mutual_information_kept"] in (1.0, None)
    assert utility["information_kept"] in (1.0, None)
    assert utility["discernibility"] == utility["discernibility_unsuppressed"]
    assert (found.pairs["total_variation"] == 0).all()
    assert found.columns["detail"].eq("same").all()


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_numbers_that_became_other_numbers_keep_no_information(data):
    rows = data.draw(st.integers(2, 12))
    numbers = st.lists(st.one_of(st.none(), st.integers(1, 6)), min_size=rows, max_size=rows)
    values = data.draw(numbers.filter(lambda own: any(value is not None for value in own)))
    to = data.draw(st.fixed_dictionaries({value: st.integers(1, 9) for value in [None, *range(1, 7)]}))
    made = {"mapped": [to[value] for value in values], "other": data.draw(numbers)}[
        data.draw(st.sampled_from(["mapped", "other"]))
    ]
    before, after = ({"x": own, "y": ["a"] * rows} for own in (values, made))
    found = compared(before, after).columns.loc["x"]
    numeric = any(value is not None for value in made)
    detail = naive.detail_of(values, made, numbers=numeric)
    assert_information(found, values, naive.lost_bits(values, made, detail, found["detail"] == "perturbed", numeric))
    if found["cells_changed"] and naive.entropy(values) > 0:
        assert found["information_kept"] < 1


def test_a_column_whose_highest_numbers_were_replaced_is_not_kept_whole():
    """Top coding one number, or rank swapping with its means of the tails, takes variance and no entropy."""
    pay = [*range(100, 199), 5_000]
    before = pd.DataFrame({"pay": pay, "x": ["a", "b"] * 50})
    found = gpupif.compare(before, before.assign(pay=[*pay[:-1], 1_000]), quasi_identifiers="x", linkage=None)
    assert found.columns.loc["pay", "entropy_lost"] == 0
    assert 0.98 < found.columns.loc["pay", "information_kept"] < 1
    variance = found.estimates.set_index(["column", "estimate"]).loc[("pay", "variance")]
    share = variance["difference"] / variance["before"]
    assert share < -0.9
    assert f"-{100 * -share:.4g} %" in str(found)


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_protect_and_compare_say_the_same_of_coarser_values(share):
    table = gpupif.datasets.census(1_000, seed=1)[["age", "sex", "region"]]
    found = gpupif.protect(table, "k>=3", hierarchies={"age": {"widths": [5, 20]}}, suppress=share)
    done = gpupif.treat(table, found.plan)
    utility = gpupif.compare(table, done.table, found.plan).utility
    assert utility.information_lost_coarser == pytest.approx(found.loss_share, rel=1e-12)
    assert (utility.information_lost_suppressed > 0) == (found.suppressed_rows > 0) == (share > 0)
    lost = utility.information_lost_coarser + utility.information_lost_suppressed
    assert utility.information_kept == pytest.approx(1 - lost, rel=1e-12)


@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_cells_that_are_recoded_row_by_row_lose_what_their_own_groups_do(seed, remove):
    random = np.random.default_rng(seed)
    x = random.choice([*"abcd", None], 60, p=[0.4, 0.3, 0.1, 0.1, 0.1])
    y = random.choice([11, 12, 13, 21, 22], 60, p=[0.4, 0.3, 0.05, 0.2, 0.05])
    table = pd.DataFrame({"x": x, "y": y, "row": range(60)})
    groups = {"a": ["A", "other"], "b": ["B", "B"], "c": ["other", "other"], "d": ["other", "other"]}
    levels = {"x": [0, 1, 2, 3], "y": [0, 0, 1, 2]}
    plan = gpupif.Plan(
        [gpupif.treatments.RecodeRows(levels, k=4, remove=remove)], {"x": {"values": groups}, "y": {"widths": [10]}}
    )
    after = gpupif.treat(table, plan).table
    found = gpupif.compare(table, after, plan, columns=["x", "y"], quasi_identifiers=["x", "y"])

    def plain(values):
        return [None if value is None or value != value else value for value in values]

    def names(column, value):
        """All that a value may be released as."""
        if value is None:
            return {None, "*"}
        if column == "x":
            return {value, *groups[value], "*"}
        return {str(value), f"[{value // 10}0, {value // 10 + 1}0)", "*"}

    for column in ("x", "y"):
        values = plain(table[column])
        left = dict(zip(after["row"], plain(after[column]), strict=True))
        coarser = gone = 0.0
        for row, value in enumerate(values):
            told = -math.log2(values.count(value) / 60)
            if row in left:
                coarser += told + math.log2(sum(left[row] in names(column, other) for other in values) / 60)
            else:
                gone += told
        assert found.columns.loc[column, "detail"] == "levels"
        assert_information(found.columns.loc[column], values, [coarser, gone, 0])
    assert (found.utility.rows_suppressed > 0) == (remove and len(after) < len(table))
    swapped = after.assign(x=after["x"].map(lambda value: "z" if value == "other" else value))
    assert gpupif.compare(table, swapped, plan, columns=["x", "y"]).columns.loc["x", "detail"] == "perturbed"


def test_missing_values_that_stay_in_some_rows_alone_are_perturbed():
    before = pd.DataFrame({"x": pd.array([None, None], "string"), "y": [1, 1]})
    found = gpupif.compare(before, before.assign(x=pd.array(["a", None], "string")))
    assert found.columns.loc["x", "detail"] == "perturbed"


def test_recoded_values_lose_only_the_entropy_within_groups():
    before = pd.DataFrame({"age": [31, 34, 38, 42, 45, 47], "sex": list("fmfmfm")})
    found = gpupif.compare(before, before.assign(age=["30-39"] * 3 + ["40-49"] * 3))
    age = found.columns.loc["age"]
    assert (age["detail"], age["total_variation"], age["emd"]) == ("mapped", 0, 0)
    assert age["nonuniform_entropy_loss"] == pytest.approx(6 * math.log2(3))
    assert age["entropy_lost"] == pytest.approx(math.log2(3))
    assert (found.utility.classes, found.utility.average_class_size, found.utility.k) == (4, 1.5, 1)


def test_noisy_numbers_are_compared_with_the_original_numbers():
    before = pd.DataFrame({"pay": [10.0, 20.0, 30.0, 40.0], "x": list("aabb")})
    found = gpupif.compare(before, before.assign(pay=[11.0, 19.0, 33.0, 40.0]))
    assert found.columns.loc["pay", "detail"] == "perturbed"
    expected = naive.ordered_distance([10, 20, 30, 40], [11, 19, 33, 40])
    assert found.columns.loc["pay", "emd"] == pytest.approx(expected)
    assert found.columns.loc["pay", "total_variation"] == 0.75


def test_distances_may_be_hierarchies_and_orders():
    before = pd.DataFrame({"d": list("aabbccdd"), "n": range(8)})
    after = before.assign(d=list("aaabccdd"))
    places = {"a": ["ab"], "b": ["ab"], "c": ["cd"], "d": ["cd"]}
    found = gpupif.compare(before, after, distances={"d": places})
    # One in eight rows one level of two.
    assert found.columns.loc["d", "emd"] == 1 / 16
    assert gpupif.compare(before, after, distances={"d": list("abcd")}).columns.loc["d", "emd"] == pytest.approx(1 / 24)
    assert gpupif.compare(before, after).columns.loc["d", "emd"] == 1 / 8


def test_distances_may_come_from_a_file(tmp_path):
    (tmp_path / "d.csv").write_text("a;ab;*\nb;ab;*\nc;cd;*\nd;cd;*\n")
    before = pd.DataFrame({"d": list("aabbccdd"), "n": range(8)})
    found = gpupif.compare(before, before.assign(d=list("aaabccdd")), distances={"d": str(tmp_path / "d.csv")})
    assert found.columns.loc["d", "emd"] == 1 / 16


def test_a_dropped_column_is_lost_whole():
    before = pd.DataFrame({"a": [1, 1, 2, 2], "b": list("xyxy")})
    found = gpupif.compare(before, before[["a"]])
    own = found.columns.loc["b"]
    assert (own["detail"], own["entropy_lost"], own["entropy_after"]) == ("dropped", 1.0, 0.0)
    assert (found.dropped, found.utility.rows_changed, found.utility.classes) == (["b"], 0, 2)


def test_a_dropped_column_is_in_no_pair_and_has_no_suppressed_cells():
    before = pd.DataFrame({"a": [1, 1, 2, 2], "id": range(4), "b": list("xyxy")})
    after = before[["a", "b"]].assign(b=["x", "y", None, "y"])
    found = gpupif.compare(before, after)
    assert found.pairs[["column_1", "column_2"]].to_numpy().tolist() == [["a", "b"]]
    assert (found.utility.cells, found.utility.cells_changed, found.utility.cells_suppressed) == (8, 1, 1)
    assert found.columns.loc["id", ["cells_changed", "cells_suppressed"]].tolist() == [0, 0]


def test_each_suppressed_row_costs_as_much_as_all_rows():
    before = pd.DataFrame({"a": list("xxxyz"), "b": [1, 1, 1, 2, 3]})
    found = gpupif.compare(before, before.where(before["a"] == "x", None)).utility
    assert (found.classes, found.average_class_size, found.rows_suppressed) == (2, 2.5, 2)
    assert (found.discernibility, found.discernibility_unsuppressed) == (9 + 2 * 5, 9 + 1 + 1)
    assert (found.k, found.normalized_class_size) == (3, 2.5 / 3)
    assert gpupif.compare(before, before.where(before["a"] == "x", None), k=2).utility.normalized_class_size == 1.25


def test_removed_rows_count_as_suppressed_rows():
    before = pd.DataFrame({"id": [7, 8, 9, 10, 11], "a": list("xxxyz"), "b": [1, 1, 1, 2, 3]})
    after = before[before["a"] == "x"].iloc[::-1]
    found = gpupif.compare(before, after, row_id="id")
    names = ["a", "b"]
    blank = before[names].where(before["a"] == "x", None)
    # Cells are those of the rows left, and entropies those of each table.
    of_table = ["cells", "cells_changed", "cells_suppressed", "entropy_lost"]
    removed, hidden = (
        {name: value for name, value in own.utility.to_dict().items() if name not in of_table}
        for own in (found, gpupif.compare(before[names], blank))
    )
    assert removed == hidden
    assert (found.utility.cells, found.utility.cells_changed) == (6, 0)
    assert (found.rows, found.rows_taken_away) == (5, 2)
    # What is released has no holes.
    assert "after_wildcard" not in found.risk


def test_precision_is_the_same_from_found_levels_and_from_a_plan():
    before = pd.DataFrame({"age": [31, 34, 38, 42, 45, 47], "zip": ["12", "13", "21", "22", "31", "32"]})
    hierarchies = {"age": {"widths": [10, 20]}, "zip": {"digits": 2}}
    plan = gpupif.Plan([gpupif.treatments.Recode("age", level=1)], hierarchies=hierarchies)
    after = gpupif.treat(before, plan).table
    heights = {name: one.height for name, one in plan.hierarchies.items()}
    expected = 1 - 1 / heights["age"]
    for found in (gpupif.compare(before, after, plan), gpupif.compare(before, after, hierarchies=hierarchies)):
        assert found.columns["precision"].tolist() == [pytest.approx(expected), 1.0]
        assert found.utility.precision == pytest.approx((expected + 1) / 2)
    # A plan of `protect` has no hierarchy of a quasi-identifier that stays as it is.
    alone = gpupif.compare(before, after, gpupif.Plan(plan.treatments, {"age": hierarchies["age"]}))
    assert alone.columns["precision"].tolist() == [pytest.approx(expected), 1.0]
    holes = after.assign(zip=["12", "13", None, "22", "31", "32"])
    found = gpupif.compare(before, holes, plan)
    assert found.columns.loc["zip", "precision"] == pytest.approx(1 - 1 / 6)


def test_values_of_different_types_are_compared_by_their_texts():
    before = pd.DataFrame({"age": [31, 34, 34], "x": list("abb")})
    found = gpupif.compare(before, before.assign(age=["31", "34", "*"]))
    assert found.columns.loc["age", "cells_changed"] == 1


def test_a_column_whose_equal_values_are_at_several_levels_has_no_precision():
    before = pd.DataFrame({"zip": ["02139"] * 4 + ["02140"] * 2})
    after = pd.DataFrame({"zip": ["02139"] * 3 + ["0****"] + ["02140"] * 2})
    found = gpupif.compare(before, after, hierarchies={"zip": {"digits": [4]}}, quasi_identifiers="zip")
    assert found.columns["detail"].tolist() == ["perturbed"]
    assert found.columns["precision"].isna().all()
    assert found.utility.precision is None
