"""uWSGI: each worker leases a node when it starts, logs it, and gives it back when it exits.

ids = generator(lambda: Snowflake(lease="redis://redis.internal/0"))

# uwsgi.ini
[uwsgi]
module = shop:app
master = true
processes = 4
# With die-on-term, a worker that is busy when SIGTERM arrives would keep its node for a TTL.
hook-master-start = unix_signal:15 gracefully_kill_them_all
"""

from __future__ import annotations

from collections.abc import Callable

import uwsgi
from polyflake import PolyflakeError, Snowflake
from polyflake_processes import PerProcess
from uwsgidecorators import postfork


def generator(make: Callable[[], Snowflake]) -> PerProcess[Snowflake]:
    """Call this in the application's module. With `lazy-apps`, the first ID leases the node."""
    ids = PerProcess(make)

    def lease() -> None:
        try:
            uwsgi.log(f"worker {uwsgi.worker_id()} has node {ids.here.node}")
        except PolyflakeError as error:
            uwsgi.log(f"worker {uwsgi.worker_id()} has no node yet: {error}")

    postfork(lease)
    return ids
