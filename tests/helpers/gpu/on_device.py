"""What tests of the device share: tables there, of cuDF on a GPU and of pandas without; and how scores are compared."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from gpupif.encoding.encode import encode_column
from gpupif.gpu.open import frame_library
from gpupif.measures import MEASURES, resolve_measures
from gpupif.utils.arrays import on_host
from tests.helpers.gpu.numpy_device import DeviceFrame, PandasFrames
from tests.helpers.gpu.without_gpu import HAS_FRAMES, WITHOUT_GPU

# Measures of no statistic that needs the values of a cohort in order: cuDF groups rows for these.
HASHED = [name for name, one in MEASURES.items() if one.statistic is None or one.statistic.kind != "MOVER"]
# Where there are none, tests of them are skipped.
Frames = type(frame_library()) if HAS_FRAMES else PandasFrames


def to_device(frame):
    return DeviceFrame(frame) if WITHOUT_GPU else Frames().frames.from_pandas(frame)


def series(array):
    return pd.Series(pd.arrays.ArrowExtensionArray(array)) if WITHOUT_GPU else Frames().frames.Series.from_arrow(array)


def is_there(array):
    return hasattr(array, "get")


def to_pandas(table):
    return pd.DataFrame(table) if WITHOUT_GPU else table.to_pandas()


def host_column(array):
    return encode_column("x", array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))


def assert_same_column(column, expected):
    assert is_there(column.codes)
    assert column.codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(on_host(column.codes), expected.codes)
    np.testing.assert_array_equal(column.counts, expected.counts)
    assert column.values() == expected.values()
    assert column.missing == expected.missing


def assert_same_scores(scores, expected):
    assert scores.measures == expected.measures
    for measure in scores.measures:
        assert_same_values(measure, scores.array(measure), expected.array(measure))


def assert_same_values(measure, found, expected):
    """Scores of a device and of the CPU: the same, but for the last bits of what libraries' functions are in."""
    found, expected = on_host(found), on_host(expected)
    if measure.startswith("renyi_") and resolve_measures([measure])[0].differs_by_processor:
        np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=measure)
    else:
        np.testing.assert_array_equal(found, expected, err_msg=measure)
