"""A table of which only what changed is read: the same bits as of one that is read whole, however its files change."""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import ColumnNotFoundError, InputError, OutputError, TableReadError
from gpupif.io.base import Source
from gpupif.nightly.table.kept_table import KeptTable, verify_state
from gpupif.nightly.table.table_changes import InputChanges, input_changes
from gpupif.out_of_core import kept_source
from gpupif.out_of_core.duplicate_rows import duplicate_rows
from gpupif.out_of_core.kept_file_store import KeptFileStore
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
    assert_same_summaries(found.summary(), expected.summary())


def risk_of(table):
    """What the risk of a table is, or why there is none."""
    try:
        return untimed(gpupif.risk(table, ["number", "text"], ["amount"]))
    except InputError as error:
        return str(error)


def untimed(result):
    """A result as plain values, but for how long it took."""
    return {name: value for name, value in result.to_dict().items() if name != "seconds"}


def in_few_rows(compute, *given, **named):
    """What is computed in pieces of a few rows."""
    with in_pieces(3, 2), gpupif.config(memory_limit="16GiB"):
        return compute(*given, **named)


def score_on_disk(table, place, **options):
    shutil.rmtree(place, ignore_errors=True)
    return in_few_rows(gpupif.score_files, table, place, **options)


def assert_as_if_read(table, folder):
    """All that is computed from a kept table in memory is what its files give, and reads none of them."""
    with reads() as read:
        scores, risk = gpupif.score(table), risk_of(table)
    assert read == []
    assert_same_scores(scores, gpupif.score(folder.path))
    assert risk == risk_of(folder.path)


def assert_as_if_read_on_disk(table, folder, place):
    """The same beyond memory."""
    with reads() as read:
        scores, risk = score_on_disk(table, place / "kept"), in_few_rows(risk_of, table)
    assert read == []
    assert risk == in_few_rows(risk_of, folder.path)
    expected = score_on_disk(folder.path, place / "whole")
    assert stored(scores).equals(stored(expected))
    assert [file.name for file in scores.files] == [file.name for file in expected.files]
    assert_same_summaries(scores.summary(), expected.summary())


def nights(data, folder, state, check):
    """Change files between runs; each reads what no file of the run before had in it, and what it says is checked."""
    for name in data.draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        folder.put(name, data.draw(rows(folder.ending)))
    kept, before, files, night = set(), None, [], 0
    for left in reversed(range(data.draw(st.integers(1, 4)))):
        contents = folder.contents()
        with reads() as read, KeptTable.of_files(folder.path, state) as table:
            wanting = {content for content in contents.values() if content not in kept}
            assert len(read) == len(wanting)
            assert {contents[name] for name in read} == wanting
            assert [file.path for file in table.files] == list(contents)
            assert table.notes == []
            check_changes(input_changes(files, table.files, table.read_files), files, table.files)
            check_profile(table.profile(night or None), table, folder, before)
            check(table, left == 0)
            night += 1
            finish(table, night)
        kept, before, files = set(contents.values()), {name: values_of(folder, name) for name in KINDS}, table.files
        assert len(list((state / "parts").iterdir())) == len(kept)
        folder.change(data)
    assert verify_state(state) == []


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@given(data=st.data())
@settings(SHARED_FIXTURES, max_examples=6)
def test_a_kept_table_has_the_bits_of_its_files_after_any_changes(ending, engine, tmp_path_factory, data):
    place = tmp_path_factory.mktemp("t")
    folder = Folder(place / "in", ending)
    nights(data, folder, place / "state", lambda table, _: assert_as_if_read(table, folder))
    assert nothing_left(place)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@given(data=st.data())
@settings(SHARED_FIXTURES, max_examples=3)
def test_a_kept_table_beyond_memory_has_the_bits_of_its_files(ending, tmp_path_factory, data):
    place = tmp_path_factory.mktemp("t")
    folder = Folder(place / "in", ending)

    def check(table, last):
        if last:
            assert_as_if_read_on_disk(table, folder, place)

    # Parts of several chunks.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_source, "CHUNK_ROWS", 2)
        nights(data, folder, place / "state", check)
    assert nothing_left(place)


