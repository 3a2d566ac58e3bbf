"""Global risk by a log-linear model: closed forms in exact arithmetic, margins, and the ways to run."""

from __future__ import annotations

import io
import json
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import gpupif
from gpupif.disclosure import global_risk as model
from gpupif.disclosure.global_risk import fit_margins, resolve_interactions
from gpupif.errors import ColumnNotFoundError, InputError
from tests.helpers.dask_frames import cut
from tests.helpers.pieces import in_pieces, write_parts
from tests.helpers.tables import SHARED_FIXTURES, frame_of, tables

NAMES = ["a", "b", "c"]
ROWS = [*"xxxyyyzzxyxz"], [1, 1, 2, 1, 2, 2, 2, 1, 3, 3, 1, 2], [*"ppqqpqpqpppq"]
TABLE = pd.DataFrame(dict(zip(NAMES, ROWS, strict=True))).assign(w=[1, 2.5, 4, 10, 3, 8, 8, 2, 6, 5, 1.5, 20])


def taus(table, names, weights, expected):
    """Return tau1 and tau2 by their definition. expected: returns the people that a model expects in a cell."""
    rows = list(zip(*(table[name] for name in names), strict=True))
    counts = Counter(rows)
    found = [0.0, 0.0]
    for row, weight in zip(rows, weights, strict=True):
        if counts[row] == 1:
            missed = float(expected(row) * (1 - 1 / Fraction(weight)))
            found[0] += math.exp(-missed)
            found[1] += (1 - math.exp(-missed)) / missed if missed > 1e-12 else 1.0
    return found


def people_by(table, names, weights):
    """Return the people of each combination of values."""
    found = Counter()
    for row, weight in zip(zip(*(table[name] for name in names), strict=True), weights, strict=True):
        found[row] += Fraction(weight)
    return found


def closed_form(table, weights, *over):
    """Return a function that returns the people of a cell as a product of margins.

    over: sets of columns, whose margins are multiplied. Each is divided by the margin of the columns that earlier sets
        have.
    """
    total = sum(map(Fraction, weights))
    margins = [people_by(table, names, weights) for names in over]
    between = [[name for name in names if any(name in before for before in over[:place])]
               for place, names in enumerate(over)]  # fmt: skip
    shared = [people_by(table, names, weights) if names else {(): total} for names in between]

    def expected(row):
        value = dict(zip(NAMES, row, strict=True))
        found = Fraction(total)
        for names, margin, common, both in zip(over, margins, between, shared, strict=True):
            found *= margin[tuple(value[n] for n in names)] / both[tuple(value[n] for n in common)]
        return found

    return expected


MODELS = [
    (None, (["a"], ["b"], ["c"])),
    ([("a", "b")], (["a", "b"], ["c"])),
    ([("a", "b"), ("c", "b")], (["a", "b"], ["b", "c"])),
    ([("c", "a", "b")], (["a", "b", "c"],)),
]


@pytest.mark.every_engine
@pytest.mark.parametrize(("interactions", "over"), MODELS)
@pytest.mark.parametrize("fraction", [None, 0.25, 1.0])
def test_models_with_a_closed_form_give_its_risk(engine, interactions, over, fraction):
    weights = TABLE["w"].tolist() if fraction is None else [1 / fraction] * len(TABLE)
    how = {"weights": "w"} if fraction is None else {"sampling_fraction": fraction}
    found = gpupif.global_risk(TABLE, NAMES, interactions=interactions, **how)
    tau1, tau2 = taus(TABLE, NAMES, weights, closed_form(TABLE, weights, *over))
    assert (found.tau1, found.tau2) == (pytest.approx(tau1, rel=1e-9), pytest.approx(tau2, rel=1e-9))
    uniques = sum(count == 1 for count in Counter(zip(*(TABLE[name] for name in NAMES), strict=True)).values())
    assert (found.rows, found.uniques, found.cells) == (12, uniques, 18)
    assert found.people == pytest.approx(sum(weights))
    assert found.tau1_share == pytest.approx(tau1 / uniques)
    if fraction == 1.0:
        # At a fraction of 1 the sample is the population.
        assert found.tau1 == found.tau2 == uniques


@pytest.mark.slow
@given(table=tables(), data=st.data())
@SHARED_FIXTURES
def test_main_effects_are_products_of_shares(table, data):
    names = list(table)
    rows = len(table[names[0]])
    weights = data.draw(st.lists(st.integers(1, 9) | st.sampled_from([1.25, 7.5]), min_size=rows, max_size=rows))
    found = gpupif.global_risk(frame_of(table).assign(people=weights), names, weights="people")
    total, margins = sum(map(Fraction, weights)), [people_by(table, [name], weights) for name in names]

    def expected(row):
        return total * math.prod(margin[(value,)] / total for margin, value in zip(margins, row, strict=True))

    assert [found.tau1, found.tau2] == pytest.approx(taus(table, names, weights, expected), rel=1e-9, abs=1e-12)
    assert 0 <= found.tau1 <= found.tau2 <= found.uniques * (1 + 1e-12)


