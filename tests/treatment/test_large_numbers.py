"""Numbers in plans that no column, or no float, can hold."""

from __future__ import annotations

import dataclasses
import json
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import GpupifError, InputError
from gpupif.hierarchies.open import KINDS
from gpupif.treatment.plan import TREATMENTS
from gpupif.treatment.plan_fields import types_of
from gpupif.treatments import BottomCode, Cap, Rare, Recode, Round, TopCode
from tests.helpers.command_line import assert_refused
from tests.helpers.example_plans import EXAMPLES, HIERARCHIES, KEY, example_table

NUMBERS = [10**9, 2**63, -(2**63), 2**64, 10**32, 10**400, -(10**400), 1e308, 5e-324, float("inf"), float("nan"), True]
NUMBERS += [np.float64(1e300), np.int64(2**62), Decimal(10) ** 40]
TABLE = example_table(30)
TREES = {**HIERARCHIES, "age": {"widths": [5]}}


def numeric_fields():
    """Return pairs of an example of a treatment and a field of it that may be a number."""
    for do, kind in TREATMENTS.items():
        for example in (EXAMPLES.get(do) or (lambda _: []))(kind)[:1]:
            for name, hint in types_of(kind).items():
                if any(word in str(hint) for word in ("int", "float", "Any")):
                    yield pytest.param(example, name, id=f"{do}.{name}")


def is_refused_quickly(work):
    """Return the message of the error in one line, "" without one; any other exception fails the test."""
    started, message = time.perf_counter(), ""
    try:
        work()
    except GpupifError as error:
        message = str(error)
    assert "\n" not in message
    assert time.perf_counter() - started < 3
    return message


@pytest.mark.parametrize(("example", "field"), list(numeric_fields()))
def test_every_field_takes_or_refuses_large_numbers(example, field):
    hint = str(types_of(type(example))[field])
    for number in NUMBERS:
        given = [number]
        given += [[number], [0, number]] if "Sequence" in hint or "Any" in hint else []
        given += [{"a": number}, {"age": [number]}] if "Mapping" in hint else []
        for value in given:
            others = {"level": None, "mapping": None, "edges": None} if example.do == "recode" else {}
            treatment = dataclasses.replace(example, **{**others, field: value})
            is_refused_quickly(lambda own=treatment: gpupif.treat(TABLE, gpupif.Plan([own], TREES), key=KEY))


FIELDS = {"widths": [5], "digits": 2, "first": 2, "dates": ["year"], "common": ["1", "2"], "values": {"1": ["*"]}}
MORE = {"widths": {"start": 0}, "digits": {"length": 3}, "common": {"keep": 1}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_hierarchies_takes_or_refuses_large_numbers(kind):
    for field in [kind, *MORE.get(kind, {})]:
        for number in NUMBERS:
            for value in (number, [number], {"1": [number]}):
                plan = {kind: FIELDS[kind], field: value}
                for column in ("age", "income", "zip"):
                    recode = Recode(column, level=1, unmapped="keep")
                    is_refused_quickly(lambda own={column: plan}, r=recode: gpupif.treat(TABLE, gpupif.Plan([r], own)))


def documents():
    big, huge = 10**32, 10**400
    top = {"do": "top_code", "column": "age", "limit": big}
    yield "limit", {"treatment": [top]}
    yield "huge limit", {"treatment": [{**top, "limit": huge}]}
    yield "label", {"treatment": [{**top, "limit": 5, "label": big}]}
    yield "below", {"treatment": [{"do": "rare", "column": "age", "below": huge}]}
    yield "mapping", {"treatment": [{"do": "recode", "column": "age", "mapping": {"20": huge}}]}
    for key, value in (("digits", 10**9), ("digits", [huge]), ("first", huge), ("widths", [huge])):
        recode = {"do": "recode", "column": "age", "level": 1}
        yield f"{key} {value!r:.12}", {"hierarchies": {"age": {key: value}}, "treatment": [recode]}


@pytest.mark.parametrize("ending", ["json", "toml"])
@pytest.mark.parametrize("document", [pytest.param(own, id=name) for name, own in documents()])
def test_documents_with_large_numbers_are_one_line_and_exit_code_2(run, tmp_path, document, ending):
    TABLE.to_parquet(tmp_path / "t.parquet")
    plan = tmp_path / f"plan.{ending}"
    text = json.dumps(document)
    if ending == "toml":
        hierarchies = "".join(f'"{name}" = {inline(own)}\n' for name, own in document.get("hierarchies", {}).items())
        keys = "".join(f"{key} = {inline(own)}\n" for key, own in document["treatment"][0].items())
        text = f"[hierarchies]\n{hierarchies}[[treatment]]\n{keys}"
    plan.write_text(text)
    assert_refused(run("treat", tmp_path / "t.parquet", "--plan", plan, "-o", tmp_path / "out.parquet"), ["age"])
    assert not (tmp_path / "out.parquet").exists()


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {inline(own)}' for key, own in value.items()) + "}"
    return json.dumps(value)


def test_a_document_with_a_number_of_thousands_of_digits_says_so(tmp_path):
    for ending, text in (("json", '{"treatment": %s}'), ("toml", "treatment = %s")):
        (tmp_path / f"plan.{ending}").write_text(text % ("1" * 5000))
        with pytest.raises(InputError, match="a number has thousands of digits"):
            gpupif.Plan.load(tmp_path / f"plan.{ending}")


@pytest.mark.parametrize("treatment", [TopCode("a", 10**32), Cap("a", label=-(10**32)), Rare("a", 9, 1e32)])
def test_whole_numbers_do_not_become_floats_for_a_label_they_cannot_hold(treatment):
    with pytest.raises(InputError, match=r"column 'a': expected new numbers that fit into 64 bits, .*1.*\. Take a"):
        gpupif.treat(pd.DataFrame({"a": [1, 2, 2**62 + 1]}), [treatment])


def test_the_largest_numbers_of_each_type_are_exact():
    table = pa.table({"u": pa.array([3, 2**64 - 1], pa.uint64()), "f": [1e300, 1.0], "i": [-(2**63), 2**63 - 1]})
    plan = [TopCode("u", 2**63 + 1), TopCode("f", 10**32), BottomCode("i", -(2**63) + 1), Round("f", 5e-1)]
    done = gpupif.treat(table, plan).table
    assert done.to_pydict() == {"u": [3, 2**63 + 1], "f": [1e32, 1.0], "i": [-(2**63) + 1, 2**63 - 1]}
    assert gpupif.treat(table, [TopCode("i", np.float64(1e3))]).table["i"].to_pylist() == [-(2**63), 1000]


@pytest.mark.parametrize("typed", ["compare people.csv --linkage {}", "score --attacker-any a={}"])
def test_numbers_of_thousands_of_digits_in_the_command_line_are_one_line(run, typed):
    command, *others = typed.format("1" * 5000).split()
    assert_refused(run(command, "people.csv", *others), ["111"])
