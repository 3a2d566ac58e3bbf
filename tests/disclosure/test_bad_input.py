"""Bad input of disclosure measures: each mistake raises one error that names it."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif.disclosure.risk
from gpupif.errors import ColumnNotFoundError, InputError

pytestmark = pytest.mark.every_engine

FRAME = pd.DataFrame({"age": [1, 1, 2, 2], "sex": list("fmfm"), "ill": list("abab"), "same": ["x"] * 4})


TREE = {"a": ["x"], "b": ["y"]}


BAD = [
    (("ag", "ill"), {}, "quasi_identifiers: no column 'ag' in the table. Did you mean 'age'"),
    (("age", "il"), {}, "sensitive: no column 'il' in the table. Did you mean 'ill'"),
    (([], "ill"), {}, "quasi_identifiers: expected at least one column, got an empty list"),
    (("age", []), {}, "sensitive: expected at least one column, got an empty list"),
    ((["age", "ill"], ["ill"]), {}, "sensitive: column 'ill' is a quasi-identifier too"),
    (("age", "same"), {}, "sensitive: column 'same': expected at least two different values, got 'x' in all rows"),
    (("age", "ill"), {"distance": "ordered"}, "distance: column 'ill': expected numbers, dates, times or booleans"),
    (("age", "ill"), {"distance": "far", "models": ["alpha"]}, "distance: column 'ill': expected 'nominal'"),
    (("age", "ill"), {"distance": "far"}, "distance: column 'ill': expected 'nominal', 'ordered', a list"),
    (("age", "ill"), {"distance": ["a"]}, "distance: column 'ill': expected all its values in order.*'b' is not in"),
    (("age", "ill"), {"distance": {"a": ["x"]}}, "distance: column 'ill': the hierarchy lacks 'b'"),
    (("age", "ill"), {"distance": {"a": ["x", "y"], "b": ["x", "z"]}}, "the hierarchy is no tree: 'x' is part of"),
    (("age", "ill"), {"distance": {"a": ["x"], "b": ["x", "z"]}}, "the hierarchy is no tree of equal depth"),
    (("age", ["ill", "sex"]), {"distance": TREE}, "distance: expected a word, or with several sensitive attributes"),
    (
        ("age", "ill"),
        {"distance": {"il": "nominal"}},
        r"distance: expected distances of sensitive .*\('ill'\), got 'il'",
    ),
    (("age",), {"distance": "nominal"}, "distance: expected only with a sensitive attribute"),
    (("age",), {"l": 2}, "l: expected only with a sensitive attribute"),
    (("age", "ill"), {"l": 3}, "l: expected at most 2, the different values of column 'ill'; got 3"),
    (("age", "ill"), {"l": 0}, "l: expected a whole number of values, 1 or more; got 0"),
    ((["age", "sex"], "ill"), {"l": 2}, "l: expected at most 1, the rows of the largest class; got 2"),
    (("age", "ill"), {"l": 2**40}, "l: expected a whole number of values, 1 or more, at most 2.15e"),
    (("age", "ill"), {"l": 2, "models": "t"}, "l: expected with the measure 'recursive_c' only"),
    (("age", "ill"), {"models": ["t", "q"]}, "models: expected some of k, alpha, .*; got 'q'"),
    (("age", "ill"), {"models": []}, "models: expected some of .*; got none"),
    (("age",), {"models": ["t"]}, "models: expected only 'k' without a sensitive attribute"),
    (("age", "ill"), {"k": 0}, "k: expected a whole number of rows"),
    (("age", "ill"), {"threshold": 2}, "threshold: expected a number above 0"),
    (("age", "ill"), {"groups": -1}, "groups: expected a whole number of classes, 0 or more"),
    (("age", "ill"), {"sampling_fraction": 0}, "^sampling_fraction: expected a number above 0"),
    (("age", "ill"), {"population_size": 2}, "population_size: expected at least the 4 rows of the sample"),
    (("age", "ill"), {"population_size": 9, "sampling_fraction": 0.5}, "expected one of them, got both"),
    (("age", "ill"), {"missing": "drop"}, "missing: expected 'category' or 'error' or 'wildcard', got 'drop'"),
]


@pytest.mark.parametrize(("columns", "options", "message"), BAD)
def test_bad_input_of_risk_is_refused(columns, options, message):
    with pytest.raises(InputError, match=message):
        gpupif.risk(FRAME, *columns, **options)


def test_bad_input_of_single_measures_is_refused():
    with pytest.raises(InputError, match="kind: expected 'distinct' or 'entropy' or 'recursive', got 'best'"):
        gpupif.models.l_diversity(FRAME, "age", "ill", "best")
    with pytest.raises(InputError, match="l: expected with kind='recursive' only"):
        gpupif.models.l_diversity(FRAME, "age", "ill", l=2)
    with pytest.raises(InputError, match="sensitive: expected a column, or a list of columns; got None"):
        gpupif.models.t_closeness(FRAME, "age", None)
    with pytest.raises(InputError, match="table: expected at least one row, got none"):
        gpupif.models.k_anonymity(FRAME.head(0), "age")
    with pytest.raises(ColumnNotFoundError, match="quasi_identifiers"):
        gpupif.models.k_anonymity(FRAME, "x")
    with pytest.raises(InputError, match="table: expected a pandas"):
        gpupif.models.k_anonymity([1], "x")
