"""The command `gpupif protect`."""

from __future__ import annotations

import json
import math
import re
import shlex
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.protection.node_search import tell_time

HIERARCHIES = """[hierarchies]
age = { widths = [10, 20] }
home = { values = { a = ["ab", "*"], b = ["ab", "*"], c = ["cd", "*"], d = ["cd", "*"] } }
"""


@pytest.fixture
def table(folder):
    rng = np.random.default_rng(0)
    made = pd.DataFrame({"age": rng.integers(20, 60, 80), "home": rng.choice(list("abcd"), 80)})
    made["ill"] = rng.choice(["x", "y"], 80)
    made.to_csv("table.csv", index=False)
    (folder / "H.toml").write_text(HIERARCHIES)
    return made


BASE = ("protect", "table.csv", "--hierarchies", "H.toml", "--sensitive", "ill")


def test_plan_is_written_and_meets_the_criteria(run, table):
    ended = run(
        *BASE, "--require", "k>=3", "--require", "nb: max csf(ill)<=0.5", "--attacker", "nb=age", "-o", "plan.toml"
    )
    assert ended.code == 0, ended.err
    assert "Plan written to plan.toml" in ended.out
    after = gpupif.treat("table.csv", "plan.toml").table
    assert gpupif.risk(after, ["age", "home"]).k >= 3


def test_a_plan_that_is_not_written_is_said_to_be_lost(run, table):
    command = (*BASE, "--require", "k>=3")
    assert "The plan was not kept. To keep it, for gpupif treat, add -o plan.toml." in run(*command).out
    assert "not kept" not in run(*command, "-o", "plan.toml").out
    assert run(*command, "--quiet").out == ""


def test_json_has_the_figures_of_python(run, table):
    ended = run(*BASE, "--require", "k>=4", "--suppress", "0.05", "--importance", "age=2", "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    found = gpupif.protect(
        "table.csv", "k>=4", hierarchies="H.toml", sensitive="ill", suppress=0.05, importance={"age": 2}
    )
    expected = json.loads(found.to_json())
    for key in ("plan", "loss", "levels", "risk", "checks", "optimal", "frontier", "suppressed_rows"):
        assert document[key] == expected[key]


def test_an_objective_is_minimised_and_said(run, table):
    ended = run(*BASE, "--require", "k>=4", "--objective", "utility(ill)")
    assert ended.code == 0, ended.err
    assert "; cost: objective utility(ill, information): " in ended.out
    found = gpupif.protect("table.csv", "k>=4", hierarchies="H.toml", sensitive="ill", objective="utility(ill)")
    document = json.loads(run(*BASE, "--require", "k>=4", "--objective", "utility(ill)", "--json").out)
    assert (document["objective"], document["loss"]) == (found.objective, found.loss)


