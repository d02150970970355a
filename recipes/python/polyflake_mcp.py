"""MCP: a server whose tools take and give IDs as strings, since models, and JSON parsers on the way
to them, round numbers of this size.

with Snowflake(lease="redis://redis.internal/0") as ids:
    server(ids).run()
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from mcp.server import MCPServer
from polyflake import Snowflake
from polyflake_pydantic import SnowflakeID
from pydantic import BaseModel, BeforeValidator, Field


def _exact(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= 2**53:
        # The model reads this, and can call again.
        raise ValueError("give the ID as a string: a number of this size may have been rounded")
    return value


# The type of a tool's parameter.
GivenID = Annotated[SnowflakeID, BeforeValidator(_exact), Field(description="decimal digits")]


class Order(BaseModel):
    id: SnowflakeID
    made: datetime | None
    node: int


def server(ids: Snowflake) -> MCPServer:
    mcp = MCPServer("orders")

    def order(id: int) -> Order:
        said = ids.decode(id)
        return Order(id=id, made=said.time, node=said.node)

    @mcp.tool()
    def add_order() -> Order:
        """Makes an order."""
        return order(ids.next_id())

    @mcp.tool()
    def find_order(id: GivenID) -> Order:
        """What an order's ID says."""
        return order(id)

    return mcp
