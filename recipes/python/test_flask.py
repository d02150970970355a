"""The recipe for Flask; test_processes.py runs it in gunicorn and uWSGI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask, jsonify, render_template_string, session
from flask.testing import FlaskClient
from polyflake import Snowflake
from polyflake_processes import PerProcess
from shop_flask import create_app

BIG = 1541815603606036481


@pytest.fixture
def app() -> Iterator[Flask]:
    ids = PerProcess(lambda: Snowflake(node=7))
    yield create_app(ids)
    ids.close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def test_an_id_is_a_string(client: FlaskClient) -> None:
    first, second = (client.post("/orders").json["id"] for _ in range(2))
    assert isinstance(first, str)
    assert int(first) < int(second)
    assert client.get(f"/orders/{first}").json == {"id": first}


@dataclass
class Order:
    id: int
    parents: tuple[int, ...]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (2**53 - 1, 2**53 - 1),
        (2**53, str(2**53)),
        (1 - 2**53, 1 - 2**53),
        (-(2**53), str(-(2**53))),
        (
            [BIG, (BIG, 7), True, None, 1.5, 1e300],
            [str(BIG), [str(BIG), 7], True, None, 1.5, 1e300],
        ),
        (
            {"id": BIG, "of": {"id": BIG}, "text": "x"},
            {"id": str(BIG), "of": {"id": str(BIG)}, "text": "x"},
        ),
        (Order(BIG, (BIG,)), {"id": str(BIG), "parents": [str(BIG)]}),
        ([Order(7, ())], [{"id": 7, "parents": []}]),
    ],
)
def test_what_a_double_rounds_is_a_string(app: Flask, given: Any, written: Any) -> None:
    with app.app_context():
        seen = json.loads(jsonify(given).get_data())
    # By repr, since True == 1.
    assert repr(seen) == repr(written)


def test_what_is_no_json_is_an_error(app: Flask) -> None:
    with app.app_context(), pytest.raises(TypeError):
        jsonify(object())


def test_a_request_gives_ids_as_strings(client: FlaskClient) -> None:
    assert client.put("/orders", json={"id": str(BIG)}).json == {"id": str(BIG)}
    for wrong in [str(BIG), "1e3", "true", "null", "[]", '"12x"', '"-1"', '""', f'"{2**64}"']:
        answer = client.put("/orders", data=f'{{"id": {wrong}}}', content_type="application/json")
        assert answer.status_code == 400, wrong


@pytest.mark.parametrize("wrong", ["12x", "-1", "+1", "\uff11", "\u0663", str(2**64), "9" * 5000])
def test_a_path_gives_an_id_in_plain_digits(client: FlaskClient, wrong: str) -> None:
    assert client.get(f"/orders/{BIG}").json == {"id": str(BIG)}
    assert client.get(f"/orders/{wrong}").status_code == 400


def test_sessions_and_templates_are_as_they_were(app: Flask) -> None:
    app.secret_key = "of the test's own"

    @app.get("/session")
    def given() -> str:
        number = session.setdefault("id", BIG)
        return f"{type(number).__name__} " + render_template_string(
            "{{ i|string|tojson }}", i=number
        )

    client = app.test_client()
    assert [client.get("/session").text for _ in range(2)] == [f'int "{BIG}"'] * 2
