"""Plans: making, writing and reading them, and refusing wrong plans."""

from __future__ import annotations

import datetime
import json
import os
import stat
import sys
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.errors import InputError, OutputError
from gpupif.hierarchies.hierarchy import hierarchy_with_level
from gpupif.treatment import plan as plans
from gpupif.treatment.plan_fields import plain
from gpupif.treatment.treatment import Treatment
from tests.helpers.tables import SHARED_FIXTURES

AGES = {"age": {"widths": [5, 10, 20]}}

ALL_TREATMENTS = plans.TREATMENTS


@dataclass(frozen=True)
class Everything(Treatment):
    """A treatment with a key of every type, which changes nothing."""

    do: ClassVar[str] = "everything"
    files: ClassVar[Sequence[str]] = ("source",)
    column: Hashable
    level: int | None = None
    share: float = 0.5
    label: str = "other"
    on: bool = False
    kind: Literal["uniform", "prior"] = "uniform"
    columns: Sequence[Hashable] = ()
    edges: Sequence[float] | None = None
    mapping: Mapping[Any, Any] | None = None
    source: Mapping[str, int] | str | os.PathLike[str] | None = None
    anything: Any = None

    def check(self) -> None:
        if not 0 <= self.share <= 1:
            raise InputError(f"share: expected a number from 0 to 1, got {self.share}.")

    def check_hierarchies(self, hierarchies):
        if self.level is not None:
            hierarchy_with_level(hierarchies, self.column, self.level)

    def prepare(self, table, tools):
        raise NotImplementedError


@dataclass(frozen=True)
class Nothing(Treatment):
    """A treatment without keys."""

    do: ClassVar[str] = "nothing"

    def check(self) -> None:
        pass

    def prepare(self, table, tools):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def known_words(monkeypatch):
    monkeypatch.setattr(plans, "TREATMENTS", {"everything": Everything, "nothing": Nothing})


def everything(**keys):
    return {"treatment": [{"do": "everything", "column": "age", **keys}]}


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False))
HIERARCHIES = st.sampled_from(
    [
        {"widths": [5, 10]},
        {"widths": [0.25], "start": 0.1},
        {"digits": [2, 3], "length": 5},
        {"first": [3, 1]},
        {"dates": ["month", "year"]},
        {"common": ["a", 'quoted "b"', ""], "keep": [3, 1], "label": "rest"},
        {"a": ["x", "y"], "é \\": ["x", "y"], "": ["z", "y"]},
    ]
)


@st.composite
def some_plans(draw):
    hierarchies = draw(st.dictionaries(NAMES, HIERARCHIES, max_size=3))
    known = st.none() if not hierarchies else st.sampled_from(sorted(hierarchies))
    one = st.builds(
        Everything,
        NAMES,
        share=st.floats(0, 1),
        label=NAMES,
        on=st.booleans(),
        kind=st.sampled_from(["uniform", "prior"]),
        columns=st.lists(NAMES).map(tuple),
        edges=st.none() | st.lists(NUMBERS),
        mapping=st.none() | st.dictionaries(NAMES | st.integers(-5, 5).map(lambda n: n + 0.5), NAMES | NUMBERS),
        anything=st.none() | NUMBERS | NAMES | st.lists(st.booleans()),
    )
    treatments = draw(st.lists(one | st.builds(Nothing), max_size=4))
    column = draw(known)
    leveled = [] if column is None else [Everything(column, level=draw(st.integers(0, 2)))]
    return gpupif.Plan([*treatments, *leveled], hierarchies)


@given(some_plans(), st.sampled_from(["toml", "json", "yaml", "YML"]))
@SHARED_FIXTURES
def test_a_saved_plan_is_loaded_again(tmp_path_factory, plan, ending):
    file = tmp_path_factory.mktemp("plans") / f"plan.{ending}"
    plan.save(file)
    loaded = gpupif.Plan.load(file)
    assert loaded == plan
    assert loaded.to_dict() == plan.to_dict()
    assert gpupif.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert gpupif.Plan.from_any(str(file)) == gpupif.Plan.from_any(plan.to_dict()) == gpupif.Plan.from_any(plan)


