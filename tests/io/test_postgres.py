"""Tables that are the result of a query on PostgreSQL, through each library that reads it."""

from __future__ import annotations

import contextlib
import uuid
from decimal import Decimal
from importlib.util import find_spec

import pyarrow as pa
import pytest

import gpupif
from gpupif.errors import ColumnTypeError, InputError, TableReadError
from gpupif.io.databases.open import open_query
from tests.helpers.databases import growth, values_of, varied_table
from tests.helpers.postgres import PASSWORD

pytestmark = [pytest.mark.subprocess, pytest.mark.xdist_group("postgres")]
TABLE = varied_table(60)
ALL = "SELECT * FROM people ORDER BY row"
# What SQLAlchemy reads it by.
ADAPTER = next((name for name in ("psycopg", "psycopg2", "pg8000") if find_spec(name)), None)
MANY = "SELECT i, 'person number ' || i AS name FROM generate_series(1, {}) t(i)"


@pytest.fixture(scope="session")
def people(postgres):
    """The server, with a table in it; and the URL without a password, which it does not accept."""
    with connected(postgres.url()) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", TABLE)
        cursor.execute('ALTER TABLE people ALTER "paid" TYPE numeric(10, 2)')
        cursor.execute("CREATE ROLE nobody LOGIN PASSWORD 'nothing'")
        connection.commit()
    return postgres


@contextlib.contextmanager
def connected(url):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url) as connection:
        yield connection


@pytest.fixture(params=["adbc", "sqlalchemy"])
def url(people, request):
    """Of the database, as each library takes it."""
    if request.param == "sqlalchemy":
        if ADAPTER is None:
            pytest.skip("no library by which SQLAlchemy reads PostgreSQL: pip install 'psycopg[binary]'")
        return people.url(f"postgresql+{ADAPTER}")
    return people.url()


def test_a_query_gives_the_values_of_the_table(url):
    with open_query(url, ALL) as table:
        assert values_of(table) == TABLE.to_pydict()
        assert table.schema.field("paid").type == pa.decimal128(10, 2)
        assert table.schema.field("zoned").type == pa.timestamp("us", "UTC")
        assert table.watermark("row") == "59"
        assert table.watermark("empty") is None


def test_a_query_gets_the_scores_of_its_table(url, on_cpu):
    columns = ["sex", "age", "born", "paid", "is_owner", "empty"]
    with open_query(url, ALL) as table:
        scores = gpupif.score(table, columns=columns).cig
    assert scores.to_pydict() == gpupif.score(TABLE, columns=columns).cig.to_pydict()


def test_types_that_only_postgres_has_are_read(url):
    person = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
    query = f"""SELECT * FROM (VALUES
        (1, 1.50::numeric, 'NaN'::numeric(5, 1), '{person}'::uuid, interval '1 month 2 days 0.5 seconds', 'x'::name),
        (2, 1.5000, 12.5, NULL, NULL, NULL), (3, 'Infinity', NULL, NULL, NULL, NULL)) t(i, n, m, u, s, "o%o""d")"""
    with open_query(url, query) as table:
        values = values_of(table)
        assert table.watermark('o%o"d') == "x"
    assert values["n"] == ["1.5", "1.5", "Infinity"]
    assert [None if one is None else Decimal(one) for one in values["m"]] == [None, Decimal("12.5"), None]
    assert values["u"] == [str(person), None, None]
    assert values["s"][0].total_seconds() == 32 * 86_400 + 0.5
    for bad in ("ARRAY[1, 2]", "timetz '10:00+02'", "int4range(1, 2)"):
        with (
            pytest.raises(ColumnTypeError, match=r"column 'bad': .*CAST"),
            open_query(url, f"SELECT {bad} AS bad") as table,
        ):
            table.names  # noqa: B018


def test_columns_may_begin_with_many_missing_values(url, monkeypatch):
    # Of which the first rows say nothing.
    monkeypatch.setattr("gpupif.io.databases.sqlalchemy_database.MOST_CELLS", 4)
    query = "SELECT CASE WHEN i > 9 THEN 'late' END AS a, nullif(i, i) AS b FROM generate_series(1, 10) t(i)"
    with open_query(url, query) as table:
        assert values_of(table) == {"a": [None] * 9 + ["late"], "b": [None] * 10}
        assert table.schema.field("a").type == pa.string()


