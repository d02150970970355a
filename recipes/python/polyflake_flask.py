"""Flask: IDs are strings in JSON, since JavaScript rounds larger numbers.

# PerProcess is in polyflake_processes.py.
ids = PerProcess(lambda: Snowflake(lease="redis://redis.internal/0?wait=5s"))

def create_app() -> Flask:
    app = Flask(__name__)
    app.json = ExactJson(app)

    @app.post("/orders")
    def add() -> Any:
        return {"id": ids.next_id(), "parent": read_id(request.json["parent"])}

    @app.get("/orders/<id>")  # not <int:id>, which takes any size and digits of other scripts
    def get(id: str) -> Any:
        return {"id": read_id(id)}

    return app

This changes responses only. A session returns numbers unchanged, and a template needs
`{{ id|string|tojson }}`.
"""

from __future__ import annotations

from typing import Any

from flask import abort
from flask.json.provider import DefaultJSONProvider
from polyflake import parse_id
from werkzeug.sansio.response import Response


class ExactJson(DefaultJSONProvider):
    """Writes integers as strings if a double cannot hold them exactly."""

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return super().response(self._exact(self._prepare_response_obj(args, kwargs)))

    def _exact(self, value: Any) -> Any:
        if isinstance(value, int):
            return value if abs(value) < 2**53 else str(value)
        if isinstance(value, dict):
            return {key: self._exact(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._exact(item) for item in value]
        if value is None or isinstance(value, str | float):
            return value
        return self._exact(self.default(value))


def read_id(value: Any) -> int:
    """Reads decimal text as an ID. A number may have been rounded, so it is answered with 400."""
    if not isinstance(value, str):
        abort(400, "an ID is a string")
    try:
        return parse_id(value, "decimal")
    except ValueError as error:
        abort(400, str(error))
