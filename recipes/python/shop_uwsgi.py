"""For the tests: an application in uWSGI."""

from __future__ import annotations

import os

from polyflake import Snowflake
from polyflake_uwsgi import generator
from shop_flask import create_app

app = create_app(generator(lambda: Snowflake(lease=os.environ["LEASES"])))
