"""Programs with several processes: each opens its own generator when it takes its first ID.

ids = PerProcess(lambda: Snowflake(lease="redis://redis.internal/0?wait=5s"))

ids.next_id()  # in any process, even if its parent has taken IDs
ids.here.node  # this process's Snowflake

A process that exits gives its node back. If it is killed, the node stays leased for a TTL, so shut
a Pool down with `close()` and `join()`: `terminate()` and the end of `with Pool()` kill its
processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from multiprocessing.util import Finalize
from typing import Generic, TypeVar

from polyflake import Counter, Snowflake

Made = TypeVar("Made", bound=Snowflake | Counter)


class PerProcess(Generic[Made]):
    """An IdGenerator that can be made before a fork, because it opens nothing until it is used."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._opened: dict[int, Made] = {}

    @property
    def here(self) -> Made:
        """This process's generator."""
        # Not os.register_at_fork, whose functions uWSGI does not call.
        pid = os.getpid()
        opened = self._opened.get(pid)
        if opened is None:
            # A process may have the PID of an ancestor that has exited, and must not find that
            # ancestor's generator. Drop it without closing it: the lease is the ancestor's.
            for other in set(self._opened) - {pid}:
                self._opened.pop(other, None)
            # No lock, since a fork could leave it locked in the child. Threads that open at the
            # same time share a lease.
            made = self._make()
            opened = self._opened.setdefault(pid, made)
            if opened is not made:
                made.close()
            # Not atexit, since multiprocessing's children do not run it.
            Finalize(None, self.close, exitpriority=0)
        return opened

    def close(self) -> None:
        """Gives this process's node back. A later call opens a new generator."""
        opened = self._opened.pop(os.getpid(), None)
        if opened is not None:
            opened.close()

    def next_id(self) -> int:
        return self.here.next_id()

    def next_ids(self, n: int) -> list[int]:
        return self.here.next_ids(n)

    def __iter__(self) -> Iterator[int]:
        return iter(self.here)
