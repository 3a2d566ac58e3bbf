"""Large CSV files that are read chunk by chunk have the rows that Arrow reads, whatever text they have."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpupif
from gpupif.errors import TableReadError
from gpupif.io import csv_chunks, csv_files
from gpupif.io.base import every_column
from gpupif.io.read import open_source, read_table


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    """Make chunks of a few lines, with few distinct texts."""
    with pytest.MonkeyPatch.context() as patched:
        for name, size in {
            "SMALLEST": 0,
            "CHUNK_BYTES": 64,
            "LONGEST_LINE": 40,
            "FEW_TEXTS": 2,
            "MOST_TEXTS": 4,
        }.items():
            patched.setattr(csv_chunks, name, size)
        yield


def read_by(read_chunks, path, pick):
    """Return the table, or the message of the error."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_files, "read_chunks", read_chunks)
        try:
            return read_table(path, pick)
        except TableReadError as error:
            return str(error)


def stream(stream_chunks, path, names):
    """Return the rows, and the message of the error after them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(csv_files, "stream_chunks", stream_chunks)
        rows, said = [], ""
        try:
            source = open_source(path)
            for _, chunk in source.read(names or source.names, 7, 1 << 20):
                rows += chunk.to_pylist()
        except TableReadError as error:
            said = str(error)
    return rows, said


def assert_as_arrow_reads_it(path, content, pick=every_column):
    """Return the number of batches that were read chunk by chunk; 0 if Arrow read the file."""
    path.write_bytes(content)
    batches = []

    def read_chunks(*arguments):
        table = csv_chunks.read_chunks(*arguments)
        batches.append(0 if table is None else table.column(0).num_chunks)
        return table

    found, expected = read_by(read_chunks, path, pick), read_by(lambda *_: None, path, pick)
    if isinstance(expected, str):
        assert found == expected
    else:
        # Dictionaries are equal too: values are numbered in order of first appearance.
        assert found.schema == expected.schema
        for one, other in zip(found.columns, expected.columns, strict=True):
            assert one.combine_chunks().equals(other.combine_chunks())
    (rows, said), (all_rows, error) = (
        stream(chunks, path, pick([])) for chunks in (csv_chunks.stream_chunks, lambda *_: iter(()))
    )
    # If a file is no CSV, the chunks may have more rows before the error.
    assert (rows, said) == (all_rows, error) or (error and said == error and rows[: len(all_rows)] == all_rows)
    return sum(batches)


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


# The text of a field in a file.
NUMBERS = st.integers(-5, 500).map(str)
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='",\r\n'), max_size=20)
QUOTED = st.text(st.sampled_from('abcdefgh é,"\n\r '), max_size=24).map(quoted)
FIELDS = st.one_of(NUMBERS, NUMBERS, PLAIN, QUOTED)
# Fields and lines that few files have, or only damaged files.
ODD_FIELDS = st.sampled_from(['a"b', '"a"b', '"', "a\rb", '""""', '""', "\t", "x" * 50, "\0", '"\r\n"'])
ODD = st.one_of(ODD_FIELDS.map("1,{},2".format), PLAIN, st.just(""))


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    lines=st.lists(st.lists(FIELDS, min_size=3, max_size=3).map(",".join), max_size=40),
    odd=st.lists(st.tuples(st.integers(0, 60), ODD), max_size=1),
    newline=st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    end=st.sampled_from(["", "\n", "\n\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    columns=st.sampled_from([None, ["b"], ["c", "a"]]),
)
def test_any_csv_file_is_read_in_pieces_as_by_arrow(tmp_path_factory, lines, odd, newline, end, mark, columns):
    for place, line in odd:
        lines.insert(place, line)
    content = mark + newline.join(['a,"b",c', *lines]) + end
    assert_as_arrow_reads_it(tmp_path_factory.getbasetemp() / "any.csv", content.encode(), lambda _: columns)


LINES = [f'{number % 7},"{number % 3} ""x"", y",' for number in range(40)] + [f"é {n},{n},{n}" for n in range(40)]
PLAIN_FILES = {
    "as usual": "a,b,c\n" + "\n".join(LINES) + "\n",
    "byte order mark, carriage returns": "\ufeffa,b,c\r\n" + "\r\n".join(LINES),
    "empty lines": "\n\na,b,c\n\n" + "\n\n".join(LINES) + "\n\n\n",
    "header over two lines": '"a\nb",b,c\n' + "\n".join(LINES),
    "semicolons": "a;b;c\n" + "\n".join(line.replace(",", ";") for line in LINES),
}


@pytest.mark.parametrize("content", PLAIN_FILES.values(), ids=PLAIN_FILES)
@pytest.mark.parametrize("threads", [1, 3])
def test_usual_files_are_read_in_chunks(tmp_path, content, threads):
    with gpupif.config(threads=threads):
        assert assert_as_arrow_reads_it(tmp_path / "t.csv", content.encode()) > 10


ODD_FILES = {
    "line too long": "a,b\n" + "1,2\n" * 40 + f"{'x' * 200},2\n",
    "line breaks in quotes": "a,b\n" + '1,"\n\n\n\n2"\n' * 40,
    "lone carriage return": "a,b\n" + "1,2\n" * 40 + "1\r,2\n",
    "too few fields": "a,b\n" + "1,2\n" * 40 + "1\n",
    "too many fields": "a,b\n" + "1,2\n" * 40 + "1,2,3\n",
    "quotes without an end": "a,b\n" + "1,2\n" * 40 + '1,"2\n',
    "one column": "a\n" + "1\n\n" * 40,
}


@pytest.mark.parametrize("content", ODD_FILES.values(), ids=ODD_FILES)
def test_other_files_are_left_to_arrow(tmp_path, content):
    assert assert_as_arrow_reads_it(tmp_path / "t.csv", content.encode()) == 0


def test_a_csv_file_of_empty_lines_is_refused(tmp_path):
    assert_as_arrow_reads_it(tmp_path / "t.csv", b"a,b\n" + b"\n" * 200)
    with pytest.raises(TableReadError, match="at least one row, got none"):
        read_table(tmp_path / "t.csv")


def test_csv_text_in_another_encoding_is_refused(tmp_path):
    content = ("a,b\n" + "1,2\n" * 40 + "1,é\n").encode("latin-1")
    assert assert_as_arrow_reads_it(tmp_path / "t.csv", content) == 0
    with pytest.raises(TableReadError, match="expected text in UTF-8"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize(("content", "line"), [('1,x\n2,"y\n3,z\n4,x\n', 3), ('"1,x\n', 2), ('1,"a\nb"\n2,"', 4)])
def test_an_open_quote_is_refused_with_its_line(tmp_path, content, line, ending):
    file = tmp_path / f"table.{ending}"
    data = f"a,b\n{content}".encode()
    file.write_bytes(gzip.compress(data) if ending == "csv.gz" else data)
    expected = rf"table\.{ending}: could not be read as CSV: a quote is opened in or behind line {line}, and not closed"
    for limit in (None, "8GiB"):
        with gpupif.config(memory_limit=limit), pytest.raises(gpupif.errors.TableReadError, match=expected):
            gpupif.score_files(file, tmp_path / "out.parquet", "cig")
    assert [entry.name for entry in tmp_path.iterdir()] == [file.name]


def test_quotes_in_the_middle_of_fields_need_no_end(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('a,b\n1,5" pipe\n2,x\n2,x\n')
    assert gpupif.score_files(file, tmp_path / "out.parquet", "cig").rows == 3
