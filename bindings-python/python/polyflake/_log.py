"""What happens to leases, counters and sequences, as lines of the logger ``polyflake``."""

import logging
import traceback
from collections.abc import Callable
from threading import Thread
from typing import TypeAlias

#: The next event's level, message, kind, node and store. None: there is none, and who asked ends.
_Take: TypeAlias = Callable[[], tuple[int, str, str, int | None, str] | None]


def start(take: _Take) -> None:
    """Log in a thread that ends when there is nothing left.

    A thread of ``threading``, because logging would remember any other thread for ever. The program
    does not wait for it at its end; the native half does, for a while.
    """
    Thread(target=log, args=(take,), name="polyflake-log", daemon=True).start()


def log(take: _Take) -> None:
    logger = logging.getLogger("polyflake")
    while (event := take()) is not None:
        level, message, kind, node, store = event
        try:
            logger.log(level, message, extra={"kind": kind, "node": node, "store": store})
        except BaseException:  # The next one is logged all the same.
            traceback.print_exc()
