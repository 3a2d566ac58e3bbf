"""Local recoding: rows that the best node suppresses are recoded further, in rounds, by their definition."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import gpupif
from gpupif.errors import InputError
from tests.helpers import naive_protection as naive
from tests.helpers.class_criteria import CRITERIA, NAMES, example
from tests.helpers.naive_turns import left_rows, named_attackers, with_gaps


def kept_at(rows, whole, hierarchies, node, criteria, weighted, matching):
    """The numbers of the rows that stay at a node, whoever attacks, and the groups of all rows. rows: by number."""
    groups = dict(zip(rows, naive.treated(rows.values(), hierarchies, node), strict=True))
    left = left_rows(groups.values(), criteria, weighted, matching, whole)
    return [row["row"] for row in left], groups


def bits(whole, hierarchies, node):
    """By column and value, the bits that a cell loses at a node: of all rows, how many have its group and its value."""
    lost = {}
    after = naive.treated(whole, hierarchies, node)
    for name in NAMES:
        values, groups = Counter(row[name] for row in whole), Counter(row[name] for row in after)
        lost[name] = {
            old[name]: math.log2(groups[new[name]] / values[old[name]]) for old, new in zip(whole, after, strict=True)
        }
    return lost


def rounds_slowly(whole, hierarchies, first, criteria, importance, weighted, matching):
    """Each round by definition: all nodes tried with the rows that are left.

    Returns the node, rows and bits of each round, and each row at the end, None for suppressed rows.
    """
    left, final, rounds = dict(enumerate(whole)), [None] * len(whole), []
    top = bits(whole, hierarchies, [len(next(iter(own.values()))) for own in hierarchies.values()])

    def recode(node):
        kept, groups = kept_at(left, whole, hierarchies, node, criteria, weighted, matching)
        for number in kept:
            final[number] = {**groups[number]}
            del left[number]

    recode(first)
    while left:
        found = []
        for node in naive.nodes(hierarchies):
            kept, _ = kept_at(left, whole, hierarchies, node, criteria, weighted, matching)
            here = bits(whole, hierarchies, node)

            def lost(number, kept=frozenset(kept), here=here):
                own = here if number in kept else top
                return math.fsum(importance.get(name, 1) * own[name][left[number][name]] for name in NAMES)

            if kept:
                plain = math.fsum(here[name][left[number][name]] for number in kept for name in NAMES)
                found.append((math.fsum(map(lost, left)), node, len(kept), plain))
        if not found:
            break
        least = min(found)[0]
        _, node, rows, plain = min((own for own in found if own[0] <= least * (1 + 1e-12)), key=lambda own: own[1])
        rounds.append((node, rows, pytest.approx(plain, rel=1e-12)))
        recode(node)
    return rounds, final


def check(seed, criteria, share, weighted=False, matching=False):
    table, hierarchies = example(seed)
    rng = np.random.default_rng(seed + 1000)
    table["zip"], table["w"] = rng.choice([1, 2, 3], len(table)), rng.choice([0, 1, 2, 5], len(table))
    importance = {"a": 2.0} if seed % 2 else {}
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    if matching:
        with_gaps(table, hierarchies, seed)
    arguments = {
        "hierarchies": given,
        "quasi_identifiers": NAMES,
        "sensitive": "ill",
        "attackers": named_attackers(criteria),
        "weights": "w" if weighted else None,
        "suppress": share,
        "importance": importance,
        "missing": "wildcard" if matching else "category",
    }
    found = gpupif.protect(table, criteria, local=True, **arguments)
    without = gpupif.protect(table, criteria, **arguments)
    rows = [{**row, "row": number} for number, row in enumerate(table.to_dict("records"))]
    rounds, final = rounds_slowly(
        rows, hierarchies, tuple(found.levels.values()), criteria, importance, weighted, matching
    )
    assert (found.levels, found.loss) == (without.levels, without.loss)
    left = [row for row in final if row]
    # Classes of two rounds may join, and are compared with the rows that are left.
    breaks = len(left_rows(left, criteria, weighted, matching)) < len(left)
    if breaks or len(rows) - len(left) > math.floor(share * len(rows) + 1e-9):
        assert found.local_unreached == bool(rounds)
        assert (found.local, found.suppressed_rows, found.is_met) == ((), without.suppressed_rows, True)
        return 0
    assert [(tuple(own.levels.values()), own.rows, own.loss) for own in found.local] == rounds
    assert found.suppressed_rows == final.count(None)
    numbers = [number for number, row in enumerate(final) if row]
    left = gpupif.treat(table, found.plan).table.assign(row=numbers)
    left = left.astype(object).where(left.notna(), None)
    assert left.to_dict("records") == [row for row in final if row is not None]
    assert all(value.is_met for value in found.searched)
    assert found.is_met
    assert [type(own).__name__ for own in found.plan.treatments].count("RecodeRows") == bool(rounds)
    return len(rounds)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("seed", "share"), [(0, 0.5), pytest.param(1, 0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("criteria", CRITERIA, ids=" and ".join)
def test_each_round_takes_the_best_node_for_the_rows_that_are_left(criteria, share, seed):
    # No class of these tables has exactly this value of t, on which rounding would decide.
    check(seed, [own.replace("t<=0.35", "t<=0.351") for own in criteria], share)


OTHERS = [
    ["known=a,b,c: k>=2", "known=2: k>=5"],
    ["neighbour: k>=3", "k>=2"],
    ["k>=2", "known=a,b: distinct_l>=3"],
    ["known=2: distinct_l>=3", "known=b: k>=20"],
    ["neighbour: distinct_l>=2", "known=c: basic_beta<=0.7"],
    ["anyone: k>=4", "t<=0.55"],
]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("criteria", [*OTHERS, ["k>=3", "t<=0.451"], ["entropy_l>=1.9"]], ids=" and ".join)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_rows_are_recoded_further_by_weights_and_against_any_attacker(criteria, seed):
    of_values = any("k>" not in own for own in criteria)
    check(seed, criteria, 0.4, weighted=of_values)
    if of_values and seed:
        check(seed, criteria, 0.4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criteria", [["known=2: k>=5", "k>=3"], ["k>=4"]], ids=" and ".join)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_rows_with_missing_values_match_rows_of_their_round(criteria, seed):
    check(seed, criteria, 0.3, matching=True)


def frames_of(table, folder):
    """The table in memory, in files read in streams, and on Dask."""
    from dask import dataframe as dd

    table.to_parquet(folder / "table.parquet")
    return [table, folder / "table.parquet", dd.from_pandas(table, npartitions=3)]


@pytest.mark.slow
@pytest.mark.usefixtures("on_cpu")
@pytest.mark.parametrize(
    "criteria",
    [
        ["k>=4"],
        pytest.param(["k>=2", "neighbour: t(pay)<=0.45", "known=2: distinct_l(ill)>=3"], marks=pytest.mark.slow),
    ],
    ids=" and ".join,
)
def test_every_kind_of_table_is_treated_the_same(criteria, tmp_path):
    table, hierarchies = example(3, 300)
    table["pay"] = np.random.default_rng(3).integers(1, 6, len(table))
    arguments = {"hierarchies": {name: {"values": dict(groups)} for name, groups in hierarchies.items()}}
    arguments |= {"quasi_identifiers": NAMES, "sensitive": ["ill", "pay"], "suppress": 0.4, "local": True}
    if len(criteria) > 1:
        table["zip"], table["w"] = table["pay"] % 2, table["pay"] % 3
        arguments |= {"attackers": named_attackers(criteria), "weights": "w"}
    plans, treated = [], []
    for number, kind in enumerate(frames_of(table, tmp_path)):
        found = gpupif.protect(kind, criteria, **arguments)
        assert found.local
        assert found.is_met
        assert gpupif.risk(gpupif.treat(table, found.plan).table, NAMES).k >= found.smallest_class
        plans.append(found.plan.to_dict())
        found.plan.save(tmp_path / f"{number}.toml")
        treated.append(gpupif.treat(kind, tmp_path / f"{number}.toml").table)
    assert plans[0] == plans[1] == plans[2]
    gpupif.treat_files(tmp_path / "table.parquet", tmp_path / "out.parquet", tmp_path / "0.toml")
    for frame in [*treated[1:2], treated[2].compute(), pd.read_parquet(tmp_path / "out.parquet")]:
        pd.testing.assert_frame_equal(
            frame.reset_index(drop=True), treated[0].reset_index(drop=True), check_dtype=False
        )


def test_compare_knows_the_rows_that_are_left():
    table, hierarchies = example(0)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, "k>=3", hierarchies=given, sensitive="ill", suppress=0.5, local=True)
    after = gpupif.treat(table, found.plan).table
    compared = gpupif.compare(table, after, plan=found.plan, quasi_identifiers=NAMES, sensitive="ill")
    assert compared.rows_taken_away == found.suppressed_rows == 1


def test_the_result_says_what_the_rounds_did():
    table, hierarchies = example(0)
    given = {name: {"values": dict(groups)} for name, groups in hierarchies.items()}
    found = gpupif.protect(table, "k>=3", hierarchies=given, sensitive="ill", suppress=0.5, local=True)
    rows, lost = sum(own.rows for own in found.local), sum(own.loss for own in found.local)
    said = " ".join(str(found).split())
    assert f"recodes {rows} of the {rows + found.suppressed_rows} rows further that it would suppress, in" in said
    assert f", the least possible; the rows that are recoded further lose {lost:,.0f} bits" in said
    unmeasured = str(replace(found, risk=[], smallest_class=None))
    assert "Risk left: not measured, because Ctrl-C ended the measuring." in unmeasured
    assert "Levels" in unmeasured
    document = json.loads(json.dumps(found.to_dict()))
    assert [own["rows"] for own in document["local"]] == [own.rows for own in found.local]


@pytest.mark.parametrize(
    ("require", "arguments", "message"),
    [
        ("k>=3", {"suppress": 0}, "local: expected with suppress=, the share of the rows"),
        ("k>=3", {"local": "yes"}, "local: expected True or False, got 'yes'"),
        ("k>=3", {"cells": True}, "local: does not go with cells="),
        (["k>=3", "t<=0.4"], {"missing": "wildcard"}, "local: criterion 't<=0.4' does not go with missing='wildcard'"),
        (["distinct_l>=2"], {"missing": "wildcard"}, "local: criterion 'distinct_l>=2' does not go with missing="),
        (["k>=3", "pif95<=3"], {}, "local: criterion 'pif95<=3' is not on each equivalence class"),
        (["k>=3", "known=2: k>=3", "uniques<=2"], {}, "local: criterion 'uniques<=2' is not on each"),
    ],
)
def test_bad_input_is_refused(require, arguments, message):
    table, _ = example(0)
    with pytest.raises(InputError, match=message):
        gpupif.protect(table, require, sensitive="ill", **({"suppress": 0.1, "local": True} | arguments))