REFUSED = [
    (("--require", "k>=3", "--objective", "los"), "--objective: there is no objective 'los'. Did you mean 'loss'?"),
    (("--require", "k>=3", "--objective", "utility(il)"), "--objective: no column 'il' in the table. Did you mean"),
    (
        ("--require", "k>=3", "--quasi-identifiers", "age", "--objective", "utility(il)"),
        "--objective: no column 'il' in the table",
    ),
    ((), "--require: expected at least one limit"),
    (("--require", "k<=3"), "k is safer if it is higher: write k>=3"),
    (
        ("--require", "k>=3", "--importance", "agee=2"),
        "--importance: column 'agee' is no quasi-identifier. Did you mean 'age'?",
    ),
    (
        ("--require", "known=age,hair: k>=3", "--quasi-identifiers", "age"),
        "--require 'known=age,hair: k>=3': no column 'hair'",
    ),
    (("--require", "k>=3", "--importance", "age"), "--importance: expected COLUMN=NUMBER"),
    (
        ("--require", "k>=3", "--importance", "age=1", "--importance", "age=2"),
        "--importance: column 'age' is named twice",
    ),
    (("--require", "k>=3", "--suppress", "4"), "--suppress: expected a share of the rows"),
    (("--require", "k>=3", "--attacker", "age"), "--attacker: expected NAME=COLUMN,COLUMN"),
    (("--require", "k>=3", "--attacker-any", "nb=age"), "--attacker-any: expected NAME=NUMBER"),
    (("--require", "k>=3", "-o", "people.csv"), "people.csv"),
    (
        ("--require", "k>=3", "--identifiers", "home", "--keep", "home"),
        "--keep: column 'home' is among --identifiers too, which the plan drops.",
    ),
    (
        ("--require", "k>=3", "--attacker", "nb=age"),
        "--attacker: 'nb': no criterion is on this attacker, who would be ignored.",
    ),
    (("--require", "k>=3", "--quasi-identifiers", "age,hair"), "--quasi-identifiers: no column 'hair'"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_mistakes_give_an_error_of_one_line(run, table, arguments, message):
    ended = run(*BASE, *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err.strip().splitlines()) == 1


def test_an_existing_plan_is_not_replaced_without_overwrite(run, table, folder):
    (folder / "plan.toml").write_text("mine")
    assert run(*BASE, "--require", "k>=3", "-o", "plan.toml").code == 2
    assert (folder / "plan.toml").read_text() == "mine"
    assert run(*BASE, "--require", "k>=3", "-o", "plan.toml", "--overwrite", "--quiet").out == ""
    assert "recode" in (folder / "plan.toml").read_text()


def test_the_command_that_follows_can_be_pasted(run, table, folder):
    table.rename(columns={"home": "my home"}).to_csv("table [1].csv", index=False)
    (folder / "r.toml").write_text(
        '[roles]\nage = "quasi-identifier"\n"my home" = "quasi-identifier"\nill = "sensitive"\n'
    )
    ended = run("protect", "table [1].csv", "--roles", "r.toml", "--require", "k>=3", "-o", "my plan.toml")
    assert ended.code == 0, ended.err
    assert "From r.toml: --quasi-identifiers 'age,my home'" in ended.out
    treat, compare = printed_commands(ended)
    assert treat == "gpupif treat 'table [1].csv' --plan 'my plan.toml' --roles r.toml -o 'table [1]_treated.csv'"
    for command in (treat, compare):
        ended = run(*shlex.split(command)[1:])
        assert ended.code == 0, ended.err
    # The names of later outputs are free too.
    ended = run("protect", "table [1].csv", "--roles", "r.toml", "--require", "k>=3", "-o", "other plan.toml")
    treat, compare = printed_commands(ended)
    assert treat.endswith("-o 'table [1]_treated_2.csv'")
    assert "'table [1]_treated_2.csv'" in compare
    assert printed_commands(run(*shlex.split(treat)[1:], "--overwrite")) == [compare]


def test_each_command_prints_the_same_next_one(run, table):
    """The plan names the quasi-identifiers and the sensitive columns, so that `compare` needs no option for them."""
    ended = run(*BASE, "--quasi-identifiers", "home", "--require", "k>=25", "-o", "plan.toml")
    treat, compare = printed_commands(ended)
    assert compare == "gpupif compare table.csv table_treated.csv --plan plan.toml"
    assert printed_commands(run(*shlex.split(treat)[1:])) == [compare]
    assert "The attacker knows home.\n" in run(*shlex.split(compare)[1:]).out
    document = json.loads(run(*shlex.split(compare)[1:], "--json").out)
    assert (document["quasi_identifiers"], document["sensitive"]) == (["home"], ["ill"])


def printed_commands(ended):
    """Return the commands that a command prints to go on with."""
    return [line.strip() for line in ended.out.split("To go on:\n")[1].splitlines()]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("t.csv", ("--sep", ";")),
        ("t.parquet", ()),
        ("t.parquet", ("--quasi-identifiers", "home", "--keep", "age")),
        ("*.parquet", ()),
        ("folder", ()),
    ],
)
def test_the_printed_commands_run_for_each_kind_of_table(run, table, folder, name, options):
    (folder / "folder").mkdir()
    table.to_csv("t.csv", sep=";", index=False)
    for place in ("t.parquet", "folder/0.parquet", "folder/1.parquet"):
        table.to_parquet(place)
    ended = run("protect", name, *BASE[2:], *options, "--require", "k>=25", "-o", "plan.toml", "--json")
    commands = json.loads(ended.out)["commands"]
    assert [command.split()[1] for command in commands] == ["treat", "compare"]
    for command in commands:
        ended = run(*shlex.split(command)[1:], "--json")
        assert ended.code == 0, ended.err
    assert json.loads(ended.out)["risk"]["k"]["after"] >= 25


