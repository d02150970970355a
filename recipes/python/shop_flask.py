"""An application for the tests: gunicorn and uWSGI run it."""

from __future__ import annotations

from typing import Any

from flask import Flask, request
from polyflake import Snowflake
from polyflake_flask import ExactJson, read_id
from polyflake_processes import PerProcess
from shop_processes import take


def create_app(ids: PerProcess[Snowflake]) -> Flask:
    app = Flask(__name__)
    app.json = ExactJson(app)

    @app.post("/orders")
    def add() -> Any:
        return {"id": ids.next_id()}

    @app.post("/meetings/<meeting>")
    def meet(meeting: str) -> Any:
        return take(ids, meeting)

    @app.put("/orders")
    def put() -> Any:
        return {"id": read_id(request.json["id"])}

    @app.get("/orders/<id>")
    def get(id: str) -> Any:
        return {"id": read_id(id)}

    return app