def check_changes(changes, before, now):
    """Every file is in one of the lists of changes."""
    old, new = ({file.path: file.digest for file in files} for files in (before, now))
    assert {*changes.added, *(path for _, path in changes.renamed)} == set(new) - set(old)
    assert {*changes.removed, *(path for path, _ in changes.renamed)} == set(old) - set(new)
    assert all(old[path] == new[other] for path, other in changes.renamed)
    assert set(changes.changed) == {path for path in new if path in old and old[path] != new[path]}
    assert changes.unchanged == sum(new.get(path) == digest for path, digest in old.items())


def values_of(folder, column):
    """The texts of the values of a column that are there."""
    place = list(KINDS).index(column)
    cells = {row[place] for table in folder.tables.values() for row in table}
    return (
        {str(cell) for cell in cells if cell not in (None, "")}
        if folder.ending == "csv"
        else {cell + 0 if isinstance(cell, float) else cell for cell in cells if cell is not None}
    )


def check_profile(profile, table, folder, before):
    for column in profile:
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


@pytest.fixture
def folder(tmp_path):
    """Three files of a few rows."""
    made = Folder(tmp_path / "in", "parquet")
    made.put("part-a", [(1, "x", 0.5), (2, "y", None), (1, "x", 1.5)])
    made.put("part-b", [(1, "y", 0.5), (2, None, 2.5)])
    made.put("part-c", [(3, "zz", 0.5), (1, "x", 0.5)])
    return made


def finish(table, night=1):
    """A good run comes to its end."""
    table.store_values(night)
    table.forget_unused(night)


def keep(folder, state):
    with KeptTable.of_files(folder.path, state) as table:
        finish(table)


def parts_of(state):
    return sorted((state / "parts").glob("*.part"))


@pytest.mark.slow
def test_damage_to_any_byte_is_found_and_mended(folder, tmp_path):
    state = tmp_path / "state"
    keep(folder, state)
    whole = parts_of(state)
    file = whole[1]
    content = file.read_bytes()
    for place in [*range(0, len(content), 7), *range(len(content) - 48, len(content))]:
        file.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        assert KeptFileStore(file.parent).verify() == [f"{file}: damaged; the next run makes it again."]
    for damaged in (content[:-1], b"", content + b"x", whole[0].read_bytes()):
        file.write_bytes(damaged)
        assert len(verify_state(state)) == 1
        with reads() as read, KeptTable.of_files(folder.path, state) as table:
            assert len(read) == 1
            assert table.notes == [f"{file}: damaged; put aside as damaged-{file.name}, and made again."]
            assert_as_if_read(table, folder)
            finish(table)
        assert verify_state(state) == []
        assert (file.parent / f"damaged-{file.name}").read_bytes() == damaged
    # It goes with the part that it was.
    folder.tables.clear()
    for name in NAMES[:3]:
        folder.put(name, [(5, "x", 0.5), (6, "y", 1.5)])
    keep(folder, state)
    assert len(list((state / "parts").iterdir())) == 1


def test_damaged_values_are_found(folder, tmp_path):
    state = tmp_path / "state"
    keep(folder, state)
    file = state / "values-000001.kept"
    file.write_bytes(file.read_bytes()[:-3] + b"xyz")
    assert verify_state(state) == [f"{file}: damaged; the next run cannot say which values are new."]
    with KeptTable.of_files(folder.path, state) as table:
        assert [column.new_values for column in table.profile(1)] == [None] * 3
        assert table.notes[0].startswith(f"{file}: damaged; put aside as damaged-values-000001.kept.")
        finish(table)
    assert verify_state(state) == []