def test_three_lines_say_what_the_plan_does_costs_and_leaves(run, table):
    ended = run(*BASE, "--require", "k>=3", "--require", "pif95<=100", "--suppress", "0.05", "--json")
    document = json.loads(ended.out)
    classes = gpupif.risk(table, ["age", "home"]).classes
    assert document["unique_rows_before"] == classes.uniques > 0
    assert (document["unique_rows"], document["smallest_class"]) == (0, document["risk"][0]["value"])
    asked, *lines = document["verdict"]
    assert asked == "Asked: k>=3, pif95<=100. The attacker knows age, home."
    plan, risk = (line.partition(": ") for line in lines)
    assert (plan[0], risk[0]) == ("Plan", "Risk left")
    suppressed = document["suppressed_rows"]
    assert f"; suppresses {suppressed} of 80 rows ({100 * suppressed / 80:.4g} %); cost: " in plan[2]
    assert plan[2].endswith(" % of the information in the quasi-identifiers, the least possible.")
    chance = f"no row is found with a chance above {100 / document['smallest_class']:.4g} %"
    assert risk[2].startswith(f"both criteria are met; {chance}")


def certain(frame, name):
    return int((frame.groupby(["age", "home"], observed=True)[name].transform("nunique") == 1).sum())


def test_the_verdict_names_every_attacker_and_the_risk_that_no_criterion_limits(run, table, folder):
    table.assign(people=np.arange(80) + 0.5, case=np.arange(80) % 5).to_csv("table.csv", index=False)
    known = ("--quasi-identifiers", "age,home", "--weights", "people")
    ended = run(*BASE, *known, "--require", "known=1: k>=3", "-o", "plan.toml", "--json")
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    after = gpupif.treat("table.csv", "plan.toml").table
    assert document["certain_rows_before"] == {"ill": certain(table, "ill")}
    assert document["certain_rows"] == {"ill": certain(after, "ill")}
    assert (document["singled_out"], document["unused_weights"]) == ({"people": 80}, "people")
    asked, _, left = document["verdict"]
    assert asked == "Asked: known=1: k>=3. The attacker knows any 1 of age, home."
    chance = f"a chance above {100 / document['smallest_class']:.4g} % by an attacker who knows all quasi-identifiers;"
    assert f"; no row is found with {chance} `ill` is certain in {certain(after, 'ill')} rows (" in left
    assert left.endswith("; `people` stays as it is, and 80 rows are unique by it alone.")
    loose = json.loads(run(*BASE, *known, "--require", "known=1: k>=1", "--json").out)
    unique = gpupif.risk(table, ["age", "home"]).classes.uniques
    chance = f"{unique} rows are unique, and found for sure by an attacker who knows all quasi-identifiers; "
    assert f"; {chance}`ill` is certain in " in loose["verdict"][2]
    several = ("--require", "k>=3", "--require", "nb: max csf(ill)<=0.9", "--attacker", "nb=age")
    shown = run(*BASE, *known, *several).out
    assert "The attackers know age, home (k>=3); age (nb)." in shown
    assert "No criterion uses the weights" not in shown
    assert "No criterion uses the weights `people`" in run(*BASE, *known, "--require", "k>=3").out


def test_rows_that_stay_unique_are_counted(run, table, folder):
    document = json.loads(run(*BASE, "--require", "pif95<=100", "-o", "plan.toml", "--json").out)
    classes = gpupif.risk(gpupif.treat("table.csv", "plan.toml").table, ["age", "home"]).classes
    assert (document["unique_rows"], document["smallest_class"]) == (classes.uniques, classes.k)


def test_the_frontier_is_drawn_with_the_plan_in_it(run, table):
    ended = run(*BASE, "--require", "pif95<=2")
    shown = ended.out.split("Loss against risk, of the best nodes that were checked")[1].splitlines()
    (plan,) = (line for line in shown if line.startswith("│ plan"))
    document = json.loads(run(*BASE, "--require", "pif95<=2", "--json").out)
    share = document["loss_share"]
    assert f" {100 * share:.4g} % │ {'█' * round(20 * share)} " in plan
    levels = ", ".join(f"{name} {level}" for name, level in document["levels"].items() if level)
    assert plan.split("│")[-2].strip() == levels


