"""Imports modules when they are first needed, but not while the process is forking.

A fork copies the lock of a module that another thread is importing, and the child would wait for
that lock forever. So a fork waits until the import has finished.
"""

import os
import sys
from _thread import RLock, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

#: The wait is limited, because an import may be waiting for a lock that the forking thread holds.
_LONGEST_S = 30.0

#: Reentrant, so that a signal handler that forks during an import does not wait for itself.
_loading = RLock()
_loaded: "set[str]" = set()
_forking: "int | None" = None


def load(name: str) -> "ModuleType":
    if name not in _loaded:
        with _loading:
            __import__(name)
        _loaded.add(name)
    return sys.modules[name]


def _before_fork() -> None:
    global _forking
    if _loading.acquire(timeout=_LONGEST_S):
        _forking = get_ident()


def _after_fork() -> None:
    global _forking
    if _forking == get_ident():
        _forking = None
        _loading.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