class Killed(BaseException):
    """What a kill is in these tests."""


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "step", ["section_file.SectionWriter.add", "section_file.SectionWriter.close", "write.os.fsync", "write.os.replace"]
)
def test_a_kill_while_writing_leaves_the_old_parts(folder, tmp_path, monkeypatch, step):
    state = tmp_path / "state"
    keep(folder, state)
    before = {file.name: file.read_bytes() for file in parts_of(state)}
    folder.put("part-a", [(9, "new", 0.5)])

    def kill(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(f"gpupif.io.{step}", kill)
        with pytest.raises(Killed):
            KeptTable.of_files(folder.path, state)
    assert {file.name: file.read_bytes() for file in parts_of(state)} == before
    # As a file system leaves it that has no files without names.
    (state / "parts" / ".gpupif-0123.tmp").write_bytes(b"half")
    with reads() as read, KeptTable.of_files(folder.path, state) as table:
        assert read == ["part-a.parquet"]
        assert_as_if_read(table, folder)
        # What the last good run used is there until this one is good.
        assert set(before) < {file.name for file in parts_of(state)}
        finish(table)
    assert len(list((state / "parts").iterdir())) == 3


def test_a_full_disk_leaves_the_old_parts(folder, tmp_path, monkeypatch):
    state = tmp_path / "state"
    keep(folder, state)
    before = parts_of(state)
    folder.put("part-a", [(9, "new", 0.5)])

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("gpupif.io.write.os.fsync", full)
        with pytest.raises(OutputError, match=r"could not be written: No space left on device\. Free some space"):
            KeptTable.of_files(folder.path, state)
    assert parts_of(state) == before
    assert verify_state(state) == []


def test_only_the_owner_may_read_the_kept_table(folder, tmp_path):
    before = os.umask(0)
    try:
        keep(folder, tmp_path / "state")
    finally:
        os.umask(before)
    state = tmp_path / "state"
    assert (state / "parts").stat().st_mode & 0o777 == 0o700
    files = [file for file in state.rglob("*") if file.is_file()]
    assert len(files) == 5
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}


def test_state_of_another_version_or_of_other_columns_is_not_used(folder, tmp_path, monkeypatch):
    state = tmp_path / "state"
    keep(folder, state)
    said = f"{state / 'parts'}: state of another version of gpupif, or of other columns or options, is not used: "
    with KeptTable.of_files(folder.path, state, ["text", "number"]) as table:
        assert table.names == ["number", "text"]
        assert table.notes == [said + "3 of 3 files are read again."]
        assert list(gpupif.score(table).cig.columns) == ["number", "text"]
        finish(table)
    monkeypatch.setattr(kept_source, "__version__", "0.0.1")
    with reads() as read, KeptTable.of_files(folder.path, state, ["text", "number"]) as table:
        assert len(read) == 3
        assert table.notes == [said + "3 of 3 files are read again."]


def test_schema_has_all_columns_with_the_types_of_the_files(folder, tmp_path):
    with KeptTable.of_files(folder.path, tmp_path / "state", ["text"]) as table:
        assert table.schema == {"number": "int64", "text": "string", "amount": "double"}
    texts = Folder(tmp_path / "csv", "csv")
    texts.put("part-a", [("1", "x", "1.0"), ("2", "y", "2.5")])
    with KeptTable.of_files(texts.path, tmp_path / "other") as table:
        assert table.schema == {"number": "int64", "text": "string", "amount": "double"}


def test_the_input_beside_scores_is_that_of_the_files(folder, tmp_path):
    with KeptTable.of_files(folder.path, tmp_path / "state") as table:
        kept = score_on_disk(table, tmp_path / "kept", keep_input=True)
        gpupif.score(table).write(tmp_path / "kept.parquet", keep_input=True)
    assert stored(kept).equals(stored(score_on_disk(folder.path, tmp_path / "whole", keep_input=True)))
    gpupif.score(folder.path).write(tmp_path / "whole.parquet", keep_input=True)
    assert pd.read_parquet(tmp_path / "kept.parquet").equals(pd.read_parquet(tmp_path / "whole.parquet"))


def test_missing_values_are_refused_by_their_row(folder, tmp_path):
    with KeptTable.of_files(folder.path, tmp_path / "state") as table:
        for compute in (gpupif.score, lambda *given, **named: score_on_disk(given[0], tmp_path / "out", **named)):
            with pytest.raises(InputError, match=r"column 'text': .*the first in row 4 \(from 0\)"):
                compute(table, columns=["number", "text"], known=["text"], missing="error")


def test_a_file_that_changes_while_it_is_read_is_an_error(folder, tmp_path, monkeypatch):
    real = KeptFileStore.write

    def write(self, *given):
        os.utime(folder.file("part-b"), (1, 1))
        return real(self, *given)

    monkeypatch.setattr(KeptFileStore, "write", write)
    with pytest.raises(TableReadError, match=r"part-b\.parquet: the file changed"):
        KeptTable.of_files(folder.path, tmp_path / "state")


