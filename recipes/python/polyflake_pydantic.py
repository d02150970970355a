"""Pydantic: the type of an ID, which is a string in JSON, since JavaScript rounds larger numbers.

class Order(BaseModel):
    id: SnowflakeID

JSON Schema and OpenAPI say `type: string, format: int64`.
"""

from __future__ import annotations

from typing import Annotated, Any

from polyflake import parse_id
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema


def _read(value: Any) -> Any:
    """Decimal text is read; an int goes on to `strict`, which refuses all else, bool and float."""
    return parse_id(value, "decimal") if isinstance(value, str) else value


SnowflakeID = Annotated[
    int,
    # A BIGINT's range. A layout of 64 bits needs lt=2**64.
    Field(strict=True, ge=1, lt=2**63),
    BeforeValidator(_read),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "int64", "pattern": "^[0-9]{1,19}$"}),
]