def test_a_saved_plan_is_the_expected_document(tmp_path):
    plan = gpupif.Plan([Everything("age", level=2), Nothing()], AGES)
    plan.save(tmp_path / "plan.toml")
    text = (tmp_path / "plan.toml").read_text()
    assert tomllib.loads(text) == plan.to_dict()
    assert plan.to_dict() == {
        "hierarchies": AGES,
        "treatment": [{"do": "everything", "column": "age", "level": 2}, {"do": "nothing"}],
    }
    assert text.splitlines()[2:] == [
        "[hierarchies]",
        "age = {widths = [5, 10, 20]}",
        "",
        "[[treatment]]",
        'do = "everything"',
        'column = "age"',
        "level = 2",
        "",
        "[[treatment]]",
        'do = "nothing"',
    ]
    assert gpupif.Plan([]).to_dict() == {"treatment": []}


@pytest.mark.parametrize("ending", ["toml", "json", "yaml"])
def test_a_plan_keeps_what_an_attacker_knows_and_would_learn(tmp_path, ending):
    plan = gpupif.Plan([Nothing()], quasi_identifiers=["age", "my sex"], sensitive="ill")
    plan.save(tmp_path / f"p.{ending}")
    loaded = gpupif.Plan.load(tmp_path / f"p.{ending}")
    assert (loaded.quasi_identifiers, loaded.sensitive) == (["age", "my sex"], ["ill"])
    assert loaded.to_dict() == plan.to_dict()
    assert list(gpupif.Plan([Nothing()]).to_dict()) == ["treatment"]


def test_a_single_column_may_be_given_without_a_list():
    for given_ in (everything(columns="sex"), gpupif.Plan([Everything("age", columns="sex")]).to_dict()):
        plan = gpupif.Plan.from_dict(given_)
        assert plan.treatments == (Everything("age", columns=["sex"]),)
    table = {"sex": ["f", "m"], "age": [1, 2]}
    assert list(gpupif.treat(pd.DataFrame(table), [gpupif.treatments.Drop("sex")]).table) == ["age"]


def test_plans_that_do_the_same_are_equal():
    plan = gpupif.Plan([Everything("age", level=1, columns=["a"])], AGES)
    assert plan == gpupif.Plan(
        [Everything("age", level=1, columns=("a",), share=0.5)], {"age": {"widths": (5, 10.0, 20)}}
    )
    assert plan != gpupif.Plan([Everything("age", level=2, columns=["a"])], AGES)
    assert plan != gpupif.Plan([Everything("age", level=1, columns=["a"])], {"age": {"widths": [5, 10]}})
    assert plan != gpupif.Plan([Everything("age", level=1, columns=["a"])] * 2, AGES)
    assert plan != "plan"
    assert repr(plan).startswith("Plan([\n    Everything(column='age', level=1, columns=['a']),\n]")
    assert repr(plan).endswith("hierarchies={'age': Intervals(widths=(5, 10, 20), start=0)})")
    assert repr(gpupif.Plan([])) == "Plan([])"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (np.int64(3), 3),
        (np.array([1.5, 2]), [1.5, 2.0]),
        ((1, (True, None)), [1, [True, None]]),
        ({1: 2.5, datetime.date(2001, 5, 17): "x"}, {"1": 2.5, "2001-05-17": "x"}),
        (datetime.date(2001, 5, 17), "2001-05-17"),
        (Decimal("1.50"), "1.5"),
        ({"b", "a"}, ["a", "b"]),
    ],
)
def test_values_are_written_as_plans_have_them(value, wanted):
    assert plain(value) == wanted


