"""Pydantic and FastAPI: an int in the program, and a public ID in JSON, in paths and in OpenAPI.

orders = PublicIds(Path("/run/secrets/public-keys").read_text(), "order")
OrderID = Annotated[int, PublicID(orders)]
GivenOrderID = Annotated[int, PublicID(orders, is_given=True)]

class Order(BaseModel):
    id: OrderID

@app.get("/orders/{order}")
def get(order: GivenOrderID) -> Order:  # /orders/order_15ShV20Bxc6UJvKSQbDvo0J
    return Order(id=order)

With `is_given` it reads only the text, and refuses an int: use it for requests, whose JSON FastAPI
has parsed.
"""

from __future__ import annotations

from typing import Any

from polyflake import PublicIds
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema


class PublicID:
    def __init__(self, ids: PublicIds, *, is_given: bool = False) -> None:
        self._ids = ids
        self._is_given = is_given

    def _read(self, value: Any, info: ValidationInfo) -> int:
        if isinstance(value, str):
            return self._ids.decode(value)
        if type(value) is not int or self._is_given or info.mode == "json":
            raise ValueError("give the public ID, which is a string")
        self._ids.encode(value)  # Raises if it is not an ID.
        return value

    def __get_pydantic_core_schema__(
        self, _type: Any, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        write = core_schema.plain_serializer_function_ser_schema(
            self._ids.encode, return_schema=core_schema.str_schema(), when_used="json"
        )
        return core_schema.with_info_plain_validator_function(self._read, serialization=write)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        prefix = self._ids.prefix and f"{self._ids.prefix}_"
        return {"type": "string", "pattern": f"^{prefix}[0-9A-Za-z]{{23}}$"}
