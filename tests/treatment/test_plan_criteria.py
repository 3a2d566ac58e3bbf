"""What a plan requires is measured in the treated table: what breaks it does not go out, in memory, files and Dask."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, UnmetError
from gpupif.treatments import Drop, PlanCriteria, Recode, RecodeRows, SuppressRows

# The second treatment takes rows away from classes that the first one left.
TABLE = pd.DataFrame({"a": list("xxxyyy"), "b": list("ppqqqq"), "ill": list("fgfffg"), "w": [1, 2, 1, 1, 1, 1]})
BREAKS = [
    SuppressRows(k=3, quasi_identifiers=["a"]),
    SuppressRows(require="known=a,b: k>=2", quasi_identifiers=["a", "b"]),
]
KNOWN = {"quasi_identifiers": ["a", "b"], "sensitive": ["ill"]}
BROKEN = {
    "a treatment of rows": gpupif.Plan(BREAKS),
    "criteria of the plan": gpupif.Plan([], criteria=PlanCriteria("k>=3"), **KNOWN),
    "criteria on values": gpupif.Plan([], criteria={"require": ["t<=0.1"], "weights": "w"}, **KNOWN),
    "any criterion": gpupif.Plan([], criteria={"require": ["pif95<=0.1"]}, **KNOWN),
    "a mark": gpupif.Plan([], criteria={"require": ["k>=1"], "unmet": "require: no plan meets 'k>=9'."}, **KNOWN),
}
MET = {
    "no criteria": gpupif.Plan([]),
    "criteria that hold": gpupif.Plan([], criteria={"require": ["k>=1", "known=1: k>=2"]}, **KNOWN),
    "what treatments require does not count": gpupif.Plan(BREAKS, criteria={"require": []}),
    "rows that stay": gpupif.Plan([SuppressRows(k=3, quasi_identifiers=["a", "b"], remove=False)]),
    "no row left": gpupif.Plan([SuppressRows(k=9, quasi_identifiers=["a", "b"])]),
    "local recoding": gpupif.Plan(
        [RecodeRows({"a": [0, 1], "b": [0, 1]}, k=2, remove=True)],
        {name: {"common": ["x", "p"], "keep": [1]} for name in ("a", "b")},
    ),
}


def in_memory(plan, folder, **more):
    return gpupif.treat(TABLE, plan, **more)


def on_dask(plan, folder, **more):
    from dask import dataframe as dd

    return gpupif.treat(dd.from_pandas(TABLE, npartitions=2), plan, **more)


def in_files(plan, folder, **more):
    TABLE.to_parquet(folder / "table.parquet")
    plan.save(folder / "plan.toml", overwrite=True)
    return gpupif.treat_files(folder / "table.parquet", folder / "out.csv", folder / "plan.toml", **more)


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("way", [in_memory, in_files, on_dask])
@pytest.mark.parametrize("name", [*BROKEN, *MET])
def test_a_table_that_breaks_its_plan_does_not_go_out(name, way, tmp_path):
    plan = (BROKEN | MET)[name]
    if name in MET:
        assert way(plan, tmp_path).is_met
        return
    with pytest.raises(UnmetError, match=r"^plan: .* Nothing is released"):
        way(plan, tmp_path)
    assert not (tmp_path / "out.csv").exists()
    kept = way(plan, tmp_path, keep_unmet=True)
    assert not kept.is_met
    assert kept.record.verdict()[0].startswith("NOT MET: ")
    assert way is not in_files or (tmp_path / "out.csv").exists()


HOUSES = gpupif.Plan(
    [Drop(["house", "w"])],
    criteria={"require": ["households.risk.highest<=0.6", "t<=0.9"], "household": "house", "weights": "w"},
    **KNOWN,
)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("way", [in_memory, in_files, on_dask])
@pytest.mark.parametrize("limit", [0.6, 0.4])
def test_households_and_weights_in_columns_that_are_dropped_last_are_measured(limit, way, tmp_path, monkeypatch):
    """A household of two rows in classes of two rows has a risk of 1 - (1 - 1/2)^2 or less; single rows have 1/2."""
    table = TABLE.assign(a="x", b=list("ppqqrr"), house=range(6))
    monkeypatch.setattr(f"{__name__}.TABLE", table)
    criteria = [f"households.risk.highest<={limit}", "t<=0.9"]
    plan = gpupif.Plan(HOUSES.treatments, criteria=replace(HOUSES.criteria, require=criteria), **KNOWN)
    if limit == 0.6:
        done = way(plan, tmp_path)
        assert done.is_met
        assert [own["is_met"] for own in done.record.criteria] == [True, True]
        return
    with pytest.raises(UnmetError, match=r"'households\.risk\.highest<=0\.4' is 0\.5"):
        way(plan, tmp_path)


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("way", [in_memory, in_files])
def test_a_population_is_recoded_as_the_table_is(way, tmp_path):
    people = pd.concat([TABLE, TABLE.assign(b="p")], ignore_index=True)
    people.to_parquet(tmp_path / "people.parquet")
    plan = gpupif.Plan(
        [Recode("b", level=1)],
        {"b": {"values": {"p": ["all"], "q": ["all"]}}},
        criteria={"require": ["population.k_map>=6"]},
        **KNOWN,
    )
    with pytest.raises(
        UnmetError, match=r"'population\.k_map>=6' cannot be measured in the treated table: it needs popul"
    ):
        way(plan, tmp_path)
    given = people if way is in_memory else tmp_path / "people.parquet"
    assert way(plan, tmp_path, population=given).is_met
    (tmp_path / "out.csv").unlink(missing_ok=True)
    seven = gpupif.Plan(plan.treatments, plan.hierarchies, criteria={"require": ["population.k_map>=7"]}, **KNOWN)
    with pytest.raises(UnmetError, match=r"'population\.k_map>=7' is 6"):
        way(seven, tmp_path, population=given)


DROPPED = {
    "a known column": (["b"], {"require": ["k>=3", "known=a,b: k>=3", "known=2: k>=3"]}),
    "a column of an attacker": (["b"], {"require": ["n: k>=3"], "attackers": {"n": ["a", "b"]}}),
    "all that an attacker knows": (["a", "b"], {"require": ["k>=6", "known=b: k>=6"]}),
    "a sensitive column": (["ill"], {"require": ["t<=0.0", "t(ill)<=0.0", "distinct_l>=9", "max csf(ill)<=0.0"]}),
}


@pytest.mark.parametrize("case", DROPPED)
def test_nobody_knows_or_learns_what_is_dropped(case):
    columns, criteria = DROPPED[case]
    plan = gpupif.Plan([Drop(columns)], criteria=criteria, **KNOWN)
    assert gpupif.treat(TABLE, plan).is_met
    if case != "a sensitive column":
        higher = {
            **criteria,
            "require": [own.replace("k>=3", "k>=4").replace("k>=6", "k>=7") for own in criteria["require"]],
        }
        with pytest.raises(UnmetError, match=r"is [36]"):
            gpupif.treat(TABLE, gpupif.Plan([Drop(columns)], criteria=higher, **KNOWN))


@pytest.mark.parametrize("require", ["k>=2", "known=1: k>=2", "classes.prosecutor.highest<=0.5", "max csf<=1"])
def test_an_attacker_knows_what_a_plan_leaves(require):
    plan = gpupif.Plan([Drop(["b"])], criteria={"require": [require]}, **KNOWN)
    assert gpupif.treat(TABLE, plan).record.criteria
    every = gpupif.Plan([Drop(["a", "b", "ill"])], criteria={"require": [require, "t<=0"]}, **KNOWN)
    assert gpupif.treat(TABLE, every).is_met


def test_any_few_columns_are_those_that_a_plan_leaves():
    plan = gpupif.Plan([Drop(["b"])], criteria={"require": ["known=2: k>=3", "known=2: k>=4"]}, **KNOWN)
    done = gpupif.treat(TABLE, plan, keep_unmet=True)
    assert [(own["criterion"], own["value"], own["is_met"]) for own in done.record.criteria] == [
        ("known=2: k>=3", 3, True),
        ("known=2: k>=4", 3, False),
    ]


@pytest.mark.parametrize(
    ("known", "criteria", "message"),
    [
        ({"quasi_identifiers": ["a", "B"]}, {}, "plan: quasi_identifiers: no column 'B'"),
        ({"sensitive": ["ill", "illness"]}, {}, "plan: sensitive: no column 'illness'"),
        ({}, {"weights": "W"}, "plan: criteria: weights: no column 'W'"),
        ({}, {"require": ["k>=1", "known=a,zip: k>=1"]}, "plan: criterion 'known=a,zip: k>=1': no column 'zip'"),
        ({}, {"require": "n: k>=1", "attackers": {"n": ["zip"]}}, "plan: attackers: 'n': no column 'zip'"),
    ],
)
def test_a_column_that_criteria_name_must_be_in_the_table(known, criteria, message):
    """Else they would be measured against an attacker who knows less, and be met."""
    with pytest.raises(InputError, match=message):
        gpupif.treat(TABLE, gpupif.Plan([], criteria={"require": ["k>=1"], **criteria}, **{**KNOWN, **known}))


def test_criteria_on_the_index_are_measured(tmp_path):
    table, file = TABLE.set_index("a"), tmp_path / "table.parquet"
    table.to_parquet(file)
    plan = gpupif.Plan([], criteria={"require": ["k>=3"]}, quasi_identifiers=["a", "b"])
    with pytest.raises(UnmetError, match="'k>=3' is 1"):
        gpupif.treat(table, plan)
    with pytest.raises(UnmetError, match="'k>=3' is 1"):
        gpupif.treat_files(file, tmp_path / "out.parquet", plan)


def test_fewer_values_or_rows_than_l_break_a_criterion():
    plan = gpupif.Plan([], criteria={"require": ["recursive_c(l=3)<=2", "recursive_c(l=9)<=2"]}, **KNOWN)
    with pytest.raises(UnmetError, match=r"'recursive_c\(l=3\)<=2' is inf .*, 'recursive_c\(l=9\)<=2' is inf"):
        gpupif.treat(TABLE, plan)


@pytest.mark.usefixtures("on_cpu")
def test_ordered_categories_have_no_order_in_any_table(tmp_path):
    """Files do not keep it: the same plan is met, or not, whatever kind of table it treats."""
    from dask import dataframe as dd

    ill = pd.Categorical(list("zxyzxxyyz") * 4, ["z", "x", "y"], ordered=True)
    table = pd.DataFrame({"a": list("pppqqqrrr") * 4, "ill": ill})
    table.to_parquet(tmp_path / "table.parquet")
    given = {"quasi_identifiers": ["a"], "sensitive": ["ill"]}
    plan = gpupif.Plan([], criteria={"require": ["t<=0.2"]}, **given)
    ordered = gpupif.Plan([], criteria={"require": ["t<=0.2"], "distances": {"ill": list("zxy")}}, **given)
    for kind in (table, tmp_path / "table.parquet", dd.from_pandas(table, npartitions=2)):
        with pytest.raises(UnmetError, match=r"'t<=0.2' is 0\.3333"):
            gpupif.treat(kind, plan)
        assert gpupif.treat(kind, ordered).is_met
    with pytest.raises(UnmetError, match=r"'t<=0.2' is 0\.3333"):
        gpupif.treat_files(tmp_path / "table.parquet", tmp_path / "out.parquet", plan)


@pytest.mark.parametrize(("known", "value"), [({}, None), ({"u": list("pqrs")}, 2), ({"u": list("pqqq")}, 1)])
def test_attributes_without_a_known_value_break_nothing(known, value):
    table = pd.DataFrame({"a": list("xxyy"), "s": None, "u": None} | known).astype("string")
    given = {"quasi_identifiers": ["a"], "sensitive": ["s", "u"]}
    plan = gpupif.Plan([], criteria={"require": ["distinct_l>=1"], "missing": "wildcard"}, **given)
    done = gpupif.treat(table, plan)
    assert [own["value"] for own in done.record.criteria] == [value]


def test_compare_says_what_the_record_of_a_kept_table_breaks():
    done = gpupif.treat(TABLE, BROKEN["criteria of the plan"], keep_unmet=True)
    found = gpupif.compare(TABLE, done.table, done.record)
    assert not found.is_met
    assert "'k>=3' is 1" in found.unmet


@pytest.mark.parametrize(
    ("criteria", "message"),
    [
        ({"require": ["k>5"]}, "criteria: criterion 'k>5'"),
        ({"require": ["k>=5"], "size": 3}, "criteria: there is no key 'size'"),
        ({}, "criteria: expected a key 'require'"),
        ({"require": 5}, "criteria: require: expected"),
        ("k>=5", r"criteria: expected a table \[criteria\]"),
    ],
)
def test_wrong_criteria_are_refused(criteria, message):
    with pytest.raises(InputError, match=message):
        gpupif.Plan([], criteria=criteria, **KNOWN)
    with pytest.raises(InputError, match="expected quasi_identifiers of the plan"):
        gpupif.Plan([], criteria={"require": ["k>=5"]})


@pytest.mark.parametrize(
    "part",
    [
        {"criteria": {"require": ["k>=3", "t<=0.5"]}},
        {"treatment": [{"do": "suppress_rows", "require": ["t<=0.5"], "quasi_identifiers": ["a"]}]},
        {"treatment": [{"do": "suppress", "require": ["t<=0.5"], "columns": ["a"]}]},
        {"treatment": [{"do": "recode_rows", "require": ["t<=0.5"], "levels": {"a": [0]}}]},
    ],
    ids=lambda part: part.get("treatment", [{"do": "criteria"}])[0]["do"],
)
def test_a_criterion_of_a_sensitive_attribute_needs_one_in_the_plan(tmp_path, part):
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"quasi_identifiers": ["a"], "treatment": [], **part}))
    with pytest.raises(InputError) as refused:
        gpupif.Plan.load(file)
    assert str(refused.value).startswith(f"plan: {file}: ")
    assert str(refused.value).endswith(
        "require: 't<=0.5' is of a sensitive attribute, and no column is named as one. Name it, such as "
        "sensitive = ['disease']."
    )
