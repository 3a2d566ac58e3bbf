"""Hierarchies in CSV files as ARX writes them, and in JSON, give the results of dictionaries."""

from __future__ import annotations

import csv
import datetime
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.attack.hierarchy_files import read_distance
from gpupif.errors import InputError
from tests.helpers.tables import SHARED_FIXTURES

CITIES = {
    "Berlin": ["Germany", "Europe", "*"],
    "Bonn, old": ["Germany", "Europe", "*"],
    'the "Ville"': ["France", "Europe", "*"],
    "Ōsaka;港": ["Japan", "Asia", "*"],
}
FRAME = pd.DataFrame({"city": [*CITIES, "Berlin", "Berlin"], "x": [1, 1, 2, 2, 2, 1]})


def as_csv(tree, separator=";", **how):
    out = io.StringIO()
    csv.writer(out, delimiter=separator, **how).writerows([value, *names] for value, names in tree.items())
    return out.getvalue()


def scored(table, distance, column="city"):
    return (
        gpupif.score(table, "emd", columns=[column], known=["x"], distances={column: distance}).array("emd").tobytes()
    )


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize(
    ("quoting", "ending", "encoding"),
    [(csv.QUOTE_MINIMAL, "\n", "utf-8"), (csv.QUOTE_ALL, "\r\n", "utf-8-sig"), (csv.QUOTE_NONNUMERIC, "\r", "utf-8")],
)
def test_any_separator_quoting_and_encoding_of_a_file_is_read(tmp_path, separator, quoting, ending, encoding):
    file = tmp_path / "cities.CSV"
    file.write_bytes(as_csv(CITIES, separator, quoting=quoting, lineterminator=ending).encode(encoding))
    found = read_distance("distances", file)
    assert (found, found.file) == (CITIES, file)
    wanted = scored(FRAME, CITIES)
    assert scored(FRAME, file) == scored(FRAME, str(file)) == wanted


def test_a_json_file_is_read_by_its_path(tmp_path):
    tree, order = tmp_path / "tree.json", tmp_path / "order.json"
    tree.write_text(json.dumps(CITIES))
    order.write_text(json.dumps(list(CITIES)), encoding="utf-8-sig")
    assert scored(FRAME, str(tree)) == scored(FRAME, CITIES)
    assert scored(FRAME, order) == scored(FRAME, list(CITIES))


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(lambda name: name != "*")


@pytest.mark.slow
@given(
    paths=st.dictionaries(names, st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=1, max_size=12),
    separator=st.sampled_from(";\t|,"),
)
@settings(SHARED_FIXTURES, max_examples=25)
def test_a_written_hierarchy_is_read_back(tmp_path_factory, paths, separator):
    tree = {value: [f"n{narrow}", f"w{narrow % 3}", "*"] for value, (narrow, _) in paths.items()}
    file = tmp_path_factory.mktemp("h") / "h.csv"
    # All in quotes, so that the separator is the only one that the first line has.
    file.write_bytes(as_csv(tree, separator, quoting=csv.QUOTE_ALL).encode())
    assert read_distance("distances", file) == tree


NUMBERS = {"1": ["low"], "2.0": ["low"], "30": ["high"], "NULL": ["unknown"], "77": ["high"]}
DAYS = {"2001-05-17": ["spring"], "2001-05-18": ["spring"], "2001-11-02": ["autumn"]}


@pytest.mark.parametrize(
    ("values", "texts", "tree"),
    [
        (
            pd.Series([1, 2, 30, None, 1]),
            NUMBERS,
            {1.0: ["low"], 2.0: ["low"], 30.0: ["high"], None: ["unknown"], 77.0: ["high"]},
        ),
        (pd.Series([1, 2, 30]), {**NUMBERS, "2": ["low"]}, {1: ["low"], 2: ["low"], 30: ["high"], 9: ["unknown"]}),
        (pd.to_datetime(pd.Series(list(DAYS))), DAYS, {pd.Timestamp(day): names for day, names in DAYS.items()}),
        (
            pd.Series([datetime.date.fromisoformat(day) for day in DAYS]),
            DAYS,
            {datetime.date.fromisoformat(day): names for day, names in DAYS.items()},
        ),
        (pd.Series([True, False, True]), {"true": ["x"], "false": ["y"]}, {True: ["x"], False: ["y"]}),
        (pd.Series(["1", None, "01"]), {"1": ["x"], "": ["y"], "01": ["y"]}, {"1": ["x"], None: ["y"], "01": ["y"]}),
    ],
    ids=["numbers", "whole numbers", "times", "dates", "booleans", "texts"],
)
def test_texts_of_a_hierarchy_file_match_values_of_the_column(tmp_path, values, texts, tree):
    file = tmp_path / "h.csv"
    file.write_text(as_csv(texts))
    frame = pd.DataFrame({"v": values, "x": np.arange(len(values)) % 2})
    found, wanted = (np.frombuffer(scored(frame, distance, "v")) for distance in (file, tree))
    # Sums over names that no row has are of another order.
    np.testing.assert_allclose(found, wanted, rtol=1e-14)


