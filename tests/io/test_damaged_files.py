"""Files with damaged bytes: the scores of what pandas reads of them, or one error that names the file; never others."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gpupif
from gpupif.errors import InputError, TableReadError
from tests.helpers.configured import configured

pytestmark = pytest.mark.subprocess

ROWS = 3000
# Memory may be read where it is not: each trial of many in a process of its own would take minutes, so all share one.
TRIALS = """
import random, sys
import pandas as pd, pyarrow as pa, pyarrow.parquet as pq
import gpupif
from gpupif.errors import TableReadError

folder, ending, seed = sys.argv[1:]
good = open(f"{folder}/good.{ending}", "rb").read()
draw = random.Random(int(seed))
path = f"{folder}/bad.{ending}"
refused = 0
for trial in range(16):
    size = draw.choice([1, 8, 200])
    place = draw.randrange(4, len(good) - 4 - size)
    with open(path, "wb") as file:
        file.write(good[:place] + draw.randbytes(size) + good[place + size:])
    try:
        table = pq.read_table(path) if ending == "parquet" else pa.ipc.open_file(path).read_all()
        table.validate(full=True)
        # What pandas noted of its index may be damaged too, and does not matter here.
        right = table.to_pandas(ignore_metadata=True)
    except Exception:
        right = None
    for how in ("memory", "streams"):
        try:
            if how == "memory":
                found = gpupif.score(path, measures=["cohort_size", "prior"]).cohort_size.to_numpy()
            else:
                out = f"{folder}/out.parquet"
                gpupif.score_files(path, out, "cohort_size", overwrite=True)
                found = pd.read_parquet(out).to_numpy()
        except TableReadError as error:
            assert str(error).startswith(path), error
            assert "\\n" not in str(error)
            refused += 1
            continue
        assert right is not None, (seed, trial, how)
        assert (found == gpupif.score(right, measures=["cohort_size"]).cohort_size.to_numpy()).all(), (seed, trial, how)
print(refused)
"""


def table():
    draw = np.random.default_rng(0)
    columns = {
        "text": np.array([f"value {n}" for n in range(40)])[draw.integers(0, 40, ROWS)],
        "rare": np.array([f"{n}" for n in range(900)])[draw.integers(0, 900, ROWS)],
        "number": draw.integers(0, 99, ROWS),
        "real": draw.integers(0, 9, ROWS) / 4,
    }
    frame = pd.DataFrame(columns)
    frame.loc[draw.random(ROWS) < 0.1, "text"] = None
    frame["category"] = frame["text"].astype("category")
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_damaged_bytes_never_crash_the_process(tmp_path, ending):
    if ending == "parquet":
        pq.write_table(table(), tmp_path / "good.parquet", compression="none", row_group_size=1000)
    else:
        with pa.ipc.new_file(tmp_path / "good.arrow", table().schema) as writer:
            writer.write_table(table())
    ended = subprocess.run(
        [sys.executable, "-c", TRIALS, str(tmp_path), ending, "1"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 5


def beyond(values=("f", "m")):
    """A column with dictionary values that there are not."""
    return pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 9, -1, None, 100_000_000], pa.int32()), pa.array(values), safe=False
    )


def write_feather(path, array):
    found = pa.table({"fine": [1, 2, 3, 4, 5, 6], "sex": array})
    with pa.ipc.new_file(path, found.schema) as writer:
        writer.write_table(found)


@pytest.mark.parametrize("limit", [None, "2GB"])
@pytest.mark.parametrize("where", ["file", "folder"])
def test_codes_without_a_dictionary_value_are_refused(tmp_path, limit, where):
    path = bad = tmp_path / "t.arrow"
    if where == "folder":
        bad = tmp_path / "u.arrow"
        write_feather(path, pa.array(list("fmfmfm")).dictionary_encode())
        path = tmp_path / "*.arrow"
    write_feather(bad, beyond())
    read = gpupif.score if limit is None else partial(gpupif.score_files, output=tmp_path / "out.parquet")
    with pytest.raises(TableReadError) as caught:
        configured(read, path, memory_limit=limit)
    assert str(caught.value).startswith(f"{bad}: could not be read as Feather; it may be truncated")
    assert "column 'sex'" in str(caught.value)
    assert "out of bounds" in str(caught.value)
    # Of a column that is not asked for nothing is read.
    assert configured(read, path, columns=["fine"], memory_limit=limit).columns == ["fine"]


@pytest.mark.parametrize("values", [("f", "m"), (3, 3)])
def test_damaged_arrow_data_in_memory_are_refused(values):
    arrays = pa.table({"sex": beyond(values), "a": range(6)})
    for given in (arrays, pd.DataFrame({"sex": pd.arrays.ArrowExtensionArray(arrays["sex"])})):
        with pytest.raises(InputError, match=r"column 'sex': its Arrow data do not hold together .*out of bounds"):
            gpupif.score(given)
    with pytest.raises(InputError, match="column 'sex': its Arrow data"):
        gpupif.score(arrays, columns=["a"]).to_arrow(keep_input=True)


@pytest.mark.parametrize("note", [b"no JSON", b"\xff", b"[]", b'{"index_columns": 1}'])
def test_damaged_notes_of_pandas_are_refused(tmp_path, note):
    table = pa.table({"a": [1, 2]}).replace_schema_metadata({b"pandas": note})
    with pytest.raises(InputError, match="what pandas noted"):
        gpupif.score(table)
    pq.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, tmp_path / "t.feather")
    for file in ("t.parquet", "t.feather"):
        for read in (gpupif.score, partial(gpupif.score_files, output=tmp_path / "out.parquet")):
            with pytest.raises(TableReadError, match=rf"{file}: could not be read as .*what pandas noted"):
                read(tmp_path / file)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("parquet", "t.csv", "as CSV: it begins as Parquet does. Give it a name that ends in .parquet"),
        ("parquet", "t.feather", "as Feather: it begins as Parquet does"),
        ("feather", "t.parquet", "as Parquet: it begins as Feather does. Give it a name that ends in .feather"),
        ("csv.gz", "t.csv", "as CSV: it begins as a gzip archive does. Unpack it, or give it a name"),
        ("zip", "t.csv", "as CSV: it begins as a ZIP archive or an Excel workbook does. Unpack it, or save the sheet"),
        ("csv", "t.parquet", "as Parquet; it may be truncated, or not be what its name says"),
    ],
)
@pytest.mark.parametrize("limit", [None, "2GB"])
def test_files_of_another_kind_than_their_name_are_refused(tmp_path, kind, name, said, limit):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    write = {"parquet": table.to_parquet, "feather": table.to_feather}.get(kind, partial(table.to_csv, index=False))
    write(tmp_path / f"good.{kind}")
    path = (tmp_path / f"good.{kind}").rename(tmp_path / name)
    read = gpupif.score if limit is None else partial(gpupif.score_files, output=tmp_path / "out.parquet")
    with pytest.raises(TableReadError) as caught:
        configured(read, path, memory_limit=limit)
    assert str(caught.value).startswith(f"{path}: could not be read {said}")
