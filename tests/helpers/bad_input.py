"""Input that is refused, and how."""

from __future__ import annotations

import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import GpupifError, NearlyUniqueWarning

FRAME = pd.DataFrame({"age": [39, 39, 40, 41], "sex": ["f", "m", "f", None]})


def assert_refused(error, fragments, table=FRAME, **arguments):
    """Scoring raises exactly `error`, in one line that holds every fragment."""
    with pytest.raises(GpupifError) as caught:
        gpupif.score(table, **arguments)
    message = str(caught.value)
    assert type(caught.value) is error
    assert [fragment for fragment in fragments if fragment not in message] == []
    assert "\n" not in message


def file_bytes(ending):
    """FRAME, long enough to be cut, as the bytes of a file."""
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pandas(pd.concat([FRAME] * 200), preserve_index=False)
    {"parquet": pq.write_table, "feather": pyarrow.feather.write_feather}[ending](table, sink)
    return sink.getvalue().to_pybytes()


PARQUET, FEATHER = file_bytes("parquet"), file_bytes("feather")


def warned(table, **arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gpupif.score(table, **arguments)
    assert all(one.category is NearlyUniqueWarning and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]
