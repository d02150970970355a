"""The recipe for MCP, called by the package's own client."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from mcp import Client
from polyflake import Snowflake
from polyflake_mcp import server

BIG = 1541815603606036481


def ask(ids: Snowflake, mode: str, question: Callable[[Client], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with Client(server(ids), mode=mode) as client:
            return await question(client)

    return anyio.run(main)


@pytest.fixture(params=["legacy", "auto"])
def mode(request: pytest.FixtureRequest) -> str:
    """Over JSON-RPC with its handshake, or over the newer protocol."""
    return request.param


def test_schemas_say_string(mode: str) -> None:
    with Snowflake(node=7) as ids:
        listed = ask(ids, mode, lambda client: client.list_tools())
    tools = {tool.name: tool for tool in listed.tools}
    schemas = [tool.output_schema for tool in tools.values()]
    for schema in [tools["find_order"].input_schema, *schemas]:
        id_ = schema["properties"]["id"]
        assert (id_["type"], id_["format"]) == ("string", "int64")


def test_ids_go_and_come_as_strings(mode: str) -> None:
    async def question(client: Client) -> list[Any]:
        made = await client.call_tool("add_order", {})
        return [made, await client.call_tool("find_order", {"id": made.structured_content["id"]})]

    with Snowflake(node=7) as ids:
        made, found = ask(ids, mode, question)
        assert int(made.structured_content["id"]) < ids.next_id()
    assert isinstance(made.structured_content["id"], str)
    assert made.structured_content == found.structured_content
    assert made.structured_content["node"] == 7
    # The text that a model reads.
    assert json.loads(made.content[0].text)["id"] == made.structured_content["id"]


@pytest.mark.parametrize("number", [BIG, 2**53, float(BIG), True, "12x", "-1", None])
def test_what_may_have_been_rounded_is_refused(mode: str, number: Any) -> None:
    with Snowflake(node=7) as ids:
        answer = ask(ids, mode, lambda client: client.call_tool("find_order", {"id": number}))
    assert answer.is_error
    if type(number) is int:
        assert "give the ID as a string" in answer.content[0].text
