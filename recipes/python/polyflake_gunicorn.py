"""gunicorn: each worker leases its node at the start, says which, and gives it back at the end.

# gunicorn.conf.py
from polyflake_gunicorn import opener
from shop import ids  # a PerProcess of polyflake_processes.py

preload_app = True
post_fork = opener(ids)

gunicorn kills a worker that is silent for `timeout` (30 s). Let the lease wait for less, as with
`?wait=5s`.
"""

from __future__ import annotations

from collections.abc import Callable

from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker
from polyflake import PolyflakeError, Snowflake
from polyflake_processes import PerProcess


def opener(ids: PerProcess[Snowflake]) -> Callable[[Arbiter, Worker], None]:
    """A `post_fork` that opens the worker's generator, which the worker's end closes."""

    def post_fork(_server: Arbiter, worker: Worker) -> None:
        try:
            worker.log.info("Worker %s has node %s", worker.pid, ids.here.node)
        except PolyflakeError as error:
            # Raised, it would end gunicorn with all its workers. The first ID tries again.
            worker.log.warning("Worker %s has no node yet: %s", worker.pid, error)

    return post_fork
