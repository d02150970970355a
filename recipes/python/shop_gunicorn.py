"""For the tests: an application in gunicorn, which may take an ID before the fork."""

from __future__ import annotations

import os

from polyflake import Snowflake
from polyflake_gunicorn import opener
from polyflake_processes import PerProcess
from shop_flask import create_app

ids = PerProcess(lambda: Snowflake(lease=os.environ["LEASES"]))
if "FIRST" in os.environ:
    print("first", ids.here.node, ids.next_id(), flush=True)
app = create_app(ids)

post_fork = opener(ids)
