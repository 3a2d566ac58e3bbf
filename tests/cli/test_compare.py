"""`gpupif compare`."""

from __future__ import annotations

import json

import pytest


@pytest.fixture
def treated(folder):
    (folder / "treated.csv").write_text("age,sex,a=b\n30s,f,1.5\n30s,m,2.5\n40s,f,\n40s,,1.5\n30s,,1.5\n")
    (folder / "plan.toml").write_text(
        '[hierarchies]\n"a=b" = { widths = [5] }\n\n[[treatment]]\ndo = "recode"\ncolumn = "a=b"\nlevel = 1\n'
    )
    return folder


def test_the_command_compares_tables_as_text_and_json(treated, run):
    told = run("compare", "people.csv", "treated.csv")
    assert (told.code, told.err) == (0, "")
    for words in ("PIF 95, bits", "missing matches all", "equivalence classes", "mapped"):
        assert words in told.out
    asked = ("--sensitive", "a=b", "--quasi-identifiers", "age,sex", "--k", "2", "--linkage", "3", "--seed", "8")
    told = run("compare", "people.csv", "treated.csv", "--json", *asked)
    document = json.loads(told.out)
    assert (document["before"], document["after"], document["rows"]) == ("people.csv", "treated.csv", 5)
    assert (document["linkage"]["rows"], document["linkage"]["seed"], document["utility"]["k"]) == (3, 8, 2)
    assert document["risk"]["k"]["after"] == 1
    streamed = json.loads(run("compare", "people.csv", "treated.csv", "--json", *asked, "--memory-limit", "16GiB").out)
    assert streamed | {"seconds": 0} == document | {"seconds": 0}
    assert run("compare", "people.csv", "treated.csv", "-q").out == ""
    by_plan = json.loads(run("compare", "people.csv", "people.csv", "--json", "--plan", "plan.toml").out)
    assert by_plan["utility"]["precision"] < 1


def test_columns_of_numbers_and_weights_are_options(treated, run):
    (treated / "paid.csv").write_text("pay,sex,people\n100,f,2\n250,m,1.5\n300,f,4\n410,m,1\n")
    (treated / "noisy.csv").write_text("pay,sex,people\n120,f,2\n240,m,1.5\n330,f,4\n400,m,1\n")
    asked = ("compare", "paid.csv", "noisy.csv", "--weights", "people", "--interval", "0.25")
    told = run(*asked)
    assert (told.code, told.err) == (0, "")
    for words in ("rows within 0.25 deviations", "linked by rank", "weighted total: pay"):
        assert words in told.out
    document = json.loads(run(*asked, "--numbers", "pay", "--json").out)
    assert document["continuous"]["columns"] == ["pay"]
    totals = [row for row in document["estimates"] if row["estimate"] == "weighted_total"]
    assert (totals[0]["before"], totals[0]["after"], totals[0]["difference"]) == (2185, 2320, 135)
    told = run(*asked, "--numbers", "sex")
    assert (told.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert "--numbers: column 'sex': expected finite numbers before and after, got texts" in told.err


def test_roles_say_which_columns_are_not_compared(treated, run):
    """Also beside a plan that says what the attacker knows."""
    (treated / "roles.toml").write_text(
        '[roles]\nage = "quasi-identifier"\nsex = "quasi-identifier"\n"a=b" = "leave out"\n'
    )
    (treated / "known.toml").write_text('quasi_identifiers = ["age"]\nsensitive = ["sex"]\ntreatment = []\n')
    asked = ("compare", "people.csv", "treated.csv", "--roles", "roles.toml")
    told = run(*asked, "--plan", "known.toml")
    assert (told.code, told.err) == (0, "")
    for words in (
        "From roles.toml: --columns age,sex\n",
        "in the quasi-identifiers, ",
        " in the 2 columns compared; ",
        "Not compared, though in the table before: `a=b`.\n",
    ):
        assert words in told.out
    assert "From roles.toml: --quasi-identifiers age,sex; --columns age,sex\n" in run(*asked).out
    assert json.loads(run(*asked, "--json").out)["not_compared"] == ["a=b"]


def test_a_plan_that_removes_no_rows_is_named(treated, run):
    (treated / "fewer.csv").write_text("age,sex,a=b\n39,f,1.5\n39,m,2.5\n")
    told = run("compare", "people.csv", "fewer.csv", "--plan", "plan.toml")
    assert (told.code, told.out) == (2, "")
    assert "expected the 5 rows of the table before, for the plan that is given removes no rows; got 2." in told.err
    (treated / "rows.toml").write_text('[[treatment]]\ndo = "suppress_rows"\nk = 2\nquasi_identifiers = ["agee"]\n')
    told = run("compare", "people.csv", "fewer.csv", "--plan", "rows.toml")
    assert "treatment 1 (suppress_rows): quasi_identifiers: no column 'agee'" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv", "treated.csv"], "none.csv: no such file"),
        (["people.csv", "none.csv"], "none.csv: no such file"),
        (["people.csv", "treated.csv", "--plan", "none.toml"], "none.toml"),
        (["people.csv", "treated.csv", "--columns", "job"], "no column 'job'"),
        (["people.csv", "treated.csv", "--row-id", "job"], "--row-id"),
        (["people.csv", "treated.csv", "--row-id", "age"], "--row-id: column 'age': before has 39 in 3 rows"),
        (["people.csv", "treated.csv", "--linkage", "much"], "--linkage: expected auto|exact|none|ROWS; got 'much'"),
        (["people.csv", "treated.csv", "--suppressed", "no"], "--suppressed: expected 'both'"),
    ],
)
def test_bad_arguments_are_refused(treated, run, arguments, words):
    told = run("compare", *arguments)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.startswith("gpupif: error: ")
    assert told.err.count("\n") == 1
