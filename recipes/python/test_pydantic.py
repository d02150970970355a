"""The recipes for Pydantic and FastAPI."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import shop_fastapi
from conftest import Generator, generator
from fastapi import FastAPI
from fastapi.testclient import TestClient
from polyflake import ClosedError, Layout
from polyflake_fastapi import Ids
from polyflake_fastapi import generator as lifespan
from polyflake_pydantic import GivenID, SnowflakeID
from pydantic import BaseModel, ValidationError


class Order(BaseModel):
    id: SnowflakeID
    parents: list[SnowflakeID] = []


@pytest.mark.parametrize("number", [1, 2**53 - 1, 2**53 + 1, 1541815603606036481, 2**63 - 1])
def test_strings_and_ints_are_read(number: int) -> None:
    texts = [f'{{"id": "{number}"}}']
    if number < 2**53:
        texts.append(f'{{"id": {number}}}')
    for order in [
        Order(id=number),
        Order.model_validate({"id": str(number)}),
        *map(Order.model_validate_json, texts),
    ]:
        assert type(order.id) is int
        assert order.id == number
        assert json.loads(order.model_dump_json())["id"] == str(number)
        assert order.model_dump()["id"] == number
        assert order.model_dump(mode="json")["id"] == str(number)


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 1541815603606036481, 2**63, -(2**53)])
def test_a_number_of_json_that_may_have_been_rounded_is_refused(number: int) -> None:
    for text in (f'{{"id": {number}}}', f'{{"id": 1, "parents": [{number}]}}'):
        with pytest.raises(ValidationError, match="give the ID as a string"):
            Order.model_validate_json(text)


WRONG: list[Any] = [
    None, True, False, 0, -1, 2**63, 2**64, 1.0, 1.5, math.inf, math.nan, "", " 1", "1.0", "-1",
    "+1", "1e3", "0x1", "\uff11", "1_000", str(2**63), str(2**64), "0", [], {}, [1], b"1",
]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_all_else_is_refused(wrong: Any) -> None:
    for given in ({"id": wrong}, {"id": 1, "parents": [wrong]}):
        with pytest.raises(ValidationError):
            Order.model_validate(given)
    if not isinstance(wrong, bytes):
        with pytest.raises(ValidationError):
            Order.model_validate_json(json.dumps({"id": wrong}))


def test_the_schema_says_string() -> None:
    for mode in ("validation", "serialization"):
        schema = Order.model_json_schema(mode=mode)  # type: ignore[arg-type]
        for id_ in (schema["properties"]["id"], schema["properties"]["parents"]["items"]):
            assert (id_["type"], id_["format"]) == ("string", "int64")


class Given(BaseModel):
    id: GivenID


def test_a_given_number_that_may_have_been_rounded_is_refused() -> None:
    for number in (2**53, 1541815603606036481, -(2**53)):
        with pytest.raises(ValidationError, match="give the ID as a string"):
            Given(id=number)
    assert Given(id=2**53 - 1).id == 2**53 - 1
    assert Given.model_validate({"id": str(2**63 - 1)}).id == 2**63 - 1
    assert Given.model_json_schema()["properties"]["id"]["type"] == "string"


def application(make: Any) -> FastAPI:
    app = FastAPI(lifespan=lifespan(make))

    @app.post("/orders")
    def add(ids: Ids) -> Order:
        return Order(id=ids.next_id())

    @app.put("/orders")
    def put(given: Given) -> Order:
        return Order(id=given.id)

    @app.get("/orders/{id}")
    def get(id: SnowflakeID) -> Order:
        return Order(id=id, parents=[id])

    return app


@pytest.mark.parametrize("kind", ["node", "lease", "counter"])
def test_fastapi(kind: str, tmp_path: Path) -> None:
    made: list[Generator] = []
    with generator(kind, tmp_path) as other:

        def make() -> Generator:
            made.append(other)
            return other

        with TestClient(application(make)) as client:
            assert made == [other]
            first, second = (client.post("/orders").json()["id"] for _ in range(2))
            assert isinstance(first, str)
            assert int(first) < int(second) < other.next_id()
            read = client.get(f"/orders/{first}")
            assert read.json() == {"id": first, "parents": [first]}
        with pytest.raises(ClosedError):
            other.next_id()


def test_fastapi_refuses_what_is_no_id(tmp_path: Path) -> None:
    with (
        generator("node", tmp_path) as ids,
        TestClient(application(lambda: ids)) as client,
    ):
        client.headers["Content-Type"] = "application/json"
        big = 1541815603606036481
        answer = client.put("/orders", content=f'{{"id": "{big}"}}')
        assert answer.json()["id"] == str(big)
        answer = client.put("/orders", content=f'{{"id": {big}}}')
        assert answer.status_code == 422
        assert "give the ID as a string" in answer.text
        for wrong in ("true", "1.5", "1e3", '"12x"', '"-1"', "null", "-1", "0", str(2**63)):
            assert client.put("/orders", content=f'{{"id": {wrong}}}').status_code == 422, wrong
        for wrong in ("12x", "-1", "1.0", str(2**64)):
            assert client.get(f"/orders/{wrong}").status_code == 422, wrong
        openapi = client.get("/openapi.json").json()
        [parameter] = openapi["paths"]["/orders/{id}"]["get"]["parameters"]
        properties = openapi["components"]["schemas"]["Order"]["properties"]
        for id_ in (parameter["schema"], properties["id"], properties["parents"]["items"]):
            assert (id_["type"], id_["format"]) == ("string", "int64")


def test_fastapi_gives_the_snowflake_itself() -> None:
    with TestClient(shop_fastapi.app) as client:
        made = client.post("/orders").json()
        assert made["node"] == 7
        assert Layout("twitter").decode(int(made["id"])).node == 7
