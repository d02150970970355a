"""MCP: a server whose tools take and return IDs as strings, since models, and JSON parsers on the
way to them, round numbers of this size.

with Snowflake(lease="redis://redis.internal/0") as ids:
    server(ids).run()
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from mcp.server import MCPServer
from polyflake import Snowflake
from polyflake_pydantic import GivenID, SnowflakeID
from pydantic import BaseModel, Field


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
    # If a model passes a rounded number, the error says so, and the model can try again.
    def find_order(id: Annotated[GivenID, Field(description="decimal digits")]) -> Order:
        """Says when and where an order was made."""
        return order(id)

    return mcp