def test_rows_are_recoded_further_as_the_options_say(run, table):
    ended = run(*BASE, "--require", "k>=4", "--suppress", "0.4", "--local-recoding", "--json")
    document = json.loads(ended.out)
    assert document["local"]
    assert [own["do"] for own in document["plan"]["treatment"]][-1] == "recode_rows"
    refused = run(*BASE, "--require", "k>=4", "--local-recoding")
    assert refused.code == 2
    assert refused.err.startswith("gpupif: error: --local-recoding: expected with --suppress, the share of the rows")


def test_criteria_hold_within_strata(run, table):
    ended = run(*BASE, "--require", "k>=2", "--strata", "home", "-o", "plan.toml", "--json")
    document = json.loads(ended.out)
    assert document["levels"]["home"] == document["heights"]["home"] == 0
    assert document["is_met"]
    assert document["commands"][-1] == "gpupif compare table.csv table_treated.csv --plan plan.toml"
    assert "home" in document["plan"]["quasi_identifiers"]
    assert all("home" not in str(own) for own in document["plan"]["treatment"])
    refused = run(*BASE, "--require", "k>=2", "--strata", "ill")
    assert refused.err.startswith("gpupif: error: --strata: column 'ill' has another role too.")


# The command line. It says when a check of a node has been done, or a plan is measured, and waits a second.
SLOW = """
import sys, time
from gpupif.cli import main
from gpupif.protection import measured_plan, node_checks
real, measure = node_checks.NodeChecks.holds, measured_plan.measure_treated
def wait(word):
    print(word, file=sys.stderr, flush=True)
    time.sleep(1)
def holds(self, node):
    held = {find} and real(self, node)
    if held == {find}:
        wait("checked")
    return held
def measured(*given, **more):
    wait("measuring")
    return measure(*given, **more)
node_checks.NodeChecks.holds, measured_plan.measure_treated = holds, measured
main.main()
"""


def interrupted(find, *words):
    """Run the command, send SIGINT when it says each of the words. Return its exit code, and both outputs."""
    table = gpupif.datasets.census(2_000, seed=1)[["age", "sex", "region", "education"]]
    table.to_csv("table.csv", index=False)
    code = SLOW.format(find=find)
    arguments = ["protect", "table.csv", "--require", "k>=5", "-o", "plan.toml"]
    command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        said = []
        for word in words:
            while not said or said[-1] != f"{word}\n":
                said.append(process.stderr.readline())
                assert said[-1], said
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    lines = "".join([*said, err]).splitlines()
    return process.returncode, out, [line for line in lines if line.startswith("gpupif: ") and "compiling" not in line]


@pytest.mark.slow
@pytest.mark.subprocess
def test_ctrl_c_keeps_the_best_plan(folder):
    code, out, said = interrupted(True, "checked")
    assert code == 130
    assert said == [
        "gpupif: interrupted: the best plan so far is kept, and measured. Ctrl-C again keeps it unmeasured."
    ]
    assert "Ctrl-C ended the search, and another plan may lose" in " ".join(out.split())
    assert "Plan written to plan.toml" in out
    assert gpupif.risk(gpupif.treat("table.csv", "plan.toml").table, ["age", "sex", "region", "education"]).k >= 5


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("words", [("measuring",), ("checked", "measuring")])
def test_ctrl_c_while_the_plan_is_measured_keeps_the_plan(folder, words):
    code, out, said = interrupted(True, *words)
    assert code == 130
    assert said[len(words) - 1 :] == ["gpupif: interrupted: the plan is kept, but the treated table was not measured."]
    assert "Risk left: not measured, because Ctrl-C ended the measuring." in out
    assert "Plan written to plan.toml" in out
    assert gpupif.risk(gpupif.treat("table.csv", "plan.toml").table, ["age", "sex", "region", "education"]).k >= 5


@pytest.mark.slow
@pytest.mark.subprocess
def test_ctrl_c_before_a_plan_is_found_is_one_line(folder):
    code, out, said = interrupted(False, "checked")
    assert (code, out) == (130, "")
    assert said == [
        "gpupif: error: interrupted: no treatment that meets the criteria was found in 1 check; nothing was written."
    ]
    assert not (folder / "plan.toml").exists()


