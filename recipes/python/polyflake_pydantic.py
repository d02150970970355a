"""Pydantic: a type for IDs. In JSON they are strings, since JavaScript rounds larger numbers.

class Order(BaseModel):
    id: SnowflakeID

A JSON number of 2^53 or more may have been rounded, so it is refused. FastAPI and MCP parse the
JSON themselves and pass Pydantic an int: use GivenID for their requests, which refuses such an int
too.

In JSON Schema and OpenAPI, the type is `type: string, format: int64`.
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
    """Reads decimal text. `strict` then accepts only an int, and refuses even bool and float."""
    if isinstance(value, str):
        return parse_id(value, "decimal")
    return _exact(value) if info.mode == "json" else value


SnowflakeID = Annotated[
    int,
    # A BIGINT's range. A 64-bit layout needs lt=2**64.
    Field(strict=True, ge=1, lt=2**63),
    BeforeValidator(_read),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "int64", "pattern": "^[0-9]{1,19}$"}),
]

# For values that a framework has parsed.
GivenID = Annotated[SnowflakeID, BeforeValidator(_exact)]
