"""Hierarchies in files: ARX's CSV, JSON, and tables of hierarchies by column."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import InputError
from gpupif.hierarchies.open import open_hierarchies, open_hierarchy

AGES = "17;0-19;0-39;*\n39;20-39;0-39;*\n50;40-59;40-79;*\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "age.csv").write_text(AGES)
    (tmp_path / "sex.json").write_text('{"F": "*", "M": "*"}')
    (tmp_path / "H.toml").write_text(
        '[hierarchies]\nage = "age.csv"\nsex = "sex.json"\nincome = { widths = [1000, 5000] }\n"a b" = { digits = 2 }\n'
        'town = { A = ["x"], B = ["y"] }\n'
    )
    return tmp_path


def test_arx_files_match_values_by_their_texts(folder):
    for given in (folder / "age.csv", str(folder / "age.csv")):
        hierarchy = open_hierarchy("age", given)
        assert hierarchy.height == 3
        for values in ([39, 17], [39.0, 17.0], ["39", "17"]):
            assert hierarchy.groups(pa.array(values), 1).to_pylist() == ["20-39", "0-19"]


def test_a_file_serves_as_hierarchy_and_as_distance(folder):
    frame = pd.DataFrame({"age": [17, 39, 50, 39], "x": [1, 1, 2, 2]})
    own = {17: ["0-19", "0-39", "*"], 39: ["20-39", "0-39", "*"], 50: ["40-59", "40-79", "*"]}
    assert open_hierarchy("age", own) == open_hierarchy("age", folder / "age.csv")
    by_file, by_dictionary = (
        gpupif.score(frame, "emd", columns=["age"], known=["x"], distances={"age": distance}).array("emd")
        for distance in (folder / "age.csv", own)
    )
    np.testing.assert_allclose(by_file, by_dictionary, rtol=1e-14)


def test_the_top_is_added_if_it_is_lacking(folder):
    assert open_hierarchy("sex", folder / "sex.json").height == 1
    assert open_hierarchy("t", {"A": ["x"], "B": ["x"]}).height == 1
    assert open_hierarchy("t", {"A": "x", "B": "*"}).height == 2


def test_lines_of_a_file_for_missing_values_are_left_out(tmp_path):
    (tmp_path / "h.csv").write_text("1;low;*\n2;low;*\nNULL;unknown;*\n")
    assert open_hierarchy("x", {1: ["low"], None: ["unknown"]}).height == 2
    assert open_hierarchy("x", tmp_path / "h.csv").groups(pa.array([1.0, 2.0]), 1).to_pylist() == ["low", "low"]


def test_hierarchies_of_columns_are_read_from_their_files(folder, monkeypatch):
    found = gpupif.read_hierarchies(folder / "H.toml")
    assert {name: one.height for name, one in found.items()} == {"age": 3, "sex": 1, "income": 3, "a b": 3, "town": 2}
    assert open_hierarchies(str(folder / "H.toml")) == found
    monkeypatch.chdir(folder)
    assert gpupif.read_hierarchies("H.toml") == found
    assert open_hierarchies({"age": "age.csv"})["age"] == found["age"]


@pytest.mark.parametrize("ending", ["json", "yaml", "yml"])
def test_hierarchies_are_read_from_json_and_yaml(tmp_path, ending):
    # JSON is YAML.
    (tmp_path / f"h.{ending}").write_text(json.dumps({"hierarchies": {"age": {"widths": [5, 10]}}}))
    assert gpupif.read_hierarchies(tmp_path / f"h.{ending}") == open_hierarchies({"age": {"widths": [5, 10]}})


def test_hierarchies_are_read_from_a_plan(tmp_path):
    plan = gpupif.Plan([], {"age": {"widths": [5]}})
    plan.save(tmp_path / "plan.toml")
    assert gpupif.read_hierarchies(tmp_path / "plan.toml") == plan.hierarchies


def test_no_hierarchies_are_opened_from_none():
    assert open_hierarchies(None) == {}


BAD = {
    "H.toml": ("age = { widths = [5] }\n", r"H.toml: expected a table \[hierarchies\]"),
    "more.toml": ("more = 1\n[hierarchies]\n", r"expected nothing beside \[hierarchies\], got 'more'"),
    "h.toml": ("[hierarchies\n", "expected TOML, got what is none"),
    "h.json": ('{"hierarchies": 1, "hierarchies": 2}', "'hierarchies' stands there twice"),
    "h.yaml": ("a: [", "expected YAML, got what is none"),
    "list.yaml": ("- a\n", "expected keys and their values"),
    "h.txt": ("", "expected a name ending in .toml, .json, .yaml, .yml"),
    "b.toml": (b"\xff", "expected TOML in UTF-8"),
    "deep.toml": ("a = " + "[" * 10_000, "expected TOML, got what is none"),
    "deep.json": ("[" * 100_000, "expected JSON, got what is none"),
    "order.toml": ('[hierarchies]\nx = "order.json"\n', "expected a hierarchy, .* got a list of values in order"),
    "levels.toml": ('[hierarchies]\nx = "levels.csv"\n', "column 'x': the hierarchy in .*levels.csv is no tree"),
    "number.toml": ("[hierarchies]\nx = 5\n", r"column 'x': expected \{ widths"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_hierarchy_files_are_refused(tmp_path, name):
    text, words = BAD[name]
    (tmp_path / "order.json").write_text('["a", "b"]')
    (tmp_path / "levels.csv").write_text("a;x;p;*\nb;x;q;*\n")
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=words):
        gpupif.read_hierarchies(tmp_path / name)


def test_a_missing_hierarchy_file_is_an_error():
    with pytest.raises(InputError, match=r"hierarchies: no\.toml: could not be read: No such file"):
        gpupif.read_hierarchies("no.toml")
    with pytest.raises(InputError, match="expected a dictionary by column, or the path"):
        open_hierarchies([1])