@pytest.mark.parametrize(("criterion", "told"), [("k>=3", False), ("max csf<=0.3", True)])
def test_the_time_of_a_long_search_is_told(run, table, monkeypatch, criterion, told):
    monkeypatch.setattr("gpupif.protection.node_search.SHORT_SEARCH", 0)
    monkeypatch.setattr("gpupif.protection.node_search.TIMED", 0)
    ended = run(*BASE, "--require", criterion)
    said = [line for line in ended.err.splitlines() if "nodes left to check" in line]
    assert len(said) == told
    assert all(re.search(r"each in about \S+ s: \S+ seconds at worst\. Ctrl-C keeps", line) for line in said)


def test_the_time_at_worst_is_in_words():
    class Said(list):
        say = list.append

    said = Said()
    tell_time(said, 1_000_000, 0.01, 600)
    tell_time(said, 1_000, 0.5, math.inf)
    tell_time(said, 100, 0.01, 600)
    assert said == [
        "the search has 1,000,000 nodes left to check, each in about 0.01 s: 3 hours at worst. It ends in 10 minutes, "
        "at the time limit, with the best plan. Ctrl-C keeps the best plan so far.",
        "the search has 1,000 nodes left to check, each in about 0.5 s: 8 minutes at worst. Ctrl-C keeps the best plan "
        "so far.",
    ]


@pytest.fixture
def named(table, folder):
    """The table with columns that name persons, and the roles of all columns."""
    made = table.assign(person_id=range(50_000, 50_080), email=[f"p{number}@example.org" for number in range(80)])
    made.to_csv("table.csv", index=False)
    roles = {"age": "quasi-identifier", "home": "quasi-identifier", "ill": "sensitive"}
    lines = [
        f'{name} = "{role}"' for name, role in (roles | dict.fromkeys(("person_id", "email"), "identifier")).items()
    ]
    (folder / "roles.toml").write_text("\n".join(["[roles]", *lines]))
    return made


WITH_ROLES = ("protect", "table.csv", "--hierarchies", "H.toml", "--roles", "roles.toml", "--require", "k>=3")


@pytest.mark.parametrize("measured", [[], ["--household", "email", "--require", "households.risk.highest<=1"]])
def test_identifiers_of_roles_are_dropped(run, named, measured):
    """Also if a measure needs them."""
    ended = run(*WITH_ROLES, *measured, "-o", "plan.toml")
    assert ended.code == 0, ended.err
    assert ended.err == ""
    assert (
        'From roles.toml: --quasi-identifiers age,home; --sensitive ill; --identifiers "person_id,email"'.replace(
            '"', ""
        )
        in ended.out
    )
    assert "drops person_id and email; cost: " in ended.out
    assert list(gpupif.treat("table.csv", "plan.toml").table) == ["age", "home", "ill"]


def test_identifiers_get_pseudonyms_or_are_kept(run, named, folder):
    ended = run(*WITH_ROLES, "--pseudonymise", "email", "-o", "plan.toml")
    assert ended.code == 0, ended.err
    assert "drops person_id; puts pseudonyms in email, by a secret key; cost: " in ended.out
    assert "To go on:\n  python -c" in ended.out
    assert "--plan plan.toml --roles roles.toml --key-file treat.key -o table_treated.csv\n" in ended.out
    gpupif.treatments.Key.new().save("treat.key")
    assert "To go on:\n  gpupif treat" in run(*WITH_ROLES, "--pseudonymise", "email", "-o", "other.toml").out
    assert run("treat", "table.csv", "--plan", "plan.toml", "-o", "out.csv").code == 2
    ended = run("treat", "table.csv", "--plan", "plan.toml", "--key-file", "treat.key", "-o", "out.csv")
    assert ended.code == 0, ended.err
    assert list(pd.read_csv("out.csv")) == ["age", "home", "ill", "email"]
    document = json.loads(run(*WITH_ROLES, "--keep", "person_id", "--json").out)
    assert document["identifiers"] == {"email": "drop", "person_id": "keep"}
    assert document["roles"]["identifiers"] == ["email"]


@pytest.mark.filterwarnings("default::gpupif.errors.IdentifierWarning")
def test_a_warning_names_columns_that_look_like_identifiers(run, named):
    ended = run(*BASE, "--quasi-identifiers", "age,home", "--require", "k>=3")
    assert ended.code == 0
    assert "columns 'person_id' (numbers of persons), 'email' (e-mail addresses) look like identifiers" in ended.err
    assert "Name in --identifiers what is to be dropped, in --pseudonymise what" in ended.err
    assert "and in --keep what may stay" in ended.err
    assert len(ended.err.strip().splitlines()) == 1
    assert run(*BASE, "--quasi-identifiers", "age,home", "--require", "k>=3", "--keep", "person_id,email").err == ""
    assert "--identifiers: no column 'emial'" in run(*BASE, "--require", "k>=3", "--identifiers", "emial").err


