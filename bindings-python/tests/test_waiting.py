"""Waits are bounded, let other threads run, and respond to Ctrl-C. No test asserts a duration."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from typing import Any

import pytest
from polyflake import (
    ClockFailedError,
    ClockMovedBackwardsError,
    SequenceExhaustedError,
    Snowflake,
)

T = 1_700_000_000_000
LONGEST = 2**32 - 1

# Turns a wait that never ends into a failure.
pytestmark = pytest.mark.timeout(300)

CALLS: dict[str, Callable[[Snowflake], object]] = {
    "next_id": lambda ids: ids.next_id(),
    "next": next,
    "next_ids": lambda ids: ids.next_ids(5_000),
    "next_ids-large": lambda ids: ids.next_ids(100_000),
    "fill": lambda ids: ids.fill(array("Q", bytes(8 * 5_000))),
    "fill-large": lambda ids: ids.fill(array("Q", bytes(8 * 100_000))),
    "fill-unaligned": lambda ids: ids.fill(memoryview(bytearray(8 * 5_000 + 1))[1:].cast("Q")),
}


def used_up(clock: Callable[[], int], **options: Any) -> Snowflake:
    """A Snowflake whose clock stays within a tick that has no IDs left."""
    ids = Snowflake(node=1, clock=clock, sequence_start="zero", **options)
    ids.next_ids(4096)
    return ids


# The bound ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("options", [{"max_wait_ms": 0}, {"max_wait_ms": 120}], ids=str)
def test_a_clock_that_stops_ends_in_exhaustion(call: str, options: dict[str, int]) -> None:
    ids = used_up(itertools.repeat(T).__next__, **options)
    with pytest.raises(SequenceExhaustedError) as caught:
        CALLS[call](ids)
    assert caught.value.retry_after_ms == 1
    assert ids.stats.waits == 1
    assert ids.stats.last_issued_ms == T


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("step_ms", [1, 50, 10**9])
def test_a_clock_that_goes_back_forever_does_not_hang(call: str, step_ms: int) -> None:
    """No matter how far it may step back, calls use up the last tick's IDs and then fail."""
    falling = itertools.count(T, -step_ms).__next__
    ids = Snowflake(node=1, clock=falling, max_backward_ms=LONGEST, max_wait_ms=120)
    issued = [ids.next_id()]

    def use_up() -> None:
        for _ in range(5_000):
            CALLS[call](ids)
            issued.append(ids.next_id())

    with pytest.raises(ClockMovedBackwardsError) as caught:
        use_up()
    assert caught.value.behind_ms > 0
    assert len(set(issued)) == len(issued)
    assert {ids.decode(id).timestamp_ms for id in issued} == {T}
    assert ids.stats.last_issued_ms == T


def test_a_step_back_past_the_bound_does_not_wait() -> None:
    now = [T]
    ids = Snowflake(node=1, clock=lambda: now[0], max_wait_ms=LONGEST)
    ids.next_id()
    now[0] -= 1001
    for call in CALLS.values():
        with pytest.raises(ClockMovedBackwardsError) as caught:
            call(ids)
        assert caught.value.behind_ms == 1001


def test_try_next_id_does_not_wait() -> None:
    ids = used_up(lambda: T, max_wait_ms=LONGEST)
    with pytest.raises(SequenceExhaustedError):
        ids.try_next_id()


def a_slow_clock(readings: int) -> Iterator[int]:
    """A tick ends after a number of readings, or after 100 ms on a machine that stood still."""
    for tick in itertools.count(T):
        began = time.monotonic()
        for _ in range(readings):
            yield tick
            if time.monotonic() - began > 0.1:
                break


