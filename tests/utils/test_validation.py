"""Values in messages."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

from gpupif.utils.validation import brief

DAY = datetime.datetime(1999, 12, 31, 12)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["1"], "'1'"),
        ([1, np.int64(1), np.uint8(1)], "1"),
        ([0.25, np.float32(0.25)], "0.25"),
        ([True, np.bool_(True)], "True"),
        ([DAY, pd.Timestamp(DAY)], "1999-12-31 12:00:00"),
        ([DAY.date()], "1999-12-31"),
        ([pd.Timedelta(days=1), np.timedelta64(1, "D")], ("1 days 00:00:00", "1 days")),
        (["x" * 99], "'" + "x" * 59 + "..."),
        ([10**5000], "a number of thousands of digits"),
    ],
)
def test_brief_texts_are_the_same_for_types_of_every_library(values, text):
    assert [brief(value) for value in values] == (list(text) if isinstance(text, tuple) else [text] * len(values))
