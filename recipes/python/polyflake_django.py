"""Django: a field whose default is the next ID of the program's generator.

# settings.py: the path to the generator
POLYFLAKE_IDS = "shop.ids.ids"

class Order(models.Model):
    id = SnowflakeField(primary_key=True)

In JSON, write str(order.id): JavaScript rounds numbers of this size.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import models
from django.utils.module_loading import import_string
from polyflake import IdGenerator, parse_id


def next_id() -> int:
    """Migrations name this function, so they do not contain the generator."""
    ids: IdGenerator = import_string(settings.POLYFLAKE_IDS)
    return ids.next_id()


class SnowflakeField(models.BigIntegerField):  # type: ignore[type-arg]
    """A BIGINT. Queries also accept decimal text, such as an ID from JSON or a URL."""

    description = "A Snowflake ID"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"default": next_id, "editable": False, **options})

    def get_prep_value(self, value: Any) -> Any:
        if isinstance(value, str):
            return parse_id(value, "decimal")
        if isinstance(value, (bool, float)):
            raise TypeError(f"an ID is an int or its decimal text, not {value!r}")
        return super().get_prep_value(value)
