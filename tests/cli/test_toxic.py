"""`gpupif toxic`."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.every_engine


def test_the_command_finds_toxic_pairs_as_text_and_json(folder, run):
    told = run("toxic", "people.csv")
    assert (told.code, told.err) == (0, "")
    assert "age + sex" in told.out
    told = run("toxic", "people.csv", "--json", "--size", "3", "--columns", "sex,age,a=b", "--top", "2")
    document = json.loads(told.out)
    assert (told.code, document["input"], document["rows"], len(document["values"])) == (0, "people.csv", 5, 2)
    assert document["triples"][0]["column_1"] == "sex"
    streamed = json.loads(run("toxic", "people.csv", "--json", "--memory-limit", "16GiB").out)
    whole = json.loads(run("toxic", "people.csv", "--json").out)
    assert streamed | {"seconds": 0} == whole | {"seconds": 0}
    assert json.loads(run("toxic", "people.csv", "--json", "--device", "cpu").out)["device"] == "cpu"
    assert run("toxic", "people.csv", "-q").out == ""
    (folder / "odd.csv").write_text("a/b\n1/2\n1/3\n")
    for more in ((), ("--memory-limit", "16GiB")):
        told = run("toxic", "odd.csv", "--sep", "/", "--json", *more)
        assert json.loads(told.out)["columns"] == ["a", "b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], "none.csv: no such file"),
        (["people.csv", "--size", "5"], "--size: expected 2"),
        (["people.csv", "--size", "0"], "--size: expected 2"),
        (["people.csv", "--top", "0"], "--top: expected"),
        (["people.csv", "--columns", "age"], "--columns: expected at least 2 columns"),
        (["people.csv", "--columns", "age,job"], "no column 'job'"),
        (["people.csv", "--missing", "error"], "missing value"),
        (["people.csv", "--device", "gpu"], "--device: expected one of auto, cpu, cuda"),
        (["people.csv", "--memory-limit", "1MB"], "--memory-limit: expected at least"),
    ],
)
def test_bad_arguments_are_refused(folder, run, arguments, words):
    told = run("toxic", *arguments)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert told.err.startswith("gpupif: error: ")
    assert told.err.count("\n") == 1


def test_quasi_identifiers_of_a_roles_file_are_searched(folder, run):
    """Sampling weights do not count in how rows are told apart."""
    (folder / "t.csv").write_text("sex,job,w\nf,cook,2\nf,nurse,3\nm,cook,4\nm,cook,5\n")
    (folder / "r.toml").write_text('[roles]\nsex = "quasi-identifier"\njob = "quasi-identifier"\nw = "weight"\n')
    told = run("toxic", "t.csv", "--roles", "r.toml", "--alpha", "0.75", "--json")
    document = json.loads(told.out)
    assert (told.code, document["columns"], document["rows"]) == (0, ["sex", "job"], 4)
    assert document["sets"] == [{"columns": ["sex", "job"], "size": 2, "distinction": 0.75, "separation": 5 / 6}]
    told = run("toxic", "t.csv", "--roles", "r.toml", "--json")
    assert json.loads(told.out)["people"] == 14
