"""Where a public function takes a list of column names it takes a single name too, which means the list of it alone."""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path

import pandas as pd
import pytest

import gpupif
from gpupif.results.scores import Scores
from gpupif.treatment.treatment import Treatment
from tests.helpers.public_names import public_names

KEY = bytes(range(32))
TABLE = pd.DataFrame(
    {
        "religion": ["a", "a", "b", "b", "c", "c", "a", "b"],
        "sex": ["f", "m"] * 4,
        "born": pd.date_range("2000-01-01", periods=8),
        "home": ["n", "n", "n", "n", "s", "s", "s", "s"],
        "age": [31, 45, 28, 60, 52, 39, 44, 71],
    }
)
# By function: what it is given beside.
WITH = {
    "score": {"known": ["sex", "home"]},
    "score_files": {"known": ["sex", "home"]},
    "risk": {"quasi_identifiers": ["sex", "home"]},
    "compare": {"after": TABLE.assign(sex="f"), "quasi_identifiers": ["sex", "home"]},
    "protect": {"require": "k>=2", "quasi_identifiers": ["sex", "home"], "suppress": 0.5},
    "advise": {},
    "global_risk": {"sampling_fraction": 0.5},
    "household_risk": {"household": "home"},
    "conditional_entropy": {"columns": ["sex"], "given": ["home"]},
    "suda": {"max_size": 1},
    "AnyKnown": {"known": 1},
    "Suppress": {"columns": ["sex", "religion"], "k": 2},
    "SuppressRows": {"quasi_identifiers": ["sex", "home"], "where": "class_size < 3"},
    "Swap": {"columns": ["sex"], "within": ["home"], "share": 1.0},
    "ShiftDates": {"columns": ["born"], "person": "home", "days": 3},
    "MicroaggregateTogether": {"columns": ["age"], "k": 2},
    "CorrelatedNoise": {"columns": ["age"], "variance": 0.5},
    "RankSwap": {"columns": ["age"], "reach": 0.5},
    "Shuffle": {"columns": ["age"], "given": ["born"]},
    "mutual_information": {"a": ["sex"], "b": ["home"]},
}
# By function and argument: what it is given in place of that.
INSTEAD = {
    ("tables", "record_id"): {"by": ["sex"], "method": "cell-key", "key": KEY},
    ("advise", "sensitive"): {"quasi_identifiers": ["sex", "home"]},
    ("Suppress", "sensitive"): {"columns": ["sex", "home"], "require": ["k>=2", "distinct_l(religion)>=2"]},
    ("Suppress", "known"): {"columns": ["sex", "home"], "where": "csf > 0.1"},
    ("RecodeRows", "sensitive"): {"levels": {"sex": [0], "home": [0]}, "require": ["distinct_l(religion)>=2"]},
    ("SuppressRows", "sensitive"): {"quasi_identifiers": ["sex", "home"], "require": ["distinct_l(religion)>=2"]},
    ("SuppressRows", "known"): {"where": "csf > 0.1", "columns": ["sex"]},
}
# By function and argument: the column that is named, where it may not be a text.
COLUMN = {
    ("ShiftDates", "columns"): "born",
    ("compare", "numbers"): "age",
    ("Shuffle", "given"): "born",
    **{(name, "columns"): "age" for name in ("MicroaggregateTogether", "CorrelatedNoise", "RankSwap", "Shuffle")},
}
# One column alone, or this one, is refused, whichever way it is given.
REFUSED = {("toxic_pairs", "columns"), ("DeclaredColumns", "columns"), ("audit_table", "by"), ("tables", "record_id")}


def functions():
    """All public functions, and all treatments and attackers, by name."""
    public = {name.rpartition(".")[2]: one for name, one in public_names().items() if not name.startswith("errors.")}
    public |= {f"piflib.{name}": one for name, one in vars(gpupif.piflib.entropy).items() if not name.startswith("_")}
    return {
        name: one for name, one in public.items() if is_function(one) or is_treatment(one) or one is gpupif.AnyKnown
    }


def is_function(one):
    return inspect.isfunction(one) and one.__module__.startswith("gpupif") and "encod" not in one.__module__


def is_treatment(one):
    return inspect.isclass(one) and issubclass(one, Treatment)


