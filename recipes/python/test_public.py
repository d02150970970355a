"""The recipe for public IDs in Pydantic and FastAPI."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from fastapi import Body, FastAPI, Header, Path, Query
from fastapi.testclient import TestClient
from polyflake import PublicIds
from polyflake_public import ID, GivenID, PublicID
from pydantic import BaseModel, ValidationError

NUMBER = 1541815603606036480
TEXT = "order_15ShV20Bxc6UJvKSQbDvo0J"
ORDERS = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
USERS = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "user")

OrderID = Annotated[ID, PublicID(ORDERS)]
GivenOrderID = Annotated[GivenID, PublicID(ORDERS)]
PATTERN = "^order_[0-9A-Za-z]{23}$"


class Order(BaseModel):
    id: OrderID
    parents: list[OrderID] = []


class Given(BaseModel):
    parent: GivenOrderID


def test_an_int_inside_and_a_text_in_json() -> None:
    for order in [
        Order(id=NUMBER),
        Order.model_validate({"id": TEXT}),
        Order.model_validate_json(json.dumps({"id": TEXT})),
    ]:
        assert type(order.id) is int
        assert order.id == NUMBER
        assert order.model_dump() == {"id": NUMBER, "parents": []}
        assert json.loads(order.model_dump_json()) == {"id": TEXT, "parents": []}
    many = Order(id=NUMBER, parents=[NUMBER, NUMBER])
    assert json.loads(many.model_dump_json())["parents"] == [TEXT, TEXT]


WRONG: list[Any] = [
    None, True, 1.0, -1, 2**64, "", str(NUMBER), TEXT[:-1], TEXT[:-1] + "K", USERS.encode(NUMBER),
    b"1", [],
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_all_else_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        Order.model_validate({"id": wrong})
    with pytest.raises(ValidationError):
        Given.model_validate({"parent": wrong})


def test_only_the_text_comes_from_outside() -> None:
    assert Given.model_validate({"parent": TEXT}).parent == NUMBER
    with pytest.raises(ValidationError, match="give the public ID"):
        Given.model_validate({"parent": NUMBER})
    with pytest.raises(ValidationError, match="give the public ID"):
        Order.model_validate_json(json.dumps({"id": NUMBER}))


def test_fastapi() -> None:
    app = FastAPI()

    def get(order: GivenOrderID) -> Order:
        return Order(id=order)

    def add(given: Given) -> Order:
        return Order(id=given.parent + 1, parents=[given.parent])

    # Annotations are strings here, which FastAPI looks up among the module's names.
    app.get("/orders/{order}")(get)
    app.post("/orders")(add)
    client = TestClient(app)
    assert client.get(f"/orders/{TEXT}").json() == {"id": TEXT, "parents": []}
    assert client.post("/orders", json={"parent": TEXT}).json()["parents"] == [TEXT]
    for wrong in [str(NUMBER), TEXT[:-1] + "K", USERS.encode(NUMBER)]:
        assert client.get(f"/orders/{wrong}").status_code == 422
    assert client.post("/orders", json={"parent": NUMBER}).status_code == 422
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
        id: Annotated[ID, PublicID(bare)]

    pattern = Bare.model_json_schema()["properties"]["id"]["pattern"]
    assert pattern == "^[0-9A-Za-z]{23}$"
    assert json.loads(Bare(id=7).model_dump_json())["id"] == bare.encode(7)


@pytest.mark.parametrize("default", [Query(), Path(), Header(), Body(embed=True)], ids=repr)
def test_fastapi_does_not_ignore_it_in_silence(default: Any) -> None:
    def get(order: Any = default) -> None: ...

    for annotation in (GivenOrderID, OrderID):
        get.__annotations__["order"] = annotation
        with pytest.raises(TypeError, match="FastAPI ignores PublicID here"):
            FastAPI().post("/{order}" if isinstance(default, type(Path())) else "/")(get)


def test_parameters_of_fastapi() -> None:
    app = FastAPI()

    def get(
        order: Annotated[GivenOrderID, Query()],
        user: Annotated[GivenOrderID | None, Header()] = None,
    ) -> list[int | None]:
        return [order, user]

    app.get("/orders")(get)
    client = TestClient(app)
    reply = client.get("/orders", params={"order": TEXT}, headers={"user": TEXT})
    assert reply.json() == [NUMBER, NUMBER]
    assert client.get("/orders", params={"order": TEXT}).json() == [NUMBER, None]
    for order, user in [(str(NUMBER), TEXT), (TEXT, str(NUMBER))]:
        reply = client.get("/orders", params={"order": order}, headers={"user": user})
        assert reply.status_code == 422