BAD = {
    "empty": ("", "expected a line for each value .*, got none"),
    "one name alone": ("Berlin\nBonn\n", "line 1: expected a value and what it is part of.*got 'Berlin' alone"),
    "ragged": ("a;x;*\n\nb;*\n", r"line 3: expected 3 fields as in line 1, got 2 \('b'"),
    "empty name": ("a;x;\nb;x;\n", r"line 1: expected names of what 'a' is part of, got an empty one \(field 3\)"),
    "header": ("value;one;all\na;x;*\nb;y;*\n", r"line 1: expected '\*' at the end as in other lines, got 'all'"),
    "twice": ("a;x;*\nb;x;*\na;y;*\n", "line 3: 'a' is part of something else than in line 1"),
    "open quote": ('a;x;*\n"b;x;*\n', "line 2: expected fields separated by ';'"),
    "bytes": (b"M\xfcnchen;x\n", "expected text in UTF-8"),
    "no tree": ("a;x;one;*\nb;x;two;*\n", r"hierarchy in .*h.csv is no tree: 'x' is part of 'two' and of 'one'"),
    "lacks": ("a;x;*\n", r"column 'city': the hierarchy in .*h.csv lacks 'b'\. Add it"),
    "texts of one value": ("a;x;*\nb;y;*\nNULL;x;*\n;y;*\n", "'' and 'NULL' are one value there"),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_bad_hierarchy_files_are_refused(tmp_path, text, words):
    file = tmp_path / "h.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    frame = pd.DataFrame({"city": ["a", "b", None if "NULL" in str(text) else "a"], "x": 1})
    with pytest.raises(InputError, match=words) as caught:
        scored(frame, file)
    assert "h.csv" in str(caught.value)
    assert str(caught.value).startswith("distances: ")


def test_missing_and_malformed_hierarchy_files_are_refused(tmp_path):
    (tmp_path / "t.json").write_text('{"a": ["x"], "a": ["y"]}')
    (tmp_path / "n.json").write_text("3")
    for file, words in (
        ("no.csv", r"distances: no\.csv: No such file"),
        (tmp_path / "h.xlsx", r"expected a \.csv file with a hierarchy.*\.json"),
        (tmp_path / "t.json", "'a' occurs twice"),
        (tmp_path / "n.json", "expected a list of values in order, or a hierarchy; got 3"),
        ("h.xlsx", r"expected 'nominal'.*a \.csv or \.json file"),
    ):
        with pytest.raises(InputError, match=words):
            scored(FRAME, file)


def test_risk_takes_a_distance_from_a_file(tmp_path):
    """A single sensitive attribute needs a path only, several need names. Wrong names are refused."""
    file = tmp_path / "cities.csv"
    file.write_text(as_csv(CITIES), encoding="utf-8")
    wanted = gpupif.models.t_closeness(FRAME, "x", "city", distance=CITIES)
    assert 0 < gpupif.models.t_closeness(FRAME, "x", "city", distance=file) == wanted
    assert gpupif.models.t_closeness(FRAME, "x", "city", distance={"city": str(file)}) == wanted
    with pytest.raises(InputError, match=r"distance: expected distances of sensitive attributes .*got 'town'"):
        gpupif.models.t_closeness(FRAME, "x", "city", distance={"town": file})
    with pytest.raises(InputError, match=r"distance: .*no\.csv: No such file"):
        gpupif.models.t_closeness(FRAME, "x", "city", distance=Path("no.csv"))


@pytest.mark.every_engine
def test_every_way_to_score_reads_the_hierarchy_file(way, tmp_path):
    """A file is read once."""
    file = tmp_path / "cities.csv"
    file.write_text(as_csv(CITIES), encoding="utf-8")
    options = {"columns": ["city"], "known": ["x"], "distances": {"city": str(file)}}
    found = way.score(FRAME, ["emd"], **options)
    assert found.frame["emd_city"].to_numpy().tobytes() == scored(FRAME, CITIES)


def test_the_command_line_takes_a_distance_from_a_file(folder, run):
    (folder / "sex.csv").write_text("f;*\nm;*\n;*\n")
    (folder / "order.json").write_text('["f", "m"]')
    told = run("score", "people.csv", "-o", "out.parquet", "--measures", "emd", "--distance", "sex=sex.csv")
    assert (told.code, told.err) == (0, "")
    told = run("score", "people.csv", "-o", "out.parquet", "--distance", "sex=sex.xlsx")
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert "--distance: column 'sex': expected ordered, nominal, a .csv file" in told.err
    told = run("score", "people.csv", "-o", "out.parquet", "--distance", "sex=none.csv")
    assert "--distance: none.csv: No such file" in told.err
