"""Logs events from leases, counters and sequences to the logger ``polyflake``."""

import sys
from threading import Thread

from polyflake._polyflake import _load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    #: Returns the next event's level, message, kind, node and store, or None if there is none.
    _Take: TypeAlias = Callable[[], tuple[int, str, str, int | None, str] | None]

_WARNING = 30  # as in logging


def start(take: "_Take") -> None:
    """Log in a thread that exits when there is nothing left to log.

    The thread comes from ``threading``, because logging would remember any other thread forever. An
    exiting program does not wait for the thread, but the native half does, for a while.
    """
    Thread(target=log, args=(take,), name="polyflake-log", daemon=True).start()


def log(take: "_Take") -> None:
    while (event := take()) is not None:
        level, message, kind, node, store = event
        # Without handlers, only warnings are shown, and importing logging takes 1.5 MB of memory.
        if level < _WARNING and "logging" not in sys.modules:
            continue
        try:
            logger = _load("logging").getLogger("polyflake")
            logger.log(level, message, extra={"kind": kind, "node": node, "store": store})
        except BaseException:  # The next event must still be logged.
            sys.__excepthook__(*sys.exc_info())
