"""What cannot be compared is said in one line, before anything is computed."""

from __future__ import annotations

import pandas as pd
import pytest

import gpupif

BEFORE = pd.DataFrame({"id": [1, 2, 3], "age": [30, 40, 50], "sex": list("fmf")})


@pytest.mark.parametrize(
    ("after", "options", "words"),
    [
        (
            BEFORE.iloc[:2],
            {},
            "after: expected the 3 rows of the table before, got 2. .*that plan, or the record.*row_id=",
        ),
        (BEFORE.assign(job=1), {}, "after: column 'job' is not among those before"),
        (BEFORE.assign(job=1, x=2), {}, r"after: column 'job' \(and 1 more\) is not among"),
        (BEFORE[[]], {}, "after: "),
        (pd.DataFrame({"other": [1, 2, 3]}), {"columns": ["age"]}, "after: has none of the columns"),
        (BEFORE, {"columns": ["ages"]}, "columns: .*'ages'"),
        (BEFORE, {"columns": ["id"], "row_id": "id"}, "columns: expected at least one column to be compared"),
        (BEFORE, {"quasi_identifiers": ["job"]}, "quasi_identifiers: .*'job'"),
        (BEFORE, {"sensitive": "job"}, "sensitive: .*'job'"),
        (BEFORE, {"sensitive": ["id", "age", "sex"]}, "quasi_identifiers: expected at least one column"),
        (BEFORE, {"sensitive": "sex", "quasi_identifiers": ["sex"]}, "sensitive: column 'sex' is among"),
        (BEFORE, {"row_id": "ids"}, "row_id: .*'ids'"),
        (BEFORE.drop(columns="id"), {"row_id": "id"}, "row_id: .*'id'"),
        (BEFORE.assign(id=[1, 1, 3]), {"row_id": "id"}, "row_id: column 'id': after has 1 in 2 rows"),
        (BEFORE.assign(id=[1, None, 3]), {"row_id": "id"}, "row_id: column 'id': after has 1 rows without a value"),
        (BEFORE.assign(id=[1, 2, 9]), {"row_id": "id"}, "row_id: column 'id': after has 9, which before lacks, in row"),
        (BEFORE, {"suppressed": "none"}, "suppressed: expected 'both' or 'category' or 'wildcard'"),
        (BEFORE, {"linkage": "near"}, "linkage: expected 'auto', 'exact', a number of rows"),
        (BEFORE, {"linkage": 4}, "linkage: expected at most 3 rows to draw"),
        (BEFORE, {"linkage": 0}, "linkage: expected"),
        (BEFORE, {"seed": -1}, "seed: expected a whole number from 0, got -1"),
        (BEFORE, {"k": 0}, "k: expected"),
        (BEFORE, {"plan": 7}, "plan: expected a plan"),
        (BEFORE, {"hierarchies": {"age": {"width": [5]}}}, "width"),
        (BEFORE, {"distances": {"job": "nominal"}}, "distances: .*'job'"),
        (BEFORE, {"distances": ["sex"]}, "distances: "),
        (BEFORE, {"distances": {"sex": "ordered"}}, "distances: column 'sex': expected numbers"),
        (7, {}, "after: expected a pandas, Polars or cuDF DataFrame"),
    ],
)
def test_bad_options_of_a_comparison_are_refused(after, options, words):
    with pytest.raises(gpupif.InputError, match=words) as caught:
        gpupif.compare(BEFORE, after, **options)
    assert "\n" not in str(caught.value)


def test_tables_without_rows_and_missing_files_are_refused(tmp_path):
    with pytest.raises(gpupif.InputError, match="expected at least one row"):
        gpupif.compare(BEFORE.iloc[:0], BEFORE.iloc[:0])
    with pytest.raises(gpupif.errors.TableReadError, match="no such file"):
        gpupif.compare(BEFORE, tmp_path / "none.csv")