@pytest.mark.filterwarnings("default::gpupif.errors.IdentifierWarning")
def test_treat_warns_of_identifiers_that_stay_in_the_table(run, named, folder):
    (folder / "plan.toml").write_text('[[treatment]]\ndo = "drop"\ncolumns = ["email"]\n')
    arguments = ("treat", "table.csv", "--plan", "plan.toml", "-o", "out.csv", "--overwrite")
    ended = run(*arguments, "--roles", "roles.toml")
    assert ended.code == 0, ended.err
    assert "identifiers 'person_id' stay in the treated table" in ended.err
    assert "[[treatment]] do = 'drop', columns = ['person_id']" in ended.err
    assert run(*arguments).err == ""
    assert run(*WITH_ROLES, "-o", "plan.toml", "--overwrite").code == 0
    assert run(*arguments, "--roles", "roles.toml").err == ""
    (folder / "roles.toml").write_text('[roles]\nage = "sensitive"\n')
    assert "--roles: roles.toml: expected a role for each column" in run(*arguments, "--roles", "roles.toml").err


@pytest.mark.filterwarnings("default::gpupif.errors.IdentifierWarning")
def test_a_warning_names_a_file_index_that_looks_like_an_identifier(run, named, folder):
    named.drop(columns="person_id").set_index("email").to_parquet("i.parquet")
    plain = ("protect", "i.parquet", "--hierarchies", "H.toml", "--require", "k>=3", "--quasi-identifiers", "age,home")
    assert "column 'email' (e-mail addresses) looks like" in run(*plain).err
    document = json.loads(run("inspect", "i.parquet", "-o", "found.toml", "--json").out)
    assert document["roles"]["email"] == "identifier"
    (folder / "other_plan.toml").write_text('[[treatment]]\ndo = "drop"\ncolumns = ["home"]\n')
    treat = ("treat", "i.parquet", "-o", "out.csv", "--overwrite", "--plan")
    assert (
        "identifiers 'email' stay in the treated table" in run(*treat, "other_plan.toml", "--roles", "found.toml").err
    )
    (folder / "other.toml").write_text('[roles]\nage = "quasi-identifier"\nhome = "sensitive"\nill = "sensitive"\n')
    ended = run(*treat, "other_plan.toml", "--roles", "other.toml")
    assert "its index 'email' (e-mail addresses) looks like identifiers, and stays in the treated table" in ended.err
    assert "columns = ['email']" in ended.err
    assert run(*plain, "--identifiers", "email", "-o", "dropping.toml").err == ""
    ended = run(*treat, "dropping.toml", "--roles", "other.toml")
    assert (ended.code, ended.err) == (0, "")
    assert list(pd.read_csv("out.csv")) == ["age", "home", "ill"]


@pytest.mark.slow
@pytest.mark.filterwarnings("default::gpupif.errors.IdentifierWarning")
def test_a_cluster_drops_an_index_too(run, named):
    named.drop(columns="person_id").set_index("email").to_parquet("i.parquet")
    arguments = ("i.parquet", "--workers", "1", "--json")
    assert json.loads(run("inspect", *arguments).out)["roles"]["email"] == "identifier"
    plain = ("protect", *arguments, "--hierarchies", "H.toml", "--require", "k>=3", "--sensitive", "ill")
    assert "column 'email' (e-mail addresses) looks like" in run(*plain).err
    ended = run(*plain, "--identifiers", "email")
    assert json.loads(ended.out)["identifiers"] == {"email": "drop"}


@pytest.mark.slow
@pytest.mark.filterwarnings("default::gpupif.errors.IdentifierWarning")
def test_a_cluster_drops_identifiers_too(run, named):
    named.to_parquet("table.parquet")
    arguments = ("--quasi-identifiers", "age,home", "--identifiers", "person_id", "--require", "k>=3", "--workers", "1")
    ended = run("protect", "table.parquet", "--hierarchies", "H.toml", *arguments, "--json")
    assert json.loads(ended.out)["identifiers"] == {"person_id": "drop"}
    assert "column 'email' (e-mail addresses) looks like" in ended.err


