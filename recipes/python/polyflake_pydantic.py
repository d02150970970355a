"""Pydantic: the type of an ID, which is a string in JSON, since JavaScript rounds larger numbers.

class Order(BaseModel):
    id: SnowflakeID

A number of JSON from 2^53 on, which may have been rounded, is refused. Where a framework parses the
JSON and gives Pydantic an int, as FastAPI and MCP do, GivenID refuses it: use that in requests.

JSON Schema and OpenAPI say `type: string, format: int64`.
"""

from __future__ import annotations

from typing import Annotated, Any

from polyflake import parse_id
from pydantic import BeforeValidator, Field, PlainSerializer, ValidationInfo, WithJsonSchema


def _exact(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= 2**53:
        raise ValueError("give the ID as a string: a number of this size may have been rounded")
    return value


def _read(value: Any, info: ValidationInfo) -> Any:
    """Decimal text is read; an int goes on to `strict`, which refuses all else, bool and float."""
    if isinstance(value, str):
        return parse_id(value, "decimal")
    return _exact(value) if info.mode == "json" else value


SnowflakeID = Annotated[
    int,
    # A BIGINT's range. A layout of 64 bits needs lt=2**64.
    Field(strict=True, ge=1, lt=2**63),
    BeforeValidator(_read),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "int64", "pattern": "^[0-9]{1,19}$"}),
]

# For what a framework has parsed.
GivenID = Annotated[SnowflakeID, BeforeValidator(_exact)]