def test_files_without_rows_are_refused(tmp_path):
    folder = Folder(tmp_path / "in", "parquet")
    folder.put("part-a", [])
    with pytest.raises(TableReadError, match="expected at least one row, got none"):
        KeptTable.of_files(folder.path, tmp_path / "state")


@pytest.mark.slow
@given(
    table=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from("abc") | st.none(), st.just(0.5)), min_size=1, max_size=30
    ),
    memory=st.sampled_from([1, 500, 10**9]),
)
@settings(SHARED_FIXTURES, max_examples=12)
def test_duplicate_keys_are_counted_and_their_rows_named(table, memory, tmp_path_factory):
    place = tmp_path_factory.mktemp("t")
    folder = Folder(place / "in", "parquet")
    folder.put("part-a", table[: len(table) // 2])
    folder.put("part-b", table[len(table) // 2 :])
    with KeptTable.of_files(folder.path, place / "state") as kept:
        for names in (["number"], ["number", "text"]):
            keys = [row[: len(names)] for row in table]
            expected = [row for row, key in enumerate(keys) if keys.count(key) > 1]
            assert duplicate_rows(kept.chunks(names), memory) == (len(expected), expected[:10])
            assert kept.duplicate_keys(names) == (len(expected), expected[:10])
        with pytest.raises(ColumnNotFoundError, match="row_key: no column 'nmber'"):
            kept.duplicate_keys(["nmber"])


class Query:
    """Rows in batches, as a database gives them, which can be asked for once."""

    def __init__(self, frame):
        self.table = pa.Table.from_pandas(frame, preserve_index=False)
        self.schema = self.table.schema
        self.asked = 0

    def batches(self):
        self.asked += 1
        yield from self.table.to_batches(max_chunksize=3)


FRAME = pd.DataFrame(
    {
        "number": [1, 2, 1, 3, 1, 2, 2],
        "text": ["x", None, "x", "y", "x", "y", "x"],
        "amount": [0.5, 1.5, None, 0.5, 0.5, 0.5, 2.5],
    }
)


@pytest.mark.slow
def test_batches_of_a_query_make_a_kept_table(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_source, "CHUNK_ROWS", 2)
    state, file = tmp_path / "state", tmp_path / "table.parquet"
    FRAME.to_parquet(file, index=False)
    query = Query(FRAME)
    with KeptTable.of_batches(query, "people", state, key="SELECT 7") as table:
        assert_same_scores(gpupif.score(table), gpupif.score(file))
        assert risk_of(table) == risk_of(file)
        expected = score_on_disk(file, tmp_path / "out", keep_input=True)
        kept = score_on_disk(table, tmp_path / "kept", keep_input=True)
        assert stored(kept).equals(stored(expected))
        assert (
            table.table(["text", "amount"]).to_pylist()
            == pa.Table.from_pandas(FRAME).select(["text", "amount"]).to_pylist()
        )
        assert table.schema == {"number": "int64", "text": "string", "amount": "double"}
        assert (table.files[0].path, table.files[0].rows, table.read_files) == ("people", 7, ["people"])
        finish(table)
    assert query.asked == 1
    with KeptTable.of_batches(query, "people", state, key="SELECT 7") as table:
        assert (table.rows, table.read_files) == (7, [])
        assert input_changes(table.files, table.files, table.read_files) == InputChanges([], [], [], [], 1, [])
    assert query.asked == 1
    for key in ("SELECT 8", None):
        with KeptTable.of_batches(query, "people", state, ["number"], key=key) as table:
            assert table.read_files == ["people"]
            finish(table)
        assert len(parts_of(state)) == (key is not None)
    assert query.asked == 3


QUESTIONS = {
    "inspect": lambda table: untimed(gpupif.inspect(table)),
    "suda": lambda table: gpupif.suda(table).top().to_dict(),
    "toxic_pairs": lambda table: untimed(gpupif.toxic_pairs(table)),
    "population": lambda table: untimed(gpupif.risk(table, ["number"], ["text"], population=table)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_every_function_takes_a_kept_table_in_place_of_a_path(folder, tmp_path, question, on_disk):
    with KeptTable.of_files(folder.path, tmp_path / "state") as table:
        found, expected = (in_few_rows(question, one) if on_disk else question(one) for one in (table, folder.path))
    assert found == expected
