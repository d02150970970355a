"""Events of leases, counters and sequences, as lines of the logger ``polyflake``."""

import sys
from threading import Thread

from polyflake._load import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    #: The next event's level, message, kind, node and store. None: there is none, and the log ends.
    _Take: TypeAlias = Callable[[], tuple[int, str, str, int | None, str] | None]

_WARNING = 30  # as logging has it


def start(take: "_Take") -> None:
    """Log in a thread that ends when there is nothing left.

    A thread of ``threading``, because logging would remember any other thread forever. The program
    does not wait for it at its end; the native half does, for a while.
    """
    Thread(target=log, args=(take,), name="polyflake-log", daemon=True).start()


def log(take: "_Take") -> None:
    while (event := take()) is not None:
        level, message, kind, node, store = event
        # Without handlers, only warnings are shown, and logging takes 1.5 MB.
        if level < _WARNING and "logging" not in sys.modules:
            continue
        try:
            logger = load("logging").getLogger("polyflake")
            logger.log(level, message, extra={"kind": kind, "node": node, "store": store})
        except BaseException:  # The next one is logged all the same.
            load("traceback").print_exc()
