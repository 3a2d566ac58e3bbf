"""Columns taken away."""

from __future__ import annotations

import pytest

from gpupif.errors import InputError
from gpupif.treatment.value_maps.drop import Drop
from tests.helpers.treated import treated

TABLE = {"age": [1, 2], "sex": ["f", None], "name": ["Ann", "Bo"]}


def test_what_is_named_is_gone_and_the_rest_as_it_was():
    assert treated(TABLE, Drop(["name", "age"])) == {"sex": ["f", None]}
    assert treated(TABLE, Drop("name")) == {"age": [1, 2], "sex": ["f", None]}


@pytest.mark.parametrize(
    ("columns", "fragment"),
    [
        ([], "expected at least one column"),
        (["age", "sex", "name"], "Leave one out of columns"),
    ],
)
def test_refused(columns, fragment):
    with pytest.raises(InputError, match=r"^drop: ") as caught:
        treated(TABLE, Drop(columns))
    assert fragment in str(caught.value)