def test_files_of_a_plan_begin_at_its_folder(tmp_path, monkeypatch):
    folder = tmp_path / "plans"
    (folder / "h").mkdir(parents=True)
    (folder / "h" / "sex.csv").write_text("F;*\nM;*\n")
    (tmp_path / "age.csv").write_text("1;young;*\n")
    hierarchies = {"sex": "h/sex.csv", "age": "../age.csv"}
    document = {"hierarchies": hierarchies, **everything(source="h/people.csv")}
    (folder / "plan.json").write_text(json.dumps(document))
    plan = gpupif.Plan.load(folder / "plan.json")
    assert plan.hierarchies["sex"].height == 1
    assert plan.treatments[0].source == str(folder / "h" / "people.csv")
    plan.save(folder / "again.toml")
    written = tomllib.loads((folder / "again.toml").read_text())
    # Files inside the plan's folder are named relative to the plan.
    assert written["hierarchies"] == {"sex": "h/sex.csv", "age": str((tmp_path / "age.csv").resolve())}
    assert written["treatment"][0]["source"] == "h/people.csv"
    assert gpupif.Plan.load(folder / "again.toml") == plan
    monkeypatch.chdir(folder)
    assert gpupif.Plan.from_dict(document) == gpupif.Plan([Everything("age", source="h/people.csv")], hierarchies)
    gpupif.Plan([], hierarchies).save("relative.toml")
    assert tomllib.loads((folder / "relative.toml").read_text())["hierarchies"]["sex"] == "h/sex.csv"
    (folder / "moved").mkdir()
    for name in ("h", "again.toml"):
        (folder / name).rename(folder / "moved" / name)
    assert gpupif.Plan.load(folder / "moved" / "again.toml").treatments[0].source == str(folder / "moved/h/people.csv")


def test_an_existing_file_is_not_replaced_without_overwrite(tmp_path):
    file = tmp_path / "plan.toml"
    plan = gpupif.Plan([Nothing()])
    file.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        plan.save(file)
    assert file.read_text() == "mine"
    plan.save(file, overwrite=True)
    assert gpupif.Plan.load(file) == plan
    assert stat.S_IMODE(file.stat().st_mode) & stat.S_IRUSR


@pytest.mark.parametrize(
    ("plan", "name", "words"),
    [
        (gpupif.Plan([]), "plan.txt", "ending in .toml, .json, .yaml, .yml"),
        (gpupif.Plan([]), "no/plan.toml", "there is no folder"),
        (gpupif.Plan([], {3: {"widths": [5]}}), "plan.toml", "expected a name that is text, got 3"),
        (gpupif.Plan([], {3: {"widths": [5]}}), "plan.json", "expected a name that is text, got 3"),
        (gpupif.Plan([Everything("a", mapping={"x": None})]), "plan.toml", "None, which TOML cannot hold"),
        *(
            (gpupif.Plan([treatment]), name, "expected a name that is text, got")
            for treatment in (
                gpupif.treatments.Suppress([5], k=3, importance={5: 2}),
                gpupif.treatments.Suppress([("x", "y")], k=3),
                gpupif.treatments.SuppressRows(
                    require="t<=0.2", quasi_identifiers=["a"], sensitive=[7], distances={7: "nominal"}
                ),
            )
            for name in ("plan.toml", "plan.json")
        ),
    ],
)
def test_plans_that_cannot_be_saved_are_refused(tmp_path, plan, name, words):
    with pytest.raises(OutputError, match=words):
        plan.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_plans_with_tuples_as_names_can_be_compared_and_shown():
    plan = gpupif.Plan([gpupif.treatments.Suppress([("x", "y")], k=3, importance={("x", "y"): 2})])
    assert plan == gpupif.Plan(plan.treatments)
    assert plan.to_dict()["treatment"][0]["importance"] == {"('x', 'y')": 2}
    assert "importance={('x', 'y'): 2}" in repr(plan)


