"""SQLAlchemy: a type for columns of IDs, and a primary key that a generator fills in.

class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = snowflake_key(ids)
    parent: Mapped[int | None] = mapped_column(SnowflakeID)

session.scalars(select(Order).where(made_between(Order.id, start, end)))

# Alembic's env.py: migrations then say sa.BigInteger() and import nothing from here.
context.configure(..., render_item=render_item)
"""

from __future__ import annotations

from datetime import datetime
from operator import index
from typing import Literal

from polyflake import IdGenerator, Layout, parse_id
from sqlalchemy import BigInteger, ColumnElement, Dialect, SQLColumnExpression, and_
from sqlalchemy.orm import MappedColumn, mapped_column
from sqlalchemy.types import TypeDecorator


class SnowflakeID(TypeDecorator[int]):
    """A BIGINT. Takes an int, or decimal text such as an ID from JSON or a URL."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | str | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        return parse_id(value, "decimal") if isinstance(value, str) else index(value)


def snowflake_key(ids: IdGenerator) -> MappedColumn[int]:
    """A primary key: each new row takes the generator's next ID."""
    return mapped_column(SnowflakeID, primary_key=True, autoincrement=False, default=ids.next_id)


def render_item(kind: str, item: object, _context: object) -> str | Literal[False]:
    """Returns the type that Alembic's autogenerate writes for a column."""
    return "sa.BigInteger()" if kind == "type" and isinstance(item, SnowflakeID) else False


def made_between(
    column: SQLColumnExpression[int],
    start: datetime,
    end: datetime,
    layout: Layout = Layout("twitter"),  # noqa: B008 (it never changes)
) -> ColumnElement[bool]:
    """Rows created at or after `start` and before `end`, found through the primary key's index."""
    return and_(column >= layout.min_id(start), column < layout.min_id(end))
