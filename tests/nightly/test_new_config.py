"""The first configuration: made from a look at the table."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.criteria.counted_table import CountedTable
from gpupif.criteria.criterion_set import CriterionSet
from gpupif.engines.choose import choose_engine, requested_device
from gpupif.nightly.configuration.config import load_config
from gpupif.nightly.configuration.new_config import init, write_first
from gpupif.nightly.gates.gates import resolve_gates

RANDOM = np.random.default_rng(19)
TABLE = pd.DataFrame(
    {
        "id": range(1, 101),
        "age": RANDOM.permutation([20, 30, 40, 50] * 25),
        "sex": RANDOM.permutation(["f", "m"] * 50),
        "${town}": RANDOM.permutation(["A", "B", "C", None] * 25),
        "religion": RANDOM.permutation(["x", "y", "y", "z"] * 25),
        "pweight": [1.5, 2.5, 4.0, 2.0] * 25,
        "source": ["s"] * 100,
    }
)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table in a file, in a folder below the working one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    TABLE.to_parquet(tmp_path / "data" / "people.parquet")
    return tmp_path / "data" / "people.parquet"


def test_a_new_configuration_has_the_path_columns_and_attacker(table, tmp_path):
    seen = init("data/people.parquet")
    assert seen.rows == 100
    assert (tmp_path / "risk.toml").stat().st_mode & 0o077 == 0
    config = load_config("risk.toml")
    settings = config.settings
    assert (settings.input.path, settings.input.row_key) == ("data/people.parquet", ["id"])
    assert config.table == table
    assert settings.score.columns == ["age", "sex", "${town}", "religion"]
    assert settings.score.known == settings.risk.quasi_identifiers == ["age", "sex", "${town}"]
    assert settings.risk.sensitive == ["religion"]
    assert settings.score.weights == "pweight"
    limits = {gate.name: gate.limits for gate in settings.gates}
    # What is limited is what offices limit; what the table is like today limits changes alone.
    assert limits == {
        "k": {"min": 11},
        "PIF 95": {"max_rise": 0.1},
        "unique share": {"max_rise": 0.01},
        "share below k": {"max_rise": 0.01},
        "rows": {"max_rise": 20, "max_fall": 20},
        "missing share": {"max_rise": 0.05},
    }
    text = (tmp_path / "risk.toml").read_text()
    assert "# Not scored: 'id' (identifier), 'pweight' (weight), 'source' (leave out).\n" in text
    plain, classes = text.replace("\n# ", " "), gpupif.risk(table, settings.score.known, weights="pweight").classes
    assert "k>=11, for a table that anybody gets. European Medicines Agency and Health Canada" in plain
    assert classes.k == 1
    assert "When this was written: 1 row, and the gate fails.\n" in plain
    assert f"When this was written: {classes.share_below:g} (80 %), which is not limited.\n" in plain
    assert '# [[gates]]\n# kind = "k"\n# min = 5\n' in text
    assert max(map(len, text.splitlines())) <= 120
    # Apart from what was seen, all is as it is by itself.
    untouched = load_config("risk.toml", ["score={}", "risk={}", "gates=[]", "input={path='a'}"])
    (tmp_path / "least.toml").write_text("[input]\npath = 'a'\n")
    assert untouched.document == load_config("least.toml").document


def test_the_examples_in_comments_can_be_put_in(table, tmp_path):
    init(table)
    lines = (tmp_path / "risk.toml").read_text().splitlines()
    start = next(place for place, line in enumerate(lines) if line == "# [[gates]]")
    stop = next(place for place, line in enumerate(lines) if line == "[tell]")
    words = ("# [[", "# kind", "# max", "# min", "# percentile", "# column")
    lines[start:stop] = [line.removeprefix("# ") if line.startswith(words) else line for line in lines[start:stop]]
    (tmp_path / "risk.toml").write_text("\n".join(lines))
    settings = load_config("risk.toml").settings
    resolve_gates(settings)
    names = [gate.name for gate in settings.gates]
    assert names[6:] == ["k 2", "unique rows", "new values of age", "distinct l"]


PLAN = """quasi_identifiers = ["age", "sex"]

