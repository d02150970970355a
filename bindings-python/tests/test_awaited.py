"""Awaited counters and sequences: with many tasks, without a store, when a program exits."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from polyflake import (
    ClosedError,
    Counter,
    CounterUnavailableError,
    InvalidOptionError,
    Sequences,
)
from support import Redis, in_child, program

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and POSIX signals"),
    # Turns a wait that never ends into a failure.
    pytest.mark.timeout(300),
]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/numbers.db?ttl=10m"


def test_what_is_in_hand_comes_at_once(store: str) -> None:
    async def main() -> None:
        call = orders.next_id_async()
        assert inspect.iscoroutine(call)
        # No other task runs while numbers are in hand.
        others = asyncio.create_task(asyncio.sleep(0, "ran"))
        assert await call == 1
        assert await orders.next_ids_async(3) == [2, 3, 4]
        assert not others.done()
        assert await orders.next_block_async(4) == range(5, 9)
        assert await others == "ran"

    with Counter("orders", store=store) as orders:
        asyncio.run(main())
        assert orders.stats.waits == 0


def test_many_wait_without_a_thread_each(store: str) -> None:
    code = """
import asyncio, os
async def main(counter, inbox):
    numbers = await asyncio.gather(*(counter.next_id_async() for _ in range(500)))
    numbers += await counter.next_ids_async(100)
    numbers += await counter.next_block_async(100)
    keyed = await asyncio.gather(*(inbox.next_id_async(it % 7) for it in range(700)))
    keyed += await inbox.next_ids_async(["a", 7, "a"])
    return [len(set(numbers)), max(numbers), sorted(keyed), len(os.listdir("/proc/self/task"))]
with Counter("asked", store=store, step=1, max_wait_ms=600_000) as counter:
    with Sequences("inbox", store=store, step=1, max_wait_ms=600_000) as inbox:
        tell(asyncio.run(main(counter, inbox)))
"""
    with program("from polyflake import Sequences\n" + code, store) as asking:
        count, highest, keyed, threads = asking.told()
        assert (count, highest) == (700, 700)
        assert keyed == sorted([*range(1, 101)] * 7 + [1, 1, 2])
        if sys.platform == "linux":
            # The threads of Python, the keeper and its store, the one for waiting calls, and the
            # one that delivers results.
            assert threads <= 6
        assert asking.end() == ""


def test_a_store_that_goes_away(redis: Redis) -> None:
    async def main() -> None:
        last = await patient.next_id_async()
        redis.kill()
        ticks = 0

        async def others() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        running = asyncio.create_task(others())
        calls = [counter.next_id_async() for _ in range(300)]
        calls += [counter.next_block_async(5), counter.next_ids_async(9)]  # type: ignore[list-item]
        failed = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(it) for it in failed} == {CounterUnavailableError}
        assert "redis://127" in str(failed[0])
        assert ticks > 0
        running.cancel()
        redis.start()
        while True:
            try:
                assert await counter.next_id_async() > last
            except CounterUnavailableError:
                continue
            return

    with (
        Counter("asked", store=redis.address(""), step=1) as patient,
        # Opens at once, because the other one is open.
        Counter("asked", store=redis.address(""), step=1, max_wait_ms=300) as counter,
    ):
        asyncio.run(main())


def test_cancelled_and_closed(redis: Redis) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(counter.next_id_async(), 0.05)
        waiting = [asyncio.create_task(counter.next_id_async()) for _ in range(5)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.to_thread(counter.close)
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(it) for it in ended] == [asyncio.CancelledError] + [ClosedError] * 4
        with pytest.raises(ClosedError):
            await counter.next_id_async()

    counter = Counter("asked", store=redis.address(""), step=1, max_wait_ms=600_000)
    redis.kill()
    asyncio.run(main())


def test_bad_input(store: str) -> None:
    async def main() -> None:
        with pytest.raises(InvalidOptionError, match="n is 0"):
            await counter.next_ids_async(0)
        for n in (0, 2**24 + 1):
            with pytest.raises(InvalidOptionError):
                await counter.next_block_async(n)
        for keys in ("alice", [1.5], [None]):
            call: Any = inbox.next_ids_async(keys)  # type: ignore[arg-type,unused-ignore]
            with pytest.raises(TypeError):
                await call
        with pytest.raises(TypeError):
            await inbox.next_id_async(1.5)  # type: ignore[arg-type]

    with Counter("orders", store=store) as counter, Sequences("inbox", store=store) as inbox:
        asyncio.run(main())
        with pytest.raises(RuntimeError, match="no running event loop"):
            # No number is in hand, and there is no event loop.
            Counter("asked", store=store, step=1).next_id_async().send(None)


def test_several_event_loops_and_a_child(store: str) -> None:
    async def main() -> list[int]:
        return await asyncio.gather(*(counter.next_id_async() for _ in range(20)))

    with Counter("asked", store=store, step=1) as counter:
        numbers = [number for _ in range(3) for number in asyncio.run(main())]
        told: Any = in_child(lambda: asyncio.run(main()))
        numbers += told + asyncio.run(main())
        assert sorted(numbers) == list(range(1, 101))


@pytest.mark.parametrize("end", ["raise SystemExit(0)", "import os; os._exit(0)", "pass"])
def test_a_program_ends_while_calls_wait(redis: Redis, end: str) -> None:
    code = f"""
import asyncio
async def main():
    waiting = [asyncio.create_task(counter.next_id_async()) for _ in range(10)]
    await asyncio.sleep(0)
    tell("waits")
    input()
    {end}
counter = Counter("asked", store=store, step=1, max_wait_ms=600_000)
tell(counter.next_id())
input()
asyncio.run(main())
"""
    with program(code, redis.address("")) as ending:
        assert ending.told() == 1
        redis.kill()
        ending.go()
        assert ending.told() == "waits"
        ending.go()
        ending.end()
