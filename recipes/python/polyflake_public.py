"""Pydantic and FastAPI: an int in the program, and a public ID in JSON, in paths and in OpenAPI.

orders = PublicIds(Path("/run/secrets/public-keys").read_text(), "order")
OrderID = Annotated[ID, PublicID(orders)]
GivenOrderID = Annotated[GivenID, PublicID(orders)]

class Order(BaseModel):
    id: OrderID

@app.get("/orders/{order}")
def get(order: GivenOrderID) -> Order:  # /orders/order_15ShV20Bxc6UJvKSQbDvo0J
    return Order(id=order)

@app.get("/orders")
def after(order: Annotated[GivenOrderID, Query()]) -> list[Order]: ...

A `GivenID` reads only text and refuses an int. Use it for requests, since FastAPI parses their JSON
before Pydantic sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polyflake import PublicIds
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    ID = GivenID = int
else:

    class ID(int):
        """An int that has no schema without PublicID.

        FastAPI drops PublicID if the default is Query(), Path(), Body() or the like, and would then
        accept and show plain ints.
        """

        @classmethod
        def __get_pydantic_core_schema__(cls, *_: Any) -> CoreSchema:
            raise TypeError(
                "FastAPI ignores PublicID here: use Annotated[..., Query()], not = Query()"
            )

    class GivenID(ID):
        pass


class PublicID:
    def __init__(self, ids: PublicIds) -> None:
        self._ids = ids

    def _read(self, value: Any, info: ValidationInfo) -> int:
        if type(value) is not int or info.mode == "json":
            return self._read_given(value)
        self._ids.encode(value)  # Raises if it is not an ID.
        return value

    def _read_given(self, value: Any) -> int:
        if not isinstance(value, str):
            raise ValueError("give the public ID, which is a string")
        return self._ids.decode(value)

    def __get_pydantic_core_schema__(
        self, of: type[Any], _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        write = core_schema.plain_serializer_function_ser_schema(
            self._ids.encode, return_schema=core_schema.str_schema(), when_used="json"
        )
        if issubclass(of, GivenID):
            return core_schema.no_info_plain_validator_function(
                self._read_given, serialization=write
            )
        return core_schema.with_info_plain_validator_function(self._read, serialization=write)

    def __get_pydantic_json_schema__(
        self, _schema: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        prefix = self._ids.prefix and f"{self._ids.prefix}_"
        return {"type": "string", "pattern": f"^{prefix}[0-9A-Za-z]{{23}}$"}
