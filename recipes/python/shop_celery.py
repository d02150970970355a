"""For the tests: tasks that take IDs."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery
from polyflake import Snowflake
from polyflake_celery import generator
from shop_processes import take

app = Celery("shop", broker=os.environ["BROKER"], backend=os.environ["BROKER"])
ids = generator(lambda: Snowflake(lease=os.environ["LEASES"]))


@app.task
def meet(meeting: str) -> dict[str, Any]:
    return take(ids, meeting)
