"""Awaits counter and sequence calls that wait for a store, in asyncio."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from threading import Thread
from typing import Any, Protocol, TypeAlias

from ._errors import PolyflakeError


class _Waiter(Protocol):
    def end(self) -> None: ...


#: Returns the next ticket and its call's result or exception, or None if the thread must exit.
_Take: TypeAlias = Callable[[], tuple[int, Any, BaseException | None] | None]

_tickets = count(1)
_waiting: dict[int, asyncio.Future[Any]] = {}


async def given(
    now: Callable[..., Any] | None, later: Callable[..., _Waiter], *arguments: object
) -> Any:
    if now is not None:
        try:
            return now(*arguments)
        except PolyflakeError:
            pass  # Either waiting helps, or `later` raises an exception that says why not.
    future = asyncio.get_running_loop().create_future()
    ticket = next(_tickets)
    _waiting[ticket] = future
    try:
        waiter = later(ticket, *arguments)
        try:
            return await future
        finally:
            waiter.end()
    finally:
        del _waiting[ticket]


def start(take: _Take) -> None:
    """Start the thread that passes results to event loops. The native half waits for it on exit."""
    Thread(target=_tell, args=(take,), name="polyflake-awaited", daemon=True).start()


def _tell(take: _Take) -> None:
    while (told := take()) is not None:
        ticket, value, error = told
        if (future := _waiting.get(ticket)) is not None:
            # If the loop is closed, nobody is waiting for the result.
            with suppress(RuntimeError):
                future.get_loop().call_soon_threadsafe(_settle, future, value, error)


def _settle(future: asyncio.Future[Any], value: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
