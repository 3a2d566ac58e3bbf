"""What a plan requires is measured in the treated table: what breaks it does not go out, in memory, files and Dask."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError, UnmetError
from gpupif.treatments import PlanCriteria, RecodeRows, SuppressRows

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


def test_criteria_that_need_what_a_plan_drops_are_said():
    plan = gpupif.Plan([], criteria={"require": ["k>=1", "population.k_map>=2", "known=zip: k>=1"]}, **KNOWN)
    with pytest.warns(UserWarning, match="was not measured") as said:
        assert gpupif.treat(TABLE, plan).is_met
    assert [str(own.message).partition(" was not measured in the treated table: ")[::2] for own in said] == [
        (f"plan: criteria: criterion {criterion!r}", f"it needs {what}. Measure it before the table goes out.")
        for criterion, what in [
            ("population.k_map>=2", "the population, which no plan holds"),
            ("known=zip: k>=1", "column 'zip', which the plan drops"),
        ]
    ]


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
