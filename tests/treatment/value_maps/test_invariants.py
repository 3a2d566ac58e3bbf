"""Properties of all value maps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.datasets import census
from gpupif.frames.open import open_frame
from gpupif.treatment.coded_columns import CodedColumn, relabeled
from gpupif.treatment.dropped_columns import DeclaredColumns, Drop
from gpupif.treatment.memory_table import MemoryTable
from gpupif.treatment.plan import TREATMENTS, Plan
from gpupif.treatment.random.key import Key
from gpupif.treatment.treatment import Tools
from gpupif.treatment.value_maps.date_part import DatePart
from gpupif.treatment.value_maps.microaggregate import Microaggregate
from gpupif.treatment.value_maps.pooled_values import BottomCode, Cap, Rare, TopCode
from gpupif.treatment.value_maps.pseudonym import Pseudonym
from gpupif.treatment.value_maps.recode import Recode
from gpupif.treatment.value_maps.rounding import Round
from gpupif.treatment.value_maps.zip3 import Zip3
from tests.helpers.treated import treated

KEY = Key(bytes(range(32)))
OF_NUMBERS = [
    Cap("x", over=3),
    TopCode("x", limit=4),
    BottomCode("x", limit=2, label="few"),
    Rare("x", below=3),
    Round("x", base=4),
    Recode("x", edges=[-9, 0, 3, 99]),
    Recode("x", mapping={"1": 2, "3": None}, unmapped="keep"),
    Microaggregate("x", k=1),
    Microaggregate("x", k=1, replaced="median"),
    Pseudonym("x", method="permutation"),
    Pseudonym("x", method="hmac"),
    Pseudonym("x", length=6),
]
OTHERS = [DatePart("x", to="month", format="%Y%m%d"), Zip3("x", {"021": 1})]
ROWS = st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.sampled_from("abc")), min_size=1, max_size=40)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("treatment", OF_NUMBERS, ids=lambda one: f"{one.do} {one!r}"[:60])
@settings(max_examples=10, deadline=None)
@given(ROWS)
def test_other_columns_stay_and_equal_values_stay_equal(treatment, rows):
    values = [value for value, _ in rows]
    if all(value is None for value in values):
        return
    table = pd.DataFrame({"x": pd.array(values, "Int64"), "other": [other for _, other in rows]})
    found = treated(table, treatment, key=KEY)
    assert list(found) == ["x", "other"]
    assert found["other"] == table["other"].tolist()
    new = {}
    for value, after in zip(values, found["x"], strict=True):
        assert new.setdefault(value, after) == after
        assert value is not None or after is None


@pytest.mark.parametrize("treatment", OF_NUMBERS, ids=lambda one: f"{one.do} {one!r}"[:60])
def test_the_type_does_not_depend_on_the_values_of_a_piece(treatment):
    """Check chunks of a file, which have different values."""
    table = MemoryTable(open_frame(pd.DataFrame({"x": [0, 1, 2, 3, 4, 5, 6, 6]})))
    mapper = treatment.mapper(table, Tools({}, KEY))
    whole = mapper(table.values("x").labels)
    for place in range(len(whole)):
        piece = mapper(table.values("x").labels.slice(place, 1))
        assert piece.type == whole.type
        assert piece.to_pylist() == whole.slice(place, 1).to_pylist()


@pytest.mark.parametrize(
    "treatment",
    [
        Recode("age", edges=[0, 20, 40, 60, 200]),
        Cap("age", over=60),
        Round("age", base=5),
        Rare("age", below=12),
        Microaggregate("age", k=10),
        Pseudonym("age", method="hmac"),
    ],
    ids=lambda one: one.do,
)
def test_codes_put_together_are_scored_as_the_treated_table(treatment):
    """Compare two ways bit for bit: scoring the treated table, and scoring the codes that the treatment leaves."""
    table = census(400, columns=5)
    age = next(name for name in table.columns if "age" in name.lower())
    table = table.rename(columns={age: "age"})
    working = MemoryTable(open_frame(table))
    working.apply(treatment.prepare(working, Tools({}, KEY)))
    column = working.column("age")
    values = np.array([*column.labels.to_pylist(), None], object)[column.codes]
    by_values = gpupif.score(table.assign(age=values)).frame()
    by_codes = gpupif.score(table.assign(age=column.codes)).frame()
    pd.testing.assert_frame_equal(by_values, by_codes, check_exact=True)


def test_several_threads_relabel_as_numpy_does():
    codes = np.random.default_rng(0).integers(0, 11, 200_000).astype(np.uint8)
    labels = pa.array(range(10))
    groups = pa.array(["a", "b", None, "a", "b", "c", "c", "a", None, "d"])
    found = relabeled(CodedColumn(codes, labels), groups)
    expected = np.array([*groups.to_pylist(), None], object)[codes]
    assert (np.array([*found.labels.to_pylist(), None], object)[found.codes] == expected).all()
    top = relabeled(CodedColumn(codes, labels), pa.array(["*"] * 10), "*")
    assert top.labels.to_pylist() == ["*"]
    assert not top.codes.any()


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_every_treatment_comes_back_from_a_saved_plan(ending, tmp_path):
    """Check that a plan of all value maps is read from a document as it was written."""
    treatments = [one for one in OF_NUMBERS if getattr(one, "mapping", None) is None or ending == "json"]
    plan = Plan([DeclaredColumns(["x", "y"]), Drop(["y"]), *treatments, *OTHERS])
    plan.save(tmp_path / f"plan.{ending}")
    found = Plan.load(tmp_path / f"plan.{ending}")
    assert found == plan
    assert [type(one) for one in found.treatments] == [type(one) for one in plan.treatments]


def test_every_treatment_is_registered_by_its_word():
    assert {"drop", "recode", "cap", "top_code", "bottom_code", "rare", "date_part", "zip3", "round"} <= set(TREATMENTS)
    assert {"pseudonym", "microaggregate", "declared_columns"} <= set(TREATMENTS)
    assert all(word == kind.do for word, kind in TREATMENTS.items())
