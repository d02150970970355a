"""The recipes in SQL return the same values as the package."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from conftest import server
from polyflake import Layout

LAYOUT = Layout("twitter")
HERE = Path(__file__).parent
DAY = timedelta(days=1)


class Database:
    """The functions from one of the files, installed in their own database."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall()) if cursor.description else []

    def value(self, statement: str, *values: object) -> Any:
        [[value]] = self.rows(statement, *values)
        return value


def is_postgres(database: Database) -> bool:
    return isinstance(database.connection, psycopg.Connection)


@pytest.fixture(scope="module")
def postgres() -> Iterator[Database]:
    with psycopg.connect(server("postgres").geturl(), autocommit=True) as connection:
        database = Database(connection)
        database.rows("DROP SCHEMA IF EXISTS recipe CASCADE")
        database.rows("CREATE SCHEMA recipe")
        database.rows("SET search_path = recipe")
        # A time zone in which the session's days differ from UTC's.
        database.rows("SET TIME ZONE 'Pacific/Auckland'")
        database.rows((HERE / "postgresql.sql").read_text(encoding="utf-8"))
        yield database


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Database]:
    url = server("mariadb")
    where = {"host": url.hostname, "port": url.port, "autocommit": True}
    with pymysql.connect(user="root", **where) as root:
        Database(root).rows("SET GLOBAL log_bin_trust_function_creators = 1")
    user = {"user": url.username, "password": url.password, "database": url.path.strip("/")}
    with pymysql.connect(**where, **user) as connection:
        database = Database(connection)
        database.rows("SET time_zone = '+13:00'")
        text = (HERE / "mysql.sql").read_text(encoding="utf-8")
        code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
        for statement in filter(str.strip, code.split(";")):
            database.rows(statement)
        yield database


@pytest.fixture(params=["postgres", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    made: Database = request.getfixturevalue(request.param)
    return made


def some_ids() -> list[int]:
    random.seed(17)
    edges = [0, 1, 4095, 4096, 2**22 - 1, 2**22, 2**63 - 1, 1541815603606036480]
    return edges + [random.getrandbits(63) for _ in range(5000)]


def test_what_an_id_says(database: Database) -> None:
    database.rows("CREATE TEMPORARY TABLE ids (id BIGINT PRIMARY KEY)")
    numbers = sorted(set(some_ids()))
    with database.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO ids VALUES (%s)", [(number,) for number in numbers])
    if is_postgres(database):
        seen = database.rows(
            "SELECT id, made AT TIME ZONE 'UTC', node, sequence FROM ids, snowflake(id) ORDER BY id"
        )
    else:
        seen = database.rows(
            "SELECT id, snowflake_time(id), snowflake_node(id), snowflake_sequence(id)"
            " FROM ids ORDER BY id"
        )
    database.rows("DROP TABLE ids")
    expected = [
        (one.id, one.time and one.time.replace(tzinfo=None), one.node, one.sequence)
        for one in map(LAYOUT.decode, numbers)
    ]
    assert seen == expected


def test_nothing_says_nothing(database: Database) -> None:
    made = "(snowflake(NULL)).made"
    if not is_postgres(database):
        made = "snowflake_time(NULL)"
    assert database.rows(f"SELECT {made}, first_id(NULL), last_id(NULL)") == [(None, None, None)]


def some_days() -> list[date]:
    random.seed(17)
    first, last = date(2010, 11, 5), date(2080, 7, 9)
    span = (last - first).days
    leap = [date(2028, 2, 28), date(2028, 2, 29), date(2028, 3, 1), date(2026, 12, 31)]
    return [first, last, *leap, *(first + random.randint(0, span) * DAY for _ in range(500))]


def test_the_ids_of_a_day(database: Database) -> None:
    for day in some_days():
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        [(first, last)] = database.rows("SELECT first_id(%s), last_id(%s)", day, day)
        assert first == LAYOUT.min_id(start)
        assert last == LAYOUT.min_id(start + DAY) - 1
        assert last == LAYOUT.max_id(start + DAY - timedelta(milliseconds=1))


def test_the_days_that_the_layout_cuts(database: Database) -> None:
    epoch, end = LAYOUT.epoch, LAYOUT.ends_at
    assert epoch is not None
    assert end is not None
    days = (epoch.date(), end.date())
    bounds = [database.rows("SELECT first_id(%s), last_id(%s)", day, day)[0] for day in days]
    assert bounds[0][0] == 0
    assert bounds[0][1] == LAYOUT.min_id(datetime(2010, 11, 5, tzinfo=UTC)) - 1
    assert bounds[1][0] == LAYOUT.min_id(datetime(end.year, end.month, end.day, tzinfo=UTC))
    assert bounds[1][1] == 2**63 - 1
    # No ID lies between these.
    first, last = database.rows("SELECT first_id('2010-11-03'), last_id('2010-11-03')")[0]
    assert first > last
    with pytest.raises((psycopg.DataError, pymysql.DatabaseError), match="out of range"):
        database.rows("SELECT first_id('2080-07-11')")


def test_a_day_is_found_by_the_index(database: Database) -> None:
    """The database treats the bounds of BETWEEN as constants."""
    database.rows("CREATE TEMPORARY TABLE orders (id BIGINT PRIMARY KEY)")
    start = datetime(2026, 11, 22, tzinfo=UTC)
    numbers = [LAYOUT.compose(start + timedelta(minutes=n), 7, 0) for n in range(-2000, 2000)]
    with database.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO orders VALUES (%s)", [(number,) for number in numbers])
    database.rows("ANALYZE" + ("" if is_postgres(database) else " TABLE") + " orders")
    query = "SELECT * FROM orders WHERE id BETWEEN first_id('2026-11-22') AND last_id('2026-11-22')"
    found = [number for [number] in database.rows(f"{query} ORDER BY id")]
    plan = str(database.rows(f"EXPLAIN {query}"))
    database.rows("DROP TABLE orders")
    assert found == numbers[2000:3440]
    if is_postgres(database):
        assert "Index Cond" in plan
        assert str(LAYOUT.min_id(start)) in plan
    else:
        assert "'range', 'PRIMARY'" in plan