def test_bad_queries_are_refused_with_a_reason(url):
    def failing(query, said, error=TableReadError):
        with pytest.raises(error, match=said), open_query(url, query) as table:
            list(table.batches(10))

    failing(
        "SELECT * FROM nobody", '^database postgresql at 127.0.0.1:[0-9]+/postgres: the query failed: relation "nobody"'
    )
    failing("SELECT sex FROM people WHERE", "the query failed: syntax error at end of input")
    failing("WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone", "the query failed: ")
    failing("SELECT setval('people_number', 1) AS a", "the query failed: ")
    failing("SELECT 1 / (i - 90000) AS a FROM generate_series(1, 200000) t(i)", "division by zero")
    failing("SELECT sex, age AS sex FROM people", "repeated are sex", InputError)
    failing("SELECT", "at least one column", InputError)
    with pytest.raises(TableReadError) as caught, open_query(url, "SELECT sex::int AS a FROM people") as table:
        list(table.batches(10))
    assert "invalid input syntax for type integer: (not shown)" in str(caught.value)


def test_a_query_that_writes_is_refused_by_the_database(url, people):
    with connected(people.url()) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE FUNCTION writes() RETURNS int LANGUAGE sql AS 'DELETE FROM people RETURNING 1'")
        connection.commit()
        refused = pytest.raises(TableReadError, match="cannot execute DELETE in a read-only transaction")
        with open_query(url, "SELECT writes() AS a") as table, refused:
            list(table.batches())
        cursor.execute("DROP FUNCTION writes")
        connection.commit()


def test_a_query_reads_one_state_of_the_database(url, people):
    with open_query(url, ALL) as table, connected(people.url()) as other, other.cursor() as cursor:
        assert table.watermark("row") == "59"
        cursor.execute("INSERT INTO people (row) VALUES (60)")
        other.commit()
        try:
            assert sum(batch.num_rows for batch in table.batches(7)) == 60
            assert table.watermark("row") == "59"
        finally:
            cursor.execute("DELETE FROM people WHERE row = 60")
            other.commit()


def test_a_lost_connection_is_an_error(url, people):
    with open_query(url, MANY.format(3_000_000) + ", pg_backend_pid() p") as table:
        reading = table.batches(1000)
        next(reading)
        with connected(people.url()) as other, other.cursor() as cursor:
            cursor.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND query LIKE '%generate_series%' OR state = 'idle in transaction'"
            )
            assert cursor.fetchone()[0] >= 1
        with pytest.raises(
            TableReadError, match=r"^database postgresql at .*: reading broke off after [\d,]+ rows: .*[a-z]\.$"
        ):
            list(reading)
        assert list(reading) == []
        with pytest.raises(TableReadError):
            table.watermark("i")


def test_a_refused_login_is_an_error_without_secrets(url, people):
    def refused(changed, said):
        with pytest.raises(TableReadError, match=said) as caught:
            open_query(changed, "SELECT 1 AS a")
        assert PASSWORD not in str(caught.value)
        assert "custodian" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert "wrong secret" not in str(caught.value)

    scheme = url.partition("://")[0]
    refused(people.url(scheme, "wrong secret"), 'could not connect: password authentication failed for user "')
    refused(people.url(scheme).replace("/postgres", "/nowhere"), 'could not connect: database "nowhere" does not exist')
    refused(people.url(scheme).replace(people.address, "127.0.0.1:1"), "could not connect: .*refused")
    refused(people.url(scheme).replace(people.address, "nowhere.invalid"), "could not connect: .*nowhere.invalid")
    denied = pytest.raises(TableReadError, match="the query failed: permission denied for table people")
    with open_query(f"{scheme}://nobody:nothing@{people.address}/postgres", ALL) as table, denied:
        list(table.batches())


def test_passwords_may_have_unencoded_special_signs(people):
    with open_query(people.url(password=PASSWORD.replace("?", "%3F")), "SELECT 1 AS a") as table:
        assert values_of(table) == {"a": [1]}


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(url):
    rows = 3_000_000 if url.startswith("postgresql:") else 500_000
    assert growth(url, MANY.format(rows), rows) < 40 << 20
