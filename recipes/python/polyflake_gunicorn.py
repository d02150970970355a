"""gunicorn: each worker leases a node when it starts, logs it, and gives it back when it exits.

# gunicorn.conf.py
from polyflake_gunicorn import opener
from shop import ids  # a PerProcess, from polyflake_processes.py

preload_app = True
post_fork = opener(ids)

gunicorn kills a worker that is silent for `timeout` (30 s). Make the lease wait less than that, for
example with `?wait=5s`.
"""

from __future__ import annotations

from collections.abc import Callable

from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker
from polyflake import PolyflakeError, Snowflake
from polyflake_processes import PerProcess


def opener(ids: PerProcess[Snowflake]) -> Callable[[Arbiter, Worker], None]:
    """Returns a `post_fork` that opens the worker's generator. It closes when the worker exits."""

    def post_fork(_server: Arbiter, worker: Worker) -> None:
        try:
            worker.log.info("Worker %s has node %s", worker.pid, ids.here.node)
        except PolyflakeError as error:
            # Raising it would stop gunicorn and all its workers. Taking the first ID tries again.
            worker.log.warning("Worker %s has no node yet: %s", worker.pid, error)

    return post_fork
