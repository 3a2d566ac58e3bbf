"""A table of which only what changed is read: the same bits as of one that is read whole, however its files change."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError, OutputError, TableReadError
from gpupif.io.base import Source
from gpupif.nightly.outcome import InputChanges
from gpupif.nightly.table_state import KeptTable, verify_state
from gpupif.out_of_core import kept_source
from gpupif.out_of_core.part_store import PartStore
from tests.helpers.pieces import assert_same_summaries, in_pieces, nothing_left, stored
from tests.helpers.tables import SHARED_FIXTURES

NAMES = ["part-a", "part-b", "part-c", "part-d"]
# Of CSV, "x" makes a column text, "1.0" one of numbers with a point, and "" a missing value.
CELLS = {
    "parquet": (
        st.sampled_from([1, 2, -7, None]),
        st.sampled_from(["x", "y", "zz", None]),
        st.sampled_from([0.0, -0.0, 1.5, None]),
    ),
    "csv": (
        st.sampled_from(["1", "2", "10", ""]) | st.sampled_from(["1", "2", "x"]),
        st.sampled_from(["x", "y", ""]),
        st.sampled_from(["1.0", "2.5", "2"]),
    ),
}
KINDS = {"number": "Int64", "text": "string", "amount": "float64"}


def rows(ending, least=1):
    return st.lists(st.tuples(*CELLS[ending]), min_size=least, max_size=5)


def write(file, table):
    frame = pd.DataFrame(table, columns=list(KINDS))
    if file.suffix == ".csv":
        frame.to_csv(file, index=False)
    else:
        frame.astype(KINDS).to_parquet(file, index=False)


class Folder:
    """Files of a table that change; the rows of each by its name."""

    def __init__(self, place, ending):
        self.place, self.ending, self.tables = place, ending, {}
        place.mkdir()
        self.path = place if ending == "parquet" else place / f"*.{ending}"

    def file(self, name):
        return self.place / f"{name}.{self.ending}"

    def put(self, name, table):
        write(self.file(name), table)
        self.tables[name] = table

    def change(self, data):
        """Change one thing of the files."""
        here, free = sorted(self.tables), [name for name in NAMES if name not in self.tables]
        what = data.draw(
            st.sampled_from(["put", "put", "append", "touch", *["rename"] * bool(free), *["remove"] * (len(here) > 1)])
        )
        name = data.draw(st.sampled_from(NAMES if what == "put" else here))
        if what == "put":
            self.put(name, data.draw(rows(self.ending)))
        elif what == "append":
            self.put(name, self.tables[name] + data.draw(rows(self.ending)))
        elif what == "touch":
            os.utime(self.file(name), (data.draw(st.integers(1, 10**9)),) * 2)
        elif what == "rename":
            other = data.draw(st.sampled_from(free))
            self.file(name).rename(self.file(other))
            self.tables[other] = self.tables.pop(name)
        else:
            self.file(name).unlink()
            del self.tables[name]

    def contents(self):
        """What is in the files, in order."""
        return {file.name: file.read_bytes() for file in sorted(self.place.iterdir())}


@contextmanager
def reads():
    """The names of the files that are read in streams."""
    found, real = [], Source.read_file

    def read_file(self, file, *given):
        found.append(file.name)
        return real(self, file, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "read_file", read_file)
        yield found


def assert_same_scores(found, expected):
    mine, theirs = found.to_arrow(), expected.to_arrow()
    assert mine.schema.names == theirs.schema.names
    for name in theirs.schema.names:
        assert mine[name].type == theirs[name].type
        assert mine[name].to_numpy().tobytes() == theirs[name].to_numpy().tobytes(), name
    assert found.weights == expected.weights
    assert dict(found.priors) == dict(expected.priors)
    assert_same_summary(found.summary(), expected.summary())


def assert_same_summary(mine, theirs):
    pd.testing.assert_frame_equal(mine.columns, theirs.columns, check_exact=True)
    assert mine.pif == theirs.pif
    pd.testing.assert_frame_equal(mine.top, theirs.top, check_exact=True)


def risk_of(table):
    """What the risk of a table is, or why there is none, but for when it was found."""
    try:
        found = gpupif.risk(table, ["number", "text"], ["amount"]).to_dict()
    except InputError as error:
        return str(error)
    return {name: value for name, value in found.items() if name != "seconds"}


def score_on_disk(table, place):
    shutil.rmtree(place, ignore_errors=True)
    with in_pieces(3, 2):
        return gpupif.score_files(table, place)


def assert_as_if_read(table, folder, place):
    """All that is computed from a kept table is what its files give, to the last bit, and reads none of them."""
    with reads() as read:
        scores, risk = gpupif.score(table), risk_of(table)
        with in_pieces(3, 2), gpupif.config(memory_limit="16GiB"):
            risk_on_disk = risk_of(table)
        on_disk = score_on_disk(table, place / "kept")
    assert read == []
    assert_same_scores(scores, gpupif.score(folder.path))
    assert risk == risk_of(folder.path)
    with in_pieces(3, 2), gpupif.config(memory_limit="16GiB"):
        assert risk_on_disk == risk_of(folder.path)
    expected = score_on_disk(folder.path, place / "whole")
    assert stored(on_disk).equals(stored(expected))
    assert [file.name for file in on_disk.files] == [file.name for file in expected.files]
    # Sums over chunks are rounded in the order of these, which are those of a table of which nothing was kept.
    assert_same_summaries(on_disk.summary(), expected.summary())
    with KeptTable.of_files(folder.path, place / "fresh") as fresh:
        assert_same_summary(on_disk.summary(), score_on_disk(fresh, place / "whole").summary())
    shutil.rmtree(place / "fresh")


@pytest.mark.every_engine
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@given(data=st.data())
@settings(SHARED_FIXTURES, max_examples=15)
def test_the_same_bits_whatever_happens_to_the_files(ending, engine, tmp_path_factory, data):
    place = tmp_path_factory.mktemp("t")
    folder, state = Folder(place / "in", ending), place / "state"
    for name in data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        folder.put(name, data.draw(rows(ending)))
    kept, before = set(), None
    for _ in range(data.draw(st.integers(1, 4))):
        contents = folder.contents()
        with reads() as read, KeptTable.of_files(folder.path, state) as table:
            wanting = {content for content in contents.values() if content not in kept}
            assert len(read) == len(wanting)
            assert {contents[name] for name in read} == wanting
            assert [file.path for file in table.files] == list(contents)
            assert table.notes == []
            assert_as_if_read(table, folder, place)
            check_profile(table, folder, before)
            table.keep()
        kept, before = set(contents.values()), {name: values_of(folder, name) for name in KINDS}
        assert len(list((state / "parts").iterdir())) == len(kept)
        folder.change(data)
    assert verify_state(state) == []
    assert nothing_left(place)


def values_of(folder, column):
    """The texts of the values of a column that are there."""
    place = list(KINDS).index(column)
    cells = {row[place] for table in folder.tables.values() for row in table}
    return (
        {str(cell) for cell in cells if cell not in (None, "")}
        if folder.ending == "csv"
        else {cell + 0 if isinstance(cell, float) else cell for cell in cells if cell is not None}
    )


def check_profile(table, folder, before):
    for column in table.profile():
        values = values_of(folder, column.name)
        place = list(KINDS).index(column.name)
        cells = [row[place] for rows in folder.tables.values() for row in rows]
        assert column.distinct_values == len(values)
        assert column.missing == sum(cell in (None, "") for cell in cells)
        assert column.type == table.schema[column.name]
        if before is None:
            assert column.new_values is None
        elif column.name != "amount":
            assert column.new_values == len(values - before[column.name])
