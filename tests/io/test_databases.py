"""Tables that are the result of a query: DuckDB, SQLite, addresses, statements and types. See test_postgres.py."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
import uuid
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpupif
from gpupif.errors import ColumnTypeError, InputError, TableReadError
from gpupif.io.databases.address import HIDDEN, parse_address
from gpupif.io.databases.base import QueryTable, one_query
from gpupif.io.databases.open import choose_driver, open_query
from gpupif.io.databases.plain_types import decimal_text, decimals, time_spans, uuid_text
from gpupif.io.databases.sqlalchemy_database import arrow_column, find_kind
from tests.helpers.databases import growth, in_duckdb, in_sqlite, stored_in_sqlite, values_of, varied_table

TABLE = varied_table(60)
ALL = "SELECT * FROM people ORDER BY row"
SCORED = ["sex", "age", "born", "paid", "is_owner", "empty"]


@pytest.fixture(scope="module")
def urls(tmp_path_factory):
    folder = tmp_path_factory.mktemp("databases")
    return {"duckdb": in_duckdb(TABLE, folder / "p.duckdb"), "sqlite": in_sqlite(TABLE, folder / "p.sqlite")}


def test_duckdb_gives_the_values_of_the_table(urls):
    with open_query(urls["duckdb"], ALL) as table:
        assert table.schema.equals(TABLE.schema)
        assert values_of(table) == TABLE.to_pydict()


def test_sqlite_gives_the_values_that_it_stores(urls):
    expected = {name: [stored_in_sqlite(value) for value in values] for name, values in TABLE.to_pydict().items()}
    with open_query(urls["sqlite"], ALL) as table:
        assert values_of(table) == expected
        assert table.schema.field("paid").type == pa.float64()
        assert table.schema.field("empty").type == pa.null()


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_a_query_gets_the_scores_of_its_table(urls, database, on_cpu):
    with open_query(urls[database], ALL) as table:
        scores = gpupif.score(table, columns=SCORED).cig
        seen = gpupif.inspect(table)
    assert scores.to_pydict() == gpupif.score(TABLE, columns=SCORED).cig.to_pydict()
    assert seen.rows == TABLE.num_rows


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_batches_are_bounded_and_can_be_read_again(urls, database):
    with open_query(urls[database], ALL) as table:
        for rows in (1, 7, 60, 1000):
            sizes = [batch.num_rows for batch in table.batches(rows)]
            assert sum(sizes) == 60
            assert 0 < max(sizes) <= rows
        assert table.watermark("row") == "59"


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_a_second_reading_is_refused_while_one_is_going_on(urls, database):
    with open_query(urls[database], ALL) as table:
        reading = table.batches(1)
        next(reading)
        for ask in (lambda: next(table.batches(1)), lambda: table.watermark("row")):
            with pytest.raises(InputError, match="its rows are being read"):
                ask()
        reading.close()
        assert table.watermark("row") == "59"


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_a_watermark_is_the_highest_value_of_a_column(urls, database):
    with open_query(urls[database], f"{ALL}; -- all") as table:
        assert table.watermark("empty") is None
        assert table.watermark("photo") == "00ff"
        born = max(value for value in TABLE["born"].to_pylist() if value is not None)
        assert table.watermark("born") == born.isoformat()
        with pytest.raises(TableReadError, match=r"highest value of column 'no such'.*no such"):
            table.watermark("no such")


def test_the_identity_of_a_query_changes_with_its_address_and_text():
    class NoDatabase:
        errors = ()

    def identity(url, query="SELECT 1"):
        return QueryTable(NoDatabase(), parse_address(url), query).identity

    same = identity("postgresql://me:secret@host/people")
    assert identity("postgresql://me:another@host/people") == same
    others = [
        "postgresql://you:secret@host/people",
        "postgresql://me:secret@host/nobody",
        "postgresql://me:secret@h/people",
    ]
    others.append("postgresql://me:secret@host/people?options=-csearch_path%3Dpast")
    found = {same, identity("postgresql://me:secret@host/people", "SELECT 2"), *map(identity, others)}
    assert len(found) == 2 + len(others)


@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_bad_queries_are_refused_with_a_reason(urls, database):
    def failing(query, error, said):
        with pytest.raises(error, match=said), open_query(urls[database], query) as table:
            list(table.batches(10))

    failing("SELECT * FROM nobody", TableReadError, f"^database {database} at .*: the query failed: .*nobody[^.!]*[.]$")
    failing("SELECT sex FROM people WHERE", TableReadError, "the query failed: ")
    failing("SELECT sex, age AS sex FROM people", InputError, "query: .*repeated are sex")
    failing("DELETE FROM people", InputError, "query: expected one SELECT .*begins with DELETE")
    failing(f"{ALL}; DELETE FROM people", InputError, "query: .*several statements")
    with open_query(urls[database], ALL) as table:
        assert sum(batch.num_rows for batch in table.batches()) == 60


@pytest.mark.usefixtures("on_cpu")
def test_a_query_without_rows_gives_no_batches(urls):
    for url in urls.values():
        with open_query(url, "SELECT sex FROM people WHERE row < 0") as table:
            assert list(table.batches(10)) == []
            with pytest.raises(InputError, match="expected at least one row, got none"):
                gpupif.score(table)


def test_nested_values_are_refused_by_column():
    for value in ("[1, 2]", "{'a': 1}", "MAP {1: 2}", "TIMETZ '10:00:00+02'"):
        with (
            pytest.raises(ColumnTypeError, match=r"column 'bad': .*CAST"),
            open_query("duckdb://", f"SELECT {value} AS bad") as table,
        ):
            table.names  # noqa: B018


@pytest.mark.usefixtures("on_cpu")
def test_values_are_not_in_messages():
    query = "SELECT CAST(name AS INTEGER) AS a FROM (VALUES ('it''s Alice''s')) t(name)"
    with pytest.raises(TableReadError) as caught, open_query("duckdb://", query) as table:
        list(table.batches())
    assert "Alice" not in str(caught.value)
    assert "not convert" in str(caught.value)
    with pytest.raises(TableReadError) as caught, open_query("duckdb://", query) as table:
        gpupif.score(table)
    assert str(caught.value).startswith("database duckdb: the query failed: ")


def test_variables_of_python_are_no_tables():
    people = TABLE
    with pytest.raises(TableReadError, match="people"), open_query("duckdb://", "SELECT * FROM people") as table:
        table.names  # noqa: B018
    assert people is TABLE


def test_relative_paths_of_databases_begin_in_the_given_folder(tmp_path, urls):
    folder = tmp_path / "a b%#"
    folder.mkdir()
    pa.parquet.write_table(TABLE, folder / "people.parquet")
    in_duckdb(TABLE, folder / "p.duckdb")
    in_sqlite(TABLE, folder / "p.sqlite")
    for url, source in (
        ("duckdb://", "'people.parquet'"),
        ("duckdb:///p.duckdb", "people"),
        ("sqlite:///p.sqlite", "people"),
    ):
        with open_query(url, f"SELECT count(*) AS n FROM {source}", folder=folder) as table:
            assert values_of(table) == {"n": [60]}


def test_a_missing_database_file_is_not_created(tmp_path):
    for scheme in ("duckdb", "sqlite"):
        with pytest.raises(TableReadError, match=r"none\.db: no such file"):
            open_query(f"{scheme}:///none.db", ALL, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "not.db").write_text("no database, however long this line is " * 50)
    for scheme in ("duckdb", "sqlite"):
        with (
            pytest.raises(TableReadError, match=r"database .* at not.db: "),
            open_query(f"{scheme}:///not.db", ALL, folder=tmp_path) as table,
        ):
            table.names  # noqa: B018


def test_sqlite_reads_one_state_and_does_not_write(tmp_path):
    url = in_sqlite(TABLE, tmp_path / "p.sqlite")
    with contextlib.closing(sqlite3.connect(tmp_path / "p.sqlite")) as other:
        other.execute("PRAGMA journal_mode = WAL")
        with open_query(url, ALL) as table:
            assert table.watermark("row") == "59"
            other.execute("INSERT INTO people (row) VALUES (60)")
            other.commit()
            assert sum(batch.num_rows for batch in table.batches()) == 60
            assert table.watermark("row") == "59"
        with open_query(url, ALL) as table:
            assert table.watermark("row") == "60"


def test_columns_of_sqlite_with_several_types_are_handled(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "p.sqlite")) as connection:
        connection.execute('CREATE TABLE t (n NUMERIC, mixed, [o%o"d] TEXT)')
        connection.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [(1, 1, "a")] * 9 + [(1.5, "Alice", None), (None, None, "b")]
        )
        connection.commit()
    with open_query("sqlite:///p.sqlite", 'SELECT n, "o%o""d" FROM t', folder=tmp_path) as table:
        assert values_of(table) == {"n": [1.0] * 9 + [1.5, None], 'o%o"d': ["a"] * 9 + [None, "b"]}
        assert table.watermark('o%o"d') == "b"
    with open_query("sqlite:///p.sqlite", "SELECT count(*), 1 + 1 FROM t", folder=tmp_path) as table:
        assert values_of(table) == {"count(*)": [11], "1 + 1": [2]}
    with (
        open_query("sqlite:///p.sqlite", "SELECT mixed FROM t", folder=tmp_path) as table,
        pytest.raises(TableReadError, match=r"column 'mixed': .*integer and text.*CAST") as caught,
    ):
        table.names  # noqa: B018
    assert "Alice" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.subprocess
@pytest.mark.parametrize("database", ["duckdb", "sqlite"])
def test_memory_does_not_grow_with_the_rows(database, tmp_path):
    rows = 4_000_000 if database == "duckdb" else 500_000
    sqlite3.connect(tmp_path / "p.sqlite").close()
    url = {"duckdb": "duckdb://", "sqlite": f"sqlite:///{tmp_path / 'p.sqlite'}"}[database]
    numbers = {
        "duckdb": f"SELECT range AS i, 'person number ' || range AS name FROM range({rows})",
        "sqlite": f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows - 1}) "
        "SELECT i, 'person number ' || i AS name FROM n",
    }[database]
    assert growth(url, numbers, rows) < 40 << 20


# --- drivers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connection", "driver", "package", "said"),
    [
        ("duckdb://", "auto", "duckdb", r"pip install 'gpupif\[duckdb\]'"),
        ("postgresql://h/d", "adbc", "adbc_driver_manager", r"pip install 'gpupif\[adbc\]'"),
        ("postgresql://h/d", "sqlalchemy", "sqlalchemy", r"pip install 'gpupif\[sqlalchemy\]'"),
    ],
)
def test_a_driver_that_is_not_installed_is_named(monkeypatch, connection, driver, package, said):
    monkeypatch.setattr("gpupif.io.databases.open.find_spec", lambda name: None if name == package else True)
    with pytest.raises(InputError, match=f"driver: .*{package}.*{said}"):
        open_query(connection, "SELECT 1 AS a", driver)


@pytest.mark.parametrize(
    ("connection", "installed", "expected"),
    [
        ("duckdb://", "", "duckdb"),
        ("postgresql://h/d", "sqlalchemy adbc_driver_postgresql", "adbc"),
        ("postgres://h/d", "sqlalchemy adbc_driver_postgresql", "adbc"),
        ("postgresql+psycopg://h/d", "sqlalchemy adbc_driver_postgresql", "sqlalchemy"),
        ("postgresql://h/d", "sqlalchemy", "sqlalchemy"),
        ("postgresql://h/d", "", "adbc"),
        ("sqlite:///f.db", "sqlalchemy adbc_driver_sqlite", "sqlalchemy"),
        ("snowflake://h/d", "sqlalchemy adbc_driver_snowflake", "adbc"),
        ("mysql://h/d", "sqlalchemy", "sqlalchemy"),
    ],
)
def test_the_chosen_driver_is_used(monkeypatch, connection, installed, expected):
    monkeypatch.setattr("gpupif.io.databases.open.find_spec", lambda name: name in installed.split() or None)
    assert choose_driver("auto", parse_address(connection)) == expected


def test_drivers_that_do_not_fit_the_address_are_refused():
    with pytest.raises(InputError, match="driver: expected one of auto, duckdb, adbc, sqlalchemy, got 'odbc'"):
        open_query("duckdb://", "SELECT 1 AS a", "odbc")
    for connection, driver in (("duckdb://", "adbc"), ("sqlite://", "duckdb")):
        with pytest.raises(InputError, match=f"driver: '{driver}' does not read database"):
            open_query(connection, "SELECT 1 AS a", driver)
    with pytest.raises(InputError, match="SQLAlchemy knows no such database"):
        open_query("nonsense://h/d", "SELECT 1 AS a")
    with pytest.raises(InputError, match="needs the Python package 'MySQLdb' for it, which is not installed"):
        open_query("mysql+mysqldb://h/d", "SELECT 1 AS a")


# --- addresses -----------------------------------------------------------------------------------

SECRETS = st.text(st.sampled_from("abcXYZ019-_.~ !$'()*+,:@/=[]|<>äß€%"), min_size=4, max_size=12)


@given(SECRETS, st.sampled_from(["login", "option", "ODBC"]))
def test_secrets_of_an_address_are_never_shown(secret, place):
    encoded = quote(secret, safe="")
    url = {
        "login": f"postgresql://me:{encoded}@host:1/people",
        "option": f"postgresql://me@host:1/people?sslpassword={encoded}",
        "ODBC": f"mssql+pyodbc://host:1/people?odbc_connect=UID%3Dme%3BPWD%3D%7B{encoded}%7D",
    }[place]
    address = parse_address(url)
    assert address.url == url
    told = address.redact(f"{secret}\n{encoded}\n{address.url}").split("\n")
    assert told[:2] == [HIDDEN, HIDDEN]
    assert encoded not in told[2]


@given(SECRETS)
def test_passwords_may_be_written_as_they_are(secret):
    meant = parse_address(f"postgresql://me:{quote(secret, safe='')}@host:1/people")
    assert parse_address(f"postgresql://me:{secret.replace('%', '%25')}@host:1/people").url == meant.url


def test_addresses_are_shown_without_secrets():
    address = parse_address("postgresql://custodian:secret@host/people?sslpassword=secret")
    assert repr(address) == (
        "Address(scheme='postgresql', adapter='', path='people', name='database postgresql at host/people')"
    )


def test_quoted_names_of_users_are_hidden():
    address = parse_address("postgresql://custodian:x@host/people")
    assert address.redact('role "custodian" of custodians') == 'role "***" of custodians'
    assert address.name == "database postgresql at host/people"


@pytest.mark.parametrize(
    "connection",
    [
        "people.db",
        "",
        "://secret",
        "postgresql://u:secret?secret@h/d",
        "postgresql://u:p@h secret/d",
        "postgresql://u/secret@h",
        "postgresql://u:secret@[::1/d",
    ],
)
def test_bad_addresses_are_refused(connection):
    with pytest.raises(InputError, match=r"^connection: expected ") as caught:
        parse_address(connection)
    assert "secret" not in str(caught.value)


# --- statements ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("SELECT 1;", "SELECT 1"),
        (" -- a; b\n(select ';' AS \"a;\") ; -- the end;", " -- a; b\n(select ';' AS \"a;\") "),
        ("/* one; */ WITH a AS (VALUES (1)) TABLE a", None),
        ("SELECT $x$;$x$, $$;$$, `a;b`", None),
        ("VALUES (1)", None),
        ("FROM people", None),
    ],
)
def test_statements_that_only_read_are_accepted(query, same):
    assert one_query(query) == (same or query)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "got none"),
        ("-- SELECT 1", "got none"),
        ("drop table people", "begins with DROP"),
        ("EXPLAIN SELECT 1", "begins with EXPLAIN"),
        ("SELECT 1; SELECT 2", "several statements"),
        ("SELECT 1; /* */ COMMIT", "several statements"),
    ],
)
def test_statements_that_do_not_only_read_are_refused(query, said):
    with pytest.raises(InputError, match=f"^query: .*{said}"):
        one_query(query)


# --- types ---------------------------------------------------------------------------------------


@given(st.lists(st.none() | st.uuids()), st.integers(0, 3))
def test_uuids_are_text(values, start):
    array = pa.array([None if one is None else one.bytes for one in values], pa.binary(16))[start:]
    assert uuid_text(array).to_pylist() == [None if one is None else str(one) for one in values[start:]]


INTERVALS = st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000), st.integers(-(10**12), 10**12))


@given(st.lists(st.none() | INTERVALS), st.integers(0, 3))
def test_intervals_are_spans_of_time(values, start):
    array = pa.array([one and pa.MonthDayNano(one) for one in values], pa.month_day_nano_interval())[start:]
    expected = [
        None if one is None else datetime.timedelta(days=30 * one[0] + one[1], microseconds=one[2] // 1000)
        for one in values[start:]
    ]
    assert time_spans(array).to_pylist() == expected


@given(st.lists(st.none() | st.decimals(allow_nan=True, allow_infinity=True, places=4), min_size=1))
def test_equal_decimals_have_the_same_text(values):
    texts = [None if value is None else format(value, "f") for value in values]
    told = decimals(pa.array(texts, pa.string()), pa.string()).to_pylist()
    assert told == [None if value is None else decimal_text(value) for value in values]
    for value, text in zip(values, told, strict=True):
        assert (text is None) == (value is None or value.is_nan())
        if text is not None:
            assert Decimal(text) == value
            assert not ("." in text and text.endswith(("0", ".")))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], pa.null()),
        ([None], pa.null()),
        ([True, None], pa.bool_()),
        ([1, 2], pa.int64()),
        ([1, 1.5], pa.float64()),
        (["a"], pa.string()),
        ([memoryview(b"a")], pa.binary()),
        ([uuid.UUID(int=1)], pa.string()),
        ([datetime.date(2020, 1, 1)], pa.date32()),
        ([datetime.datetime(2020, 1, 1)], pa.timestamp("us")),
        (
            [datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))],
            pa.timestamp("us", "UTC"),
        ),
        ([Decimal("1.50")], pa.string()),
    ],
)
def test_python_values_have_the_expected_kind(values, kind):
    found = find_kind("x", values, (None, None))
    assert found.type == kind
    assert arrow_column("x", [*values, None], found, 0).null_count == sum(one is None for one in values) + 1


def test_values_of_later_rows_must_fit_the_type_of_the_column():
    kind = find_kind("x", [1, 2], (None, None))
    for values, said in (
        [["secret"], "expected int64.* got str in row 8 "],
        [[2**70], "from row 7 .*do not fit int64"],
    ):
        with pytest.raises(TableReadError, match=f"column 'x': .*{said}.*CAST") as caught:
            arrow_column("x", [1, *values], kind, 7)
        assert "secret" not in str(caught.value)
    with pytest.raises(TableReadError, match="got int and str"):
        find_kind("x", [1, "a"], (None, None))
    for nested in ([1], {"a": 1}):
        with pytest.raises(ColumnTypeError, match="column 'x'"):
            find_kind("x", [nested], (None, None))