BREAKS = pd.DataFrame(
    {"a": list("x" * 10 + "y" * 40 + "z" * 18), "S": list("ppppppppqqpppppppp" + "q" * 32 + "p" * 18)}
)
ORIGINAL = ["--sensitive", "S", "--suppress", "0.3", "--reference", "original"]


@pytest.mark.parametrize("more", [[], ["-q"], ["--json"]])
def test_what_is_not_met_is_said_first_and_nothing_goes_out(run, folder, more):
    BREAKS.to_csv("breaks.csv", index=False)
    asked = ["protect", "breaks.csv", "--require", "t(S)<=0.35", *ORIGINAL, "-o", "plan.toml", *more]
    for keep in (False, True):
        ended = run(*asked, *["--keep-unmet"] * keep)
        assert ended.code == 3
        assert ended.err.startswith("gpupif: NOT MET: --require: the treated table does not meet the criteria: 't(S)")
        assert ended.err.count("\n") == 1
        assert (folder / "plan.toml").exists() == keep
        assert ended.out.startswith({"": "NOT MET: ", "-q": "", "--json": "{"}["".join(more)])
    treat = ["treat", "breaks.csv", "--plan", "plan.toml", "-o", "out.csv", *more]
    for keep in (False, True):
        ended = run(*treat, *["--keep-unmet"] * keep)
        assert ended.code == 3
        assert ended.err.startswith("gpupif: NOT MET: --plan: ")
        assert ended.err.count("\n") == 1
        assert (folder / "out.csv").exists() == keep
    assert len(pd.read_csv("out.csv")) == 50
    ended = run("compare", "breaks.csv", "out.csv", "--plan", "plan.toml", *more)
    assert ended.code == 3
    assert ended.err == (
        "gpupif: NOT MET: --plan: plan.toml: the treated table does not meet the criteria: 't(S)<=0.35' is 0.48 in "
        "column 'S'.\n"
    )
    assert ended.out.startswith({"": "NOT MET: ", "-q": "", "--json": "{"}["".join(more)])


def test_the_record_of_a_treatment_has_the_attacker_and_the_criteria_of_the_plan(run, folder):
    pd.DataFrame({"a": list("xxxyyy"), "n": range(6)}).to_csv("six.csv", index=False)
    assert run("protect", "six.csv", "--require", "k>=3", "--quasi-identifiers", "a", "-o", "plan.toml", "-q").code == 0
    assert run("treat", "six.csv", "--plan", "plan.toml", "-o", "out.csv", "--record", "record.json", "-q").code == 0
    for plan in ("plan.toml", "record.json"):
        ended = run("compare", "six.csv", "out.csv", "--plan", plan)
        assert ended.code == 0
        assert ended.out.startswith(
            "Met by the table after: k>=3.\n6 rows, before and after treatment. The attacker knows a"
        )


@pytest.mark.parametrize(
    ("require", "said"),
    [
        ("k>=999", "no treatment meets the criteria. 'k>=999' is not even met"),
        ("distinct_l>=3", "no treatment meets the criteria. 'distinct_l>=3' is not even met"),
    ],
)
def test_a_search_that_finds_nothing_has_exit_code_3_and_says_what_came_nearest(run, folder, require, said):
    BREAKS.to_csv("breaks.csv", index=False)
    asked = ["protect", "breaks.csv", "--require", require, "--sensitive", "S", "-o", "plan.toml"]
    ended = run(*asked, "-q")
    assert (ended.code, ended.out, (folder / "plan.toml").exists()) == (3, "", False)
    assert f"gpupif: NOT MET: --require: {said}" in ended.err
    ended = run(*asked, "--keep-unmet")
    assert ended.code == 3
    assert "# NOT MET by this plan" in (folder / "plan.toml").read_text()
    assert run("treat", "breaks.csv", "--plan", "plan.toml", "-o", "out.csv").code == 3
    assert not (folder / "out.csv").exists()
    # With too little time nothing is found either.
    ended = run(*asked[:3], "k>=2", *asked[4:-2], "--time-limit", "1e-9")
    assert ended.code == 3
    assert "NOT MET: --time-limit: no treatment was found" in ended.err
    assert "To keep the plan that comes nearest, add -o plan.toml --keep-unmet." in ended.out + ended.err