def test_mappings_to_nothing_can_be_saved_as_json(tmp_path):
    plan = gpupif.Plan([Everything("a", mapping={"x": None})])
    plan.save(tmp_path / "plan.json")
    assert gpupif.Plan.load(tmp_path / "plan.json") == plan


BAD = {
    "an unknown key": ({"treatmnt": []}, "no key 'treatmnt' in a plan. Did you mean 'treatment'?"),
    "a key": ({"key": "ab" * 32}, "'key' is never in a plan"),
    "a seed": (everything(seed=1), r"treatment 1 \(everything\): 'seed' is never in a plan"),
    "a secret of a treatment": (everything(key="ab"), "'key' is never in a plan"),
    "no word": (
        {"treatment": [{"column": "age"}]},
        "do: expected one of 'everything', 'nothing'; got none",
    ),
    "an unknown word": ({"treatment": [{"do": "nothin"}]}, "got 'nothin'. Did you mean 'nothing'?"),
    "a word that is none": ({"treatment": [{"do": 3}]}, "do: expected one of .* got 3"),
    "an unknown key of a treatment": (everything(levl=1), "there is no key 'levl'. Did you mean 'level'?"),
    "a missing key": ({"treatment": [{"do": "everything"}]}, r"\(everything\): expected a key 'column', got none"),
    "text for a number": (everything(level="2"), "level: expected a whole number, got '2'"),
    "a fraction for a whole number": (everything(level=1.5), "level: expected a whole number, got 1.5"),
    "a boolean for a number": (everything(share=True), "share: expected a number, got True"),
    "a number for text": (everything(label=3), "label: expected text, got 3"),
    "a number for a boolean": (everything(on=1), "on: expected true or false, got 1"),
    "a word of others": (everything(kind="both"), "kind: expected 'uniform' or 'prior', got 'both'"),
    "a list for a column": (everything(column=["a"]), "column: expected the name of a column"),
    "a table for a list": (everything(columns={"a": 1}), "columns: expected a list of names of columns, got {'a': 1}"),
    "text for numbers": (everything(edges="12"), "edges: expected a list of numbers, got '12'"),
    "text among numbers": (everything(edges=[1, "2"]), "edges: expected a list of numbers"),
    "a list for a table": (everything(mapping=["a"]), "mapping: expected a table of keys and values"),
    "text in a table of numbers": (
        everything(source={"a": "b"}),
        "source: expected a table of keys and values that are whole numbers or text",
    ),
    "what the treatment refuses": (everything(share=2), r"treatment 1 \(everything\): share: expected a number from 0"),
    "a level without a hierarchy": (everything(level=1), "level: column 'age' has no hierarchy. If the name is right"),
    "a level above the top": ({"hierarchies": AGES, **everything(level=5)}, "from 0 to 4, the top .* got 5"),
    "a level below": ({"hierarchies": AGES, **everything(level=-1)}, "from 0 to 4"),
    "another column's hierarchy": (
        {"hierarchies": {"ages": {"widths": [5]}}, **everything(level=1)},
        "column 'age' has no hierarchy.*Did you mean 'ages'",
    ),
    "one treatment": ({"treatment": {"do": "nothing"}}, r"treatment: expected a list, \[\[treatment\]\]"),
    "a treatment that is none": (
        {"treatment": ["nothing"]},
        "expected keys and their values, got 'nothing'",
    ),
    "the second": (
        {"treatment": [{"do": "nothing"}, {"do": "nothing", "x": 1}]},
        r"treatment 2 \(nothing\)",
    ),
    "nothing": ({}, r"expected treatments, a list \[\[treatment\]\], got nothing.*treatment = \[\]"),
    "hierarchies alone": ({"hierarchies": AGES}, r"expected treatments.*got only \[hierarchies\]"),
    "hierarchies in a list": ({"hierarchies": [1]}, "hierarchies: expected a table by column"),
    "levels that do not nest": ({"hierarchies": {"a": {"widths": [2, 3]}}}, "column 'a': widths 2 .* do not nest"),
    "a hierarchy that is none": ({"hierarchies": {"a": {"digit": 2}}}, "column 'a': .*Did you mean 'digits'"),
}