def test_a_batch_continues_as_long_as_it_makes_progress() -> None:
    """A batch may take longer than max_wait_ms, which limits the time without any progress."""
    slow = a_slow_clock(5).__next__
    layout = "timestamp:41|worker:10|sequence:4@1288834974657/1ms"
    ids = Snowflake(layout=layout, node=1, clock=slow, max_wait_ms=1000)
    batch = ids.next_ids(16 * 2000)
    assert len(set(batch)) == 16 * 2000
    # Each wait has at least three pauses of 0.2 ms.
    assert ids.stats.waits * 3 * 0.2 > 1000


@pytest.mark.parametrize("call", CALLS)
def test_a_clock_that_fails_during_a_wait(call: str) -> None:
    readings = itertools.chain([T] * 20, [None])
    ids = used_up(readings.__next__, max_wait_ms=LONGEST)  # type: ignore[arg-type]
    with pytest.raises(ClockFailedError, match="returned None"):
        CALLS[call](ids)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_a_clock_that_ends_the_wait(call: str, error: type[BaseException]) -> None:
    readings = itertools.repeat(T, 20)

    def clock() -> int:
        try:
            return next(readings)
        except StopIteration:
            raise error from None

    ids = used_up(clock, max_wait_ms=LONGEST)
    with pytest.raises(error):
        CALLS[call](ids)


# Other threads -----------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_another_thread_runs_while_one_waits(call: str) -> None:
    """The clock is C code, so only the wait itself can release the GIL.

    Otherwise, nothing advances the clock, and the call raises an exception.
    """
    now = [T]
    clock: Callable[[], Any] = partial(getitem, now, 0)
    ids = used_up(clock, max_wait_ms=60_000)
    done: list[object] = []
    waiting = threading.Thread(target=lambda: done.append(CALLS[call](ids)))
    waiting.start()
    while not ids.stats.waits:
        assert waiting.is_alive()
    for _ in range(1000):
        assert done == []
    while waiting.is_alive():
        now[0] += 1
        waiting.join(0.001)
    assert len(done) == 1
    assert ids.stats.last_issued_ms is not None
    assert T < ids.stats.last_issued_ms <= now[0]


# Ctrl-C ------------------------------------------------------------------------------------------

CHILD = """
import itertools, signal, threading, time
from array import array
from polyflake import Snowflake

# A test run in the background ignores Ctrl-C, and child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

def held():
    return 1_700_000_000_000

in_c = itertools.repeat(1_700_000_000_000).__next__
# A tick of ten hours that has just begun, which a new cursor treats as used up.
ten_hours = f"timestamp:30|worker:10|sequence:1@{int(time.time()) * 1000}/36000s"
layout = {"held": "twitter", "in_c": "twitter", "builtin": ten_hours}[CLOCK]
clock = {"held": held, "in_c": in_c, "builtin": "system"}[CLOCK]
ids = Snowflake(layout=layout, node=1, max_wait_ms=60000, clock=clock, sequence_start="zero")
if CLOCK != "builtin":
    ids.next_ids(4096)

def announce():
    while not ids.stats.waits:
        time.sleep(0.001)
    print("waiting", flush=True)

threading.Thread(target=announce, daemon=True).start()
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", ids.stats.waits, flush=True)
    raise
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("clock", ["held", "in_c", "builtin"])
@pytest.mark.parametrize(
    "call",
    [
        "ids.next_id()",
        "next(ids)",
        "ids.next_ids(10)",
        "ids.next_ids(100_000)",
        "ids.fill(array('Q', bytes(80)))",
        "ids.fill(array('Q', bytes(800_000)))",
        "ids.fill(memoryview(bytearray(81))[1:].cast('Q'))",
    ],
)
def test_ctrl_c_ends_a_wait(call: str, clock: str) -> None:
    code = CHILD.replace("CLOCK", repr(clock)).replace("CALL", call)
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "waiting\n"
            child.send_signal(signal.SIGINT)
            # Otherwise, the wait would last for a minute and end with a different error.
            output, errors = child.communicate()
        finally:
            child.kill()
    assert output == "interrupted 1\n"
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert child.returncode == -signal.SIGINT