[[treatment]]
do = "suppress_rows"
require = ["k>=5", "distinct_l(religion)>=2"]
quasi_identifiers = ["age", "sex"]
sensitive = ["religion"]
"""


def given_limits(require=None, plan=None):
    """What a first configuration tells first, its gates with a max or min, and its settings."""
    first = write_first("data/people.parquet", "risk.toml", True, require=require, plan=plan)
    settings = load_config("risk.toml").settings
    return first.tonight, {gate.name: gate for gate in settings.gates if {"max", "min"} & {*gate.limits}}, settings


def test_limits_of_the_user_take_the_place_of_those_of_offices(table):
    require = ["pif95<=9", "max wcig<=0.5", "share_below_k(3)<=0.1", "recursive_c(religion, l=2)<=4", "unique_share<=1"]
    tonight, gates, settings = given_limits(require)
    assert {name: (gate.limits, gate.column) for name, gate in gates.items()} == {
        "PIF 95": ({"max": 9, "max_rise": 0.1}, None),
        "highest wcig": ({"max": 0.5}, None),
        "share below k": ({"max": 0.1, "max_rise": 0.01}, None),
        "recursive c of religion": ({"max": 4}, "religion"),
        "unique share": ({"max": 1, "max_rise": 0.01}, None),
    }
    assert (settings.risk.k, settings.risk.l, settings.score.measures) == (3, 2, ["cig", "csf", "wcig"])
    outcome = gpupif.nightly.run("risk.toml")
    fails = [gate.name for gate in outcome.gates if gate.verdict == "failed"]
    assert [line.split(": ")[1].startswith(name) for line, name in zip(tonight, fails, strict=True)] == [True] * 3
    assert all(line.startswith("Fails tonight: ") and line.endswith(", as required.") for line in tonight)


def test_the_criteria_of_a_plan_are_limits_on_the_table_that_it_treats(table, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    tonight, gates, settings = given_limits(plan="plan.toml")
    assert [gate.limits for gate in gates.values()] == [{"min": 5}, {"min": 2}]
    assert all(gate.treated for gate in gates.values())
    assert settings.risk.quasi_identifiers == settings.score.known == ["age", "sex"]
    assert (settings.release.plan, settings.release.output) == ("plan.toml", "treated.parquet")
    assert [line.startswith("Holds tonight: ") for line in tonight] == [True, True]
    outcome = gpupif.nightly.run("risk.toml")
    assert (outcome.exit_code, (tmp_path / "treated.parquet").exists()) == (0, True)
    # A limit of the user beside those of the plan is on the same table.
    tonight, gates, _ = given_limits("k>=90", "plan.toml")
    assert (len(gates), [line.partition(" (at")[0] for line in tonight]) == (
        3,
        [f"Fails tonight: k after treatment 2 {gpupif.risk('treated.parquet', ['age', 'sex']).classes.k} rows"],
    )


@pytest.mark.parametrize(
    ("require", "plan", "words"),
    [
        ("known=2: k>=3", None, "expected nothing before a colon"),
        ("population.k_map>=3", None, "follows from score.population, which is not there"),
        ("distinct_l(age)>=2", None, "expected a sensitive column"),
        ("mean rig<=2", None, "expected a percentile"),
        (["share_below_k(3)<=0.1", "rows_below_k(4)<=9"], None, "expected k 3 as before"),
        ("pif95<=3", PLAN, "expected a figure of classes"),
        (None, PLAN.replace('quasi_identifiers = ["age", "sex"]', "", 1), "the quasi_identifiers of the plan"),
        (None, "treatment = 3", "treatment"),
    ],
)
def test_limits_that_no_gate_can_have_are_refused(table, tmp_path, require, plan, words):
    if plan is not None:
        (tmp_path / "plan.toml").write_text(plan)
    with pytest.raises(gpupif.InputError, match=words):
        init(table, require=require, plan=None if plan is None else "plan.toml")
    assert not (tmp_path / "risk.toml").exists()


@pytest.mark.parametrize("what", ["plan", "roles"])
def test_a_configuration_replaces_none_of_its_inputs(table, tmp_path, what):
    (tmp_path / "risk.toml").write_text(PLAN)
    with pytest.raises(gpupif.errors.OutputError, match=r"risk.toml: .*input"):
        init(table, "risk.toml", True, **{what: "risk.toml"})
    assert (tmp_path / "risk.toml").read_text() == PLAN
    with pytest.raises(gpupif.InputError, match="key: goes with plan="):
        init(table, key="treat.key")


@pytest.mark.parametrize(
    ("given", "place", "written"),
    [
        ("data/people.parquet", "risk.toml", "data/people.parquet"),
        ("data/*.parquet", "risk.toml", "data/*.parquet"),
        ("data", "risk.toml", "data"),
        ("data/people.parquet", "data/risk.toml", "people.parquet"),
        ("data/../data/people.parquet", "data/risk.toml", "people.parquet"),
        ("data/people.parquet", "other/risk.toml", None),
    ],
)
def test_paths_beneath_the_file_are_written_relative_to_it(table, tmp_path, given, place, written):
    (tmp_path / "other").mkdir()
    init(given, place)
    config = load_config(place)
    assert config.settings.input.path == (written or str(tmp_path / given))
    assert config.table.exists() or "*" in given


def test_paths_and_separators_with_special_signs_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from gpupif.io.paths import find_input

    for name in ("~a${b}.csv", 'c"d.csv'):
        (tmp_path / name).write_text("sex;age\nf;3\nm;4\nf;3\n")
        init(find_input(tmp_path / name, ";"), "risk.toml", overwrite=True)
        config = load_config("risk.toml", environ={})
        assert config.settings.input.separator == ";"
        assert config.table.samefile(tmp_path / name)


@pytest.mark.parametrize("columns", [["id"], ["religion"], ["source"], ["id", "religion", "pweight"]])
def test_a_table_with_few_scored_columns_gets_a_configuration(tmp_path, columns):
    """The table has no quasi-identifiers, or no column to score."""
    TABLE[columns].to_csv(tmp_path / "t.csv", index=False)
    init(tmp_path / "t.csv", tmp_path / "risk.toml")
    settings = load_config(tmp_path / "risk.toml").settings
    assert settings.score.columns == (["religion"] if "religion" in columns else None)
    assert settings.risk.quasi_identifiers == settings.risk.sensitive == []
    assert [gate.kind for gate in settings.gates] == ["pif", "rows", "missing_share"]
    assert settings.input.row_key == (["id"] if "id" in columns else [])
    resolve_gates(settings)


def test_given_roles_replace_the_proposed_ones(table, tmp_path):
    roles = dict.fromkeys(TABLE, "leave out") | {"sex": "quasi-identifier", "${town}": "sensitive"}
    seen = init(table, roles=roles)
    assert dict(seen.roles) == dict(zip(seen.columns["column"], seen.columns["role"], strict=True)) == roles
    settings = load_config(tmp_path / "risk.toml").settings
    assert (settings.score.columns, settings.score.known) == (["sex", "${town}"], ["sex"])
    assert (settings.risk.sensitive, settings.score.weights) == (["${town}"], None)
    assert "the roles that were given" in " ".join((tmp_path / "risk.toml").read_text().replace("#", "").split())
    with pytest.raises(gpupif.InputError, match="expected a role for each column"):
        init(table, overwrite=True, roles={"sex": "sensitive"})


def test_a_new_configuration_has_no_value_of_the_table(table, tmp_path):
    frame = TABLE.assign(age=RANDOM.permutation([1234567, 7654321] * 50), religion=["Qwx", "Vvy"] * 50)
    frame.to_parquet(table)
    init(table)
    text = (tmp_path / "risk.toml").read_text()
    assert not [value for value in ("1234567", "7654321", "Qwx", "Vvy") if value in text]


def test_an_existing_configuration_is_kept_without_overwrite(table, tmp_path):
    file = tmp_path / "risk.toml"
    file.write_text("mine")
    with pytest.raises(gpupif.errors.OutputError, match=r"risk.toml: exists already"):
        init(table)
    assert file.read_text() == "mine"
    init(table, overwrite=True)
    assert tomllib.loads(file.read_text())["input"]["path"] == "data/people.parquet"


@pytest.mark.parametrize(
    ("given", "place", "error", "words"),
    [
        (
            "postgresql://ann:geheim@db/people",
            "risk.toml",
            gpupif.InputError,
            r"^postgresql://\.\.\.: expected the path of a table, got an address.* input.connection and input.query",
        ),
        (Path("duckdb:///people.db"), "risk.toml", gpupif.InputError, r"^duckdb://\.\.\.: expected the path"),
        ("none.csv", "risk.toml", gpupif.errors.TableReadError, "none.csv: no such file"),
        ("data/people.parquet", "risk.json", gpupif.errors.OutputError, "ending in .toml"),
        ("data/people.parquet", "none/risk.toml", gpupif.errors.OutputError, "there is no folder none"),
        ("data/people.parquet", 3, gpupif.InputError, "path: expected the path of a .toml file, got 3"),
    ],
)
def test_tables_and_places_that_do_not_fit_are_refused(table, given, place, error, words):
    before = set(os.listdir())
    with pytest.raises(error, match=words):
        init(given, place)
    assert set(os.listdir()) == before


FIGURES = [
    *(
        "k>=5",
        "uniques<=0",
        "unique_share<=0.1",
        "share_below_k(7)<=0.9",
        "average_risk<=0.2",
        "prosecutor.highest<=0.2",
    ),
    *(
        "pif95<=3",
        "pif50<=3",
        "max rig<=3",
        "max csf<=0.5",
        "mean cig(age)<=1",
        "p90 wcig<=1",
        "fig<=3",
        "min cohort_size>=3",
    ),
    *("cig(religion)<=2", "distinct_l>=2", "distinct_l(pweight)>=2", "t<=0.3", "basic_beta<=1", "recursive_c(l=2)<=3"),
    *("entropy_l(religion)>=1", "delta<=1", "alpha<=0.5"),
]


@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize("text", FIGURES)
def test_a_gate_has_the_value_and_the_verdict_of_its_criterion(table, text):
    """The criterion is measured as a search measures it, in memory."""
    roles = dict.fromkeys(TABLE, "leave out") | dict.fromkeys(["age", "sex", "${town}"], "quasi-identifier")
    roles |= {"religion": "sensitive", "pweight": "sensitive"}
    ((result, _), *_) = write_first(table, "risk.toml", True, roles=roles, require=text).gates
    criteria = CriterionSet.from_arguments(text, ["age", "sex", "${town}"], ["religion", "pweight"])
    (value,) = criteria.measure(CountedTable.from_table(TABLE, criteria.columns), choose_engine(requested_device()))
    assert (result.value, result.verdict == "passed") == (pytest.approx(value.value, rel=1e-12), value.is_met)
