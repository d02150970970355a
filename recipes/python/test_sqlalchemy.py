"""The recipe for SQLAlchemy, on PostgreSQL, MariaDB and SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from conftest import Generator, server
from polyflake import IdGenerator, Layout
from polyflake_sqlalchemy import SnowflakeID, made_between, snowflake_key
from sqlalchemy import Engine, create_engine, insert, inspect, select, text
from sqlalchemy.exc import StatementError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

DRIVERS = {"postgres": "postgresql+psycopg", "mariadb": "mysql+pymysql"}


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = (
        f"sqlite:///{tmp_path}/orders.db"
        if request.param == "sqlite"
        else server(request.param)._replace(scheme=DRIVERS[request.param]).geturl()
    )
    made = create_engine(url)
    yield made
    made.dispose()


def orders(ids: IdGenerator, engine: Engine) -> type:
    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = snowflake_key(ids)
        parent: Mapped[int | None] = mapped_column(SnowflakeID)

    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    return Order


def test_new_rows_take_the_next_ids(ids: Generator, engine: Engine) -> None:
    Order = orders(ids, engine)
    before = ids.next_id()
    with Session(engine) as session:
        rows = [Order() for _ in range(300)]
        session.add_all(rows)
        session.flush()
        session.execute(insert(Order), [{"parent": rows[0].id}] * 300)
        session.commit()
        found = session.scalars(select(Order.id).order_by(Order.id)).all()
    after = ids.next_id()
    assert len(set(found)) == 600
    assert before < found[0] < found[-1] < after
    assert all(type(id_) is int for id_ in found)
    [column] = [c for c in inspect(engine).get_columns("orders") if c["name"] == "id"]
    assert str(column["type"]).startswith("BIGINT")


ENVIRONMENT = """
from alembic import context
from polyflake_sqlalchemy import render_item

given = context.config.attributes
with given["engine"].connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=given["metadata"],
        render_item=render_item,
        include_name=lambda name, kind, _parents: kind != "table" or name == "orders",
    )
    with context.begin_transaction():
        context.run_migrations()
"""


def test_alembic_generates_a_migration_that_runs(
    ids: Generator, engine: Engine, tmp_path: Path
) -> None:
    Order = orders(ids, engine)
    Order.metadata.drop_all(engine)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
    config = Config(tmp_path / "alembic.ini")
    command.init(config, str(tmp_path / "alembic"))
    (tmp_path / "alembic/env.py").write_text(ENVIRONMENT)
    config = Config(tmp_path / "alembic.ini")
    config.attributes.update(engine=engine, metadata=Order.metadata)

    command.revision(config, autogenerate=True)
    [migration] = (tmp_path / "alembic/versions").glob("*.py")
    assert "sa.Column('id', sa.BigInteger()," in migration.read_text()
    assert "polyflake" not in migration.read_text()
    command.upgrade(config, "head")
    # Fails if the database does not match the classes.
    command.check(config)
    with Session(engine) as session:
        session.add(Order())
        session.commit()
        [order] = session.scalars(select(Order)).all()
        assert order.id < ids.next_id()
    command.downgrade(config, "base")


def test_an_id_comes_back_as_it_went(engine: Engine) -> None:
    numbers = [1, 2**53 + 1, 1541815603606036481, 2**63 - 1]
    Order = orders(Given(numbers), engine)
    with Session(engine) as session:
        session.add_all([Order(), Order(), Order(), Order()])
        session.commit()
        assert session.scalars(select(Order.id).order_by(Order.id)).all() == numbers
        # As in JSON or in a URL.
        same = select(Order.id).where(Order.id == str(numbers[2]))
        assert session.scalars(same).all() == [numbers[2]]
        for wrong in (1.5, "12x", "-1", object()):
            with pytest.raises((StatementError, TypeError)):
                session.scalars(select(Order.id).where(Order.id == wrong)).all()


class Given:
    """The test's own generator."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = iter(numbers)

    def next_id(self) -> int:
        return next(self.numbers)

    def next_ids(self, n: int) -> list[int]:
        return [next(self.numbers) for _ in range(n)]

    def __iter__(self) -> Iterator[int]:
        return self.numbers


def test_rows_of_a_span_of_time(engine: Engine) -> None:
    layout = Layout("twitter")
    start = datetime(2026, 2, 28, 12, tzinfo=UTC)
    tick = timedelta(milliseconds=1)
    times = [start - tick, start, start + tick, start + timedelta(days=1) - tick]
    numbers = [layout.compose(time, 1023, 4095) for time in times]
    numbers.append(layout.compose(start + timedelta(days=1), 0, 0))
    Order = orders(Given(numbers), engine)
    with Session(engine) as session:
        session.add_all([Order() for _ in numbers])
        session.commit()
        span = made_between(Order.id, start, start + timedelta(days=1))
        found = session.scalars(select(Order.id).where(span).order_by(Order.id)).all()
        assert found == numbers[1:4]