def test_a_fit_keeps_the_margins_of_its_terms():
    """Check both properties that define the fit.

    It has the margins of the table's pairs, and no interaction of three columns.
    """
    table = np.random.default_rng(0).integers(1, 9, (3, 4, 2)).astype(float)
    pairs = list(combinations(range(3), 2))
    fitted = fit_margins(table, pairs)
    for axis in range(3):
        np.testing.assert_allclose(fitted.sum(axis=axis), table.sum(axis=axis), rtol=1e-8)
    logs = np.log(fitted)
    for a, b in product(range(1, 3), range(1, 4)):
        ratios = [logs[0, 0, c] - logs[a, 0, c] - logs[0, b, c] + logs[a, b, c] for c in range(2)]
        assert ratios[0] == pytest.approx(ratios[1], abs=1e-7)
    table[0, 1, :] = 0
    assert (fit_margins(table, pairs)[0, 1] == 0).all()


def test_a_model_has_the_terms_within_its_interactions():
    assert resolve_interactions(None, NAMES) == [(0,), (1,), (2,)]
    assert resolve_interactions("two-way", NAMES) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    assert resolve_interactions([("c", "a", "b")], NAMES) == [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    found = gpupif.global_risk(TABLE, NAMES, weights="w", interactions=[["b", "a"]])
    assert found.interactions == [["a", "b"]]
    assert found.parameters == 1 + 2 + 2 + 1 + 2 * 2
    assert "main effects and a x b (10 parameters)" in str(found)


@pytest.mark.slow
@given(edges=st.lists(st.integers(0, 12), max_size=3), rows=st.integers(1, 13), two_way=st.booleans())
@settings(SHARED_FIXTURES, max_examples=8)
def test_files_and_dask_give_the_same_risk(edges, rows, two_way, tmp_path_factory, dask_in_one_thread):
    how = {"weights": "w", "interactions": "two-way" if two_way else None}
    expected = gpupif.global_risk(TABLE, NAMES, **how)
    folder = write_parts(tmp_path_factory.mktemp("t") / "in", TABLE, edges)
    with in_pieces(rows, rows), gpupif.config(memory_limit="64GiB"):
        assert gpupif.global_risk(folder, NAMES, **how) == expected
    assert gpupif.global_risk(cut(TABLE, edges), NAMES, **how) == expected


def test_a_table_without_uniques_has_no_shares():
    found = gpupif.global_risk(pd.DataFrame({"a": [1, 1, 2, 2]}), "a", sampling_fraction=0.1)
    assert (found.uniques, found.tau1, found.tau2) == (0, 0.0, 0.0)
    assert math.isnan(found.tau1_share)
    assert found.to_dict()["tau2_share"] is None
    out = io.StringIO()
    found.print(Console(file=out, width=100))
    assert "nan" not in out.getvalue()
    assert "(tau1)" in out.getvalue()


def test_a_fit_that_does_not_settle_warns(monkeypatch):
    monkeypatch.setattr(model, "ROUNDS", 1)
    with pytest.warns(UserWarning, match=r"interactions: after 1 rounds the model still has 0\.\d+ of the people"):
        gpupif.global_risk(TABLE, NAMES, weights="w", interactions="two-way")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "weights, sampling_fraction: expected one of them, got neither"),
        ({"weights": "w", "sampling_fraction": 0.1}, "weights, sampling_fraction: expected one of them, got both"),
        ({"sampling_fraction": 5}, "sampling_fraction: expected a number above 0 and up to 1, got 5. Divide"),
        ({"weights": "small"}, "weights: column 'small': expected numbers of 1 or more, .* got 0.5"),
        ({"weights": "a"}, "weights: column 'a' is a quasi-identifier too"),
        ({"weights": "w", "missing": "wildcard"}, "missing='wildcard': not defined for global risk by a log-linear"),
        ({"weights": "w", "interactions": "all"}, "interactions: expected 'two-way', .* got 'all'"),
        ({"weights": "w", "interactions": 2}, "interactions: expected 'two-way', .* got 2"),
        ({"weights": "w", "interactions": ["a", "b"]}, r"interactions: expected two or more .* Write \[\('a', 'b'\)\]"),
        ({"weights": "w", "interactions": [("a", "a")]}, "interactions: expected two or more different"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        gpupif.global_risk(TABLE.assign(small=[0.5, *[2] * 11]), NAMES, **arguments)


def test_too_many_cells_are_refused(monkeypatch):
    with pytest.raises(ColumnNotFoundError, match=r"interactions: no column 'd' in the quasi-identifiers"):
        gpupif.global_risk(TABLE, NAMES, weights="w", interactions=[("a", "d")])
    monkeypatch.setattr(model, "MOST_CELLS", 17)
    assert gpupif.global_risk(TABLE, NAMES, weights="w").cells == 18
    with pytest.raises(InputError, match=r"quasi_identifiers: a model with interactions .* 18 combinations .* most 17"):
        gpupif.global_risk(TABLE, NAMES, weights="w", interactions="two-way")


def test_the_command_prints_the_risk(run, folder):
    TABLE.to_csv(folder / "t.csv", index=False)
    command = ("global-risk", "t.csv", "--quasi-identifiers", "a,b,c", "--weights", "w")
    for option, interactions in (("two-way", "two-way"), ("a:b,b:c", [("a", "b"), ("b", "c")])):
        ended = run(*command, "--interactions", option, "--json")
        assert (ended.code, ended.err) == (0, "")
        expected = gpupif.global_risk(TABLE, NAMES, weights="w", interactions=interactions).to_dict()
        document = json.loads(ended.out)
        assert {key: document[key] for key in expected} == expected
    assert "unique in the population (tau1)" in run(*command).out
    ended = run(*command, "--interactions", "all")
    assert (ended.code, ended.err[:31]) == (2, "gpupif: error: --interactions: ")