def takes_columns(function, argument, annotation):
    if is_treatment(function) and argument == "known":
        return True
    several = ("Columns", "Knowledge", "Sequence[Hashable]")
    return (
        not annotation.startswith("Mapping")
        and "Sequence[Sequence" not in annotation
        and any(kind in annotation for kind in several)
    )


CASES = [
    (name, argument)
    for name, one in functions().items()
    for argument, parameter in inspect.signature(one).parameters.items()
    if takes_columns(one, argument, str(parameter.annotation))
]


def outcome(function, arguments, folder):
    """What comes of a call, to be compared, or the error that it ends with."""
    try:
        if is_treatment(function):
            return gpupif.treat(TABLE, [function(**arguments)], key=KEY).table.to_csv()
        if function is gpupif.AnyKnown:
            return function(**arguments)
        if function is gpupif.score_files:
            TABLE.to_parquet(folder / "t.parquet")
            arguments = {"source": folder / "t.parquet", "output": folder / "s.parquet", "overwrite": True, **arguments}
            found = function(**arguments)
        else:
            first = next(iter(inspect.signature(function).parameters))
            found = function(**{first: TABLE, **arguments})
    except gpupif.InputError as error:
        return str(error)
    if isinstance(found, Scores):
        return found.top(len(TABLE) * 3).to_csv()
    if isinstance(found, int | float | dict | gpupif.results.AlphaK):
        return found
    document = found.summary().to_dict() if hasattr(found, "summary") else found.to_dict()
    return json.dumps({key: value for key, value in document.items() if key != "seconds"}, default=str)


def arguments_of(name, argument):
    function = functions()[name]
    needed = {
        other
        for other, one in list(inspect.signature(function).parameters.items())[not is_treatment(function) :]
        if one.default is inspect.Parameter.empty and one.kind is not inspect.Parameter.VAR_KEYWORD
    }
    every = {
        "quasi_identifiers": ["sex"],
        "sensitive": ["home"],
        "rvs_X": ["sex"],
        "rvs_Y": ["home"],
        "l": 2,
        "by": ["sex"],
    }
    given = {other: every[other] for other in needed if other in every} | WITH.get(name, {})
    return INSTEAD.get((name, argument), given)


def test_arguments_for_columns_are_found():
    for case in (("score", "known"), ("risk", "sensitive"), ("protect", "quasi_identifiers"), ("Drop", "columns")):
        assert case in CASES


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "argument"), CASES)
def test_a_single_name_is_taken_as_a_list_of_one(name, argument, tmp_path):
    function = functions()[name]
    column = COLUMN.get((name, argument), "religion")
    given = arguments_of(name, argument)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, listed = (outcome(function, {**given, argument: one}, tmp_path) for one in (column, [column]))
        unknown = outcome(function, {**given, argument: "relig"}, tmp_path)
    assert alone == listed
    assert alone != unknown
    if function is not gpupif.AnyKnown:
        assert "no column 'relig'" in unknown
        assert ("expected" in alone if isinstance(alone, str) else False) == ((name, argument) in REFUSED)


ATTACKED = {
    "score": lambda known: gpupif.score(TABLE, columns="sex", attackers={"a": known}).top(8).to_csv(),
    "score_files": lambda known: outcome(gpupif.score_files, {"columns": "sex", "attackers": {"a": known}}, Path()),
    "advise": lambda known: outcome(
        gpupif.advise, {"quasi_identifiers": ["sex", "home"], "criterion": "a: k", "attackers": {"a": known}}, None
    ),
    "protect": lambda known: outcome(
        gpupif.protect,
        {"require": "a: k>=2", "quasi_identifiers": ["sex", "religion"], "attackers": {"a": known}},
        None,
    ),
    "Suppress": lambda known: outcome(
        gpupif.treatments.Suppress,
        {"columns": ["sex", "religion"], "require": ["a: k>=2"], "attackers": {"a": known}},
        None,
    ),
    "SuppressRows": lambda known: outcome(
        gpupif.treatments.SuppressRows,
        {"columns": ["sex"], "where": "a_csf > 0.1", "attackers": {"a": known}},
        None,
    ),
}


@pytest.mark.parametrize("ask", ATTACKED.values(), ids=ATTACKED)
def test_a_single_known_column_of_an_attacker_is_taken_as_a_list(ask, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone, listed, two = ask("religion"), ask(["religion"]), ask(["religion", "home"])
    assert alone == listed
    assert "expected" not in alone
    assert alone != two