@pytest.mark.parametrize(("document", "words"), BAD.values(), ids=BAD)
def test_bad_plans_are_refused(tmp_path, document, words):
    with pytest.raises(InputError, match=f"^plan: .*{words}"):
        gpupif.Plan.from_dict(document)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"plan.json: .*{words}") as caught:
        gpupif.Plan.load(file)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: gpupif.Plan([Everything("a", share="x")]), "share: expected a number, got 'x'"),
        (lambda: gpupif.Plan([Everything("a", level=1)]), "column 'a' has no hierarchy"),
        (lambda: gpupif.Plan([Everything("a", source=3)]), "source: expected .* or text or a path, got 3"),
        (lambda: gpupif.Plan([3]), "treatment 1: expected a treatment, got 3"),
        (lambda: gpupif.Plan([], sensitive=["a", "a"]), "plan: sensitive: column 'a' is named twice"),
        (lambda: gpupif.Plan(Nothing()), "expected a list of treatments"),
        (lambda: gpupif.Plan("plan.toml"), "expected a list of treatments, got 'plan.toml'"),
        (lambda: gpupif.Plan.from_any(3), "expected a plan, the path of one, or a dictionary, got 3"),
        (lambda: gpupif.Plan.load(3), "plan: expected the path of a .toml, .json or .yaml file, got 3"),
        (lambda: gpupif.Plan.load("no.toml"), "plan: no.toml: could not be read: No such file"),
        (lambda: gpupif.Plan.load("plan.txt"), "expected a name ending in .toml, .json, .yaml, .yml"),
    ],
)
def test_bad_arguments_of_plans_are_refused(made, words):
    with pytest.raises(InputError, match=words):
        made()


def test_a_plan_is_made_of_one_or_several_treatments():
    assert gpupif.Plan.from_any([Nothing()]) == gpupif.Plan.from_any(Nothing()) == gpupif.Plan([Nothing()])


def test_yaml_needs_its_library(tmp_path, monkeypatch):
    (tmp_path / "plan.yaml").write_text("treatment: []\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    monkeypatch.setattr("gpupif.io.documents.find_spec", lambda name: None)
    for run in (lambda: gpupif.Plan.load(tmp_path / "plan.yaml"), lambda: gpupif.Plan([]).save(tmp_path / "p.yml")):
        with pytest.raises(InputError, match=r"YAML needs PyYAML, .* pip install pyyaml"):
            run()
    assert not (tmp_path / "p.yml").exists()


def test_a_plan_can_check_the_types_of_every_treatment():
    from gpupif.treatment.plan_fields import SECRETS, types_of

    for word, kind in ALL_TREATMENTS.items():
        assert kind.do == word
        assert not set(types_of(kind)) & set(SECRETS)
        assert set(kind.files) <= set(types_of(kind))
        assert getattr(gpupif.treatments, kind.__name__) is kind


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_plan_may_have_no_treatments(tmp_path, ending):
    plan = gpupif.Plan([], AGES)
    plan.save(tmp_path / f"plan.{ending}")
    assert gpupif.Plan.load(tmp_path / f"plan.{ending}") == plan


def test_hierarchies_are_of_columns_of_the_table():
    table = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"]})
    with pytest.raises(InputError, match=r"hierarchies: no column 'agee' in the table\. Did you mean 'age'\?"):
        gpupif.treat(table, gpupif.Plan([gpupif.treatments.Drop(["sex"])], {"agee": {"widths": [5]}}))
    # A hierarchy of a dropped column is allowed.
    assert list(gpupif.treat(table, gpupif.Plan([gpupif.treatments.Drop(["age"])], AGES)).table) == ["sex"]
