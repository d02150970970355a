"""The recipe for public IDs in Pydantic and FastAPI."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from polyflake import PublicIds
from polyflake_public import PublicID
from pydantic import BaseModel, ValidationError

ID = 1541815603606036480
TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J"
ORDERS = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
USERS = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "user")

OrderID = Annotated[int, PublicID(ORDERS)]
GivenOrderID = Annotated[int, PublicID(ORDERS, is_given=True)]
PATTERN = "^order_[0-9A-Za-z]{23}$"


class Order(BaseModel):
    id: OrderID
    parents: list[OrderID] = []


class Given(BaseModel):
    parent: GivenOrderID


def test_an_int_inside_and_a_text_in_json() -> None:
    for order in [
        Order(id=ID),
        Order.model_validate({"id": TEXT}),
        Order.model_validate_json(json.dumps({"id": TEXT})),
    ]:
        assert type(order.id) is int
        assert order.id == ID
        assert order.model_dump() == {"id": ID, "parents": []}
        assert json.loads(order.model_dump_json()) == {"id": TEXT, "parents": []}
    many = Order(id=ID, parents=[ID, ID])
    assert json.loads(many.model_dump_json())["parents"] == [TEXT, TEXT]


WRONG: list[Any] = [
    None, True, 1.0, -1, 2**64, "", str(ID), TEXT[:-1], TEXT[:-1] + "K", USERS.encode(ID), b"1", [],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_all_else_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Order.model_validate({"id": wrong})
    with pytest.raises(ValidationError):
        Given.model_validate({"parent": wrong})


def test_only_the_text_comes_from_outside() -> None:
    assert Given.model_validate({"parent": TEXT}).parent == ID
    with pytest.raises(ValidationError, match="give the public ID"):
        Given.model_validate({"parent": ID})
    with pytest.raises(ValidationError, match="give the public ID"):
        Order.model_validate_json(json.dumps({"id": ID}))


def test_fastapi() -> None:
    app = FastAPI()

    def get(order: GivenOrderID) -> Order:
        return Order(id=order)

    def add(given: Given) -> Order:
        return Order(id=given.parent + 1, parents=[given.parent])

    # Annotations are texts here, which FastAPI looks up among the module's names.
    app.get("/orders/{order}")(get)
    app.post("/orders")(add)
    client = TestClient(app)
    assert client.get(f"/orders/{TEXT}").json() == {"id": TEXT, "parents": []}
    assert client.post("/orders", json={"parent": TEXT}).json()["parents"] == [TEXT]
    for wrong in [str(ID), TEXT[:-1] + "K", USERS.encode(ID)]:
        assert client.get(f"/orders/{wrong}").status_code == 422
    assert client.post("/orders", json={"parent": ID}).status_code == 422
    described = client.get("/openapi.json").json()
    parameter = described["paths"]["/orders/{order}"]["get"]["parameters"][0]["schema"]
    assert (parameter["type"], parameter["pattern"]) == ("string", PATTERN)
    assert described["components"]["schemas"]["Order"]["properties"]["id"]["pattern"] == PATTERN


def test_the_schema_says_string() -> None:
    for mode in ("validation", "serialization"):
        schema = Order.model_json_schema(mode=mode)  # type: ignore[arg-type]
        assert schema["properties"]["id"]["pattern"] == PATTERN
    bare = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "")

    class Bare(BaseModel):
        id: Annotated[int, PublicID(bare)]

    pattern = Bare.model_json_schema()["properties"]["id"]["pattern"]
    assert pattern == "^[0-9A-Za-z]{23}$"
    assert json.loads(Bare(id=7).model_dump_json())["id"] == bare.encode(7)
