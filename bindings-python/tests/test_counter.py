"""Counters: processes, threads, forks, stores that go down. No test asserts a duration."""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
import multiprocessing
import pickle
import signal
import socket
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polyflake import (
    ClosedError,
    Counter,
    CounterStats,
    CounterUnavailableError,
    IdGenerator,
    InvalidOptionError,
    Snowflake,
)
from support import HAS_GIL, Redis, failure, in_child, program, type_errors, until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and POSIX signals"),
    # Turns a wait that never ends into a failure.
    pytest.mark.timeout(300),
]

LAST = 2**63 - 1
# For tests that never contact the store.
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture(params=["redis", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/counters.db?ttl=10m"
    redis: Redis = request.getfixturevalue("redis")
    return redis.address("ttl=10m")


def flush(redis: Redis) -> None:
    """Makes the server lose all its data."""
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(100) == b"+OK\r\n"


# Numbers -----------------------------------------------------------------------------------------


def test_numbers_count_up(store: str) -> None:
    with Counter("orders", store=store) as orders:
        assert [orders.next_id(), orders.next_id(), orders.try_next_id()] == [1, 2, 3]
        assert type(orders.next_id()) is int
        assert list(itertools.islice(orders, 3)) == [5, 6, 7]
        assert next(orders) == 8
        assert iter(orders) is orders
        assert orders.next_ids(3) == [9, 10, 11]
        assert orders.name == "orders"
        assert repr(orders) == "Counter('orders')"
    with Counter("orders", store=store) as orders:
        assert orders.next_id() == 12
    with program("tell(Counter('orders', store=store).next_id())", store) as other:
        assert other.told() == 13


@pytest.mark.parametrize("start", [7, np.int64(7), LAST - 1000], ids=repr)
def test_the_first_number(store: str, start: Any) -> None:
    with Counter("from", store=store, start=start) as counter:
        assert counter.next_id() == start
        assert type(counter.next_id()) is int
    # A counter that already exists continues from its last number.
    with Counter("from", store=store) as counter:
        assert counter.next_id() == start + 2


def test_counters_of_a_name_share(store: str) -> None:
    with Counter("orders", store=store) as one, Counter("orders", store=store) as two:
        with Counter("invoices", store=store) as others:
            assert [next(it) for it in (one, two, others, one, others)] == [1, 2, 1, 3, 2]
        assert one.stats == two.stats
        one.close()
        assert two.next_id() == 4


@pytest.mark.parametrize("step", ["auto", 10, 1])
def test_threads(store: str, step: Any) -> None:
    given: list[list[int]] = []

    def work(counter: Counter) -> None:
        mine: list[int] = []
        for _ in range(20):
            mine += [*counter.next_ids(15), counter.next_id(), *counter.next_block(4)]
        given.append(mine)

    with (
        Counter("threads", store=store, step=step) as one,
        Counter("threads", store=store, step=step) as two,
    ):
        threads = [threading.Thread(target=work, args=(it,)) for it in [one, two] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({number for mine in given for number in mine}) == 8 * 20 * 20
    assert all(mine == sorted(mine) for mine in given)


def test_processes(store: str) -> None:
    code = """
with Counter("orders", store=store) as orders:
    tell([orders.next_id() for _ in range(1000)])
    input()
"""
    with ExitStack() as stack:
        programs = [stack.enter_context(program(code, store)) for _ in range(4)]
        told = [it.told() for it in programs]
        for it in programs:
            it.go()
            it.end()
    assert all(numbers == sorted(numbers) for numbers in told)
    assert len({number for numbers in told for number in numbers}) == 4000


def test_batches(store: str) -> None:
    with Counter("batches", store=store) as counter:
        numbers = counter.next_ids(100_000)
        assert len(set(numbers)) == 100_000
        assert numbers == sorted(numbers)
        assert type(numbers[0]) is int
        last = numbers[-1]
        for buffer in (
            array("Q", bytes(8 * 40_000)),
            array("q", bytes(80)),
            np.zeros(10, np.uint64),
            memoryview(bytearray(8 * 1000 + 8))[3:-5].cast("Q"),
        ):
            counter.fill(buffer)
            filled = [int(number) for number in buffer]
            assert filled == sorted(set(filled))
            assert filled[0] > last
            last = filled[-1]
        counter.fill(array("Q"))
        for wrong in (b"12345678", array("I", [0, 0]), array("d", [0]), [0], memoryview(bytes(8))):
            with pytest.raises(TypeError):
                counter.fill(wrong)  # type: ignore[arg-type]


def test_a_block_is_one_run(store: str) -> None:
    with Counter("blocks", store=store, step=10) as counter:
        assert counter.next_id() == 1
        block = counter.next_block(5)
        assert type(block) is range
        assert block == range(2, 7)
        # The rest of the segment is skipped.
        block = counter.next_block(np.int8(8))
        assert block[0] > 6
        assert (len(block), block.step) == (8, 1)
        large = counter.next_block(1_000_000)
        assert large[0] > block[-1]
        assert len(large) == 1_000_000
        assert counter.next_id() > large[-1]
        assert counter.stats.skipped > 0


@pytest.mark.parametrize("n", [0, -1, 2**24 + 1, 2**64, 10**5000], ids=hex)
def test_so_many_numbers_there_are_not(store: str, n: int) -> None:
    with Counter("n", store=store) as counter:
        for call in (counter.next_ids, counter.next_block):
            with pytest.raises(InvalidOptionError, match="16777216"):
                call(n)
        for wrong in (1.0, "1", None, True):
            with pytest.raises(TypeError, match="n must be an int"):
                counter.next_ids(wrong)  # type: ignore[arg-type]
            with pytest.raises(TypeError, match="n must be an int"):
                counter.next_block(wrong)  # type: ignore[arg-type]
        assert counter.next_id() == 1


def test_the_end(store: str) -> None:
    with Counter("end", store=store, start=LAST - 4) as counter:
        assert counter.next_block(2) == range(LAST - 4, LAST - 2)
        assert counter.next_ids(2) == [LAST - 2, LAST - 1]
        assert counter.next_block(1) == range(LAST, LAST + 1)
        with pytest.raises(CounterUnavailableError, match=str(LAST)):
            counter.next_id()


def test_with_a_step_of_1_numbers_increase_over_all_processes(store: str) -> None:
    code = """
counter = Counter("strict", store=store, step=1)
while True:
    input()
    tell(counter.next_id())
"""
    with Counter("strict", store=store, step=1) as mine, program(code, store) as other:
        for number in range(1, 40, 4):
            assert mine.next_id() == number
            other.go()
            assert other.told() == number + 1
            assert mine.next_ids(2) == [number + 2, number + 3]
        with pytest.raises(CounterUnavailableError, match="no numbers left"):
            mine.try_next_id()


def test_several_stores(redis: Redis) -> None:
    stores = [redis.address("ttl=10m").replace("/0?", f"/{i}?") for i in (0, 1)]
    with Counter("tickets", store=stores) as counter:
        numbers = counter.next_ids(1000) + [counter.next_id() for _ in range(1000)]
        assert len(set(numbers)) == 2000
        assert {number % 2 for number in numbers} == {0, 1}
        with pytest.raises(InvalidOptionError, match="several stores"):
            counter.next_block(2)
    for others in (stores[::-1], stores[0], (stores[0],), [*stores, stores[0]]):
        with pytest.raises(InvalidOptionError, match="tickets"):
            Counter("tickets", store=others)


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"step": 0}, "step"),
        ({"step": 2**40}, "step is 1099511627776"),
        ({"step": -1}, "step is -1"),
        ({"step": 2**64}, "step is 18446744073709551616"),
        ({"step": 10**5000}, "step is an int of 16610 bits"),
        ({"start": 0}, "start is 0"),
        ({"start": 2**63}, "start is 9223372036854775808"),
        ({"start": 2**100}, f"start is {2**100}"),
        ({"start": -(2**100)}, f"start is -{2**100}"),
        ({"max_wait_ms": -1}, "max_wait_ms is -1"),
        ({"max_wait_ms": 2**32}, "max_wait_ms is 4294967296"),
        ({"name": ""}, "0 characters; it takes 1 to 100"),
        ({"name": "x" * 1000}, "1000 characters; it takes 1 to 100"),
        ({"name": "a\nb"}, "control character"),
        ({"store": []}, "store is missing"),
        ({"store": ""}, "store"),
        ({"store": "http://user:hunter2@host"}, "no such kind"),
        ({"store": "redis://user:hun/ter2@host"}, "%2F"),
        ({"store": ["redis://host/0", "redis://user:hunter2@host/x"]}, "number"),
    ],
    ids=itertools.count(),
)
def test_options_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Counter(**{"name": "orders", "store": NOBODY, **options})
    assert says in str(caught.value)
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": 5}, "name must be a str, not int"),
        ({"name": None}, "name must be a str, not NoneType"),
        ({"store": 5}, "store must be a str or a sequence of str, not int"),
        ({"store": None}, "store must be a str or a sequence of str, not NoneType"),
        ({"store": [5]}, "an address of store must be a str, not int"),
        ({"store": b"redis://host"}, "an address of store must be a str, not int"),
        ({"start": 1.0}, "start must be an int, not float"),
        ({"start": "1"}, "start must be an int, not str"),
        ({"start": True}, "start must be an int, not bool"),
        ({"step": "5"}, "step must be an int or 'auto', not str"),
        ({"step": 5.0}, "step must be an int or 'auto', not float"),
        ({"max_wait_ms": 0.5}, "max_wait_ms must be an int, not float"),
        ({"prefetch": 1}, "prefetch"),
    ],
    ids=str,
)
def test_wrong_types(options: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as caught:
        Counter(**{"name": "orders", "store": NOBODY, **options})
    assert says in str(caught.value)


def test_a_name_and_a_store_must_be_given() -> None:
    with pytest.raises(TypeError, match="store"):
        Counter("orders")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name"):
        Counter(store=NOBODY)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Counter("orders", NOBODY)  # type: ignore[call-arg]


def test_names(store: str) -> None:
    for name in ("x" * 100, "Bestellungen ü 🦀", "a b:c/d?e=f&g", "'"):
        with Counter(name, store=store) as counter:
            assert (counter.next_id(), counter.name) == (1, name)
            assert repr(counter) == f"Counter({name!r})"
    with pytest.raises(UnicodeEncodeError):
        Counter("\udc80", store=store)


def test_another_step_than_this_process_uses(store: str) -> None:
    with Counter("orders", store=store, step=50):
        for options in ({"step": 51}, {"step": "auto"}, {"step": 50, "start": 2}, {}):
            with pytest.raises(InvalidOptionError, match="start=1 and step=50 already"):
                Counter("orders", store=store, **options)
        with Counter("orders", store=store, step=50, start=1, max_wait_ms=5) as other:
            assert other.next_id() == 1
    with Counter("orders", store=store, step="auto", start=3) as counter:
        assert counter.next_id() == 2


def test_none_is_the_default(store: str) -> None:
    with Counter("orders", store=store, start=None, step=None, max_wait_ms=None) as counter:
        assert Counter("orders", store=store, start=1, step="auto", max_wait_ms=10_000)
        assert counter.next_id() == 1


# What a program sees -----------------------------------------------------------------------------


def test_stats(store: str) -> None:
    with Counter("stats", store=store, step=10) as counter:
        stats = counter.stats
        assert type(stats) is CounterStats
        assert (stats.in_hand, stats.step, stats.segments) == (10, 10, 1)
        # A tenth of the first segment is used.
        assert counter.next_id() == 1
        until(lambda: counter.stats.in_hand == 19)
        stats = counter.stats
        assert repr(stats) == "CounterStats(in_hand=19, step=10, segments=2, skipped=0, waits=0)"
        assert stats == counter.stats
        assert len({stats, counter.stats}) == 1
        counter.next_id()
        assert stats != counter.stats
        with pytest.raises(AttributeError):
            stats.step = 5  # type: ignore[misc]
        with pytest.raises(TypeError):
            CounterStats()


def test_closed(store: str) -> None:
    counter = Counter("closed", store=store)
    assert counter.__enter__() is counter
    assert counter.next_id() == 1
    counter.__exit__(None, None, None)
    counter.close()
    calls: list[Callable[[], object]] = [
        counter.next_id,
        counter.try_next_id,
        lambda: next(counter),
        lambda: counter.next_ids(1),
        lambda: counter.next_block(1),
        lambda: counter.fill(array("Q", [0])),
        lambda: counter.fill(array("Q")),
        lambda: counter.stats,
        counter.peek,
        lambda: counter.raise_to(5),
        counter.remove,
    ]
    for call in calls:
        with pytest.raises(ClosedError, match="the counter is closed"):
            call()
    assert counter.name == "closed"
    assert repr(counter) == "Counter('closed')"
    # The counter can be opened again with different options, like a new one.
    with Counter("closed", store=store, step=5) as counter:
        assert counter.next_id() == 2


def test_close_ends_the_calls_that_wait(redis: Redis) -> None:
    counter = Counter("waiting", store=redis.address(""), step=1, max_wait_ms=2**32 - 1)
    redis.kill()
    outcome: list[str] = []
    waiting = threading.Thread(target=lambda: outcome.append(failure(counter.next_id)))
    waiting.start()
    until(lambda: counter.stats.waits == 1)
    assert outcome == []
    counter.close()
    waiting.join()
    assert outcome == ["closed: the counter is closed"]


def test_peek_raise_and_remove(store: str) -> None:
    counter = Counter("raised", store=store, step=10)
    assert counter.peek() == 10
    assert counter.next_id() == 1
    until(lambda: counter.peek() == 20)
    counter.raise_to(np.int64(1000))
    assert counter.next_id() == 1001
    counter.raise_to(5)
    assert 1001 < counter.next_id() <= counter.peek()
    for number in (0, -1, 2**63, 2**100):
        with pytest.raises(InvalidOptionError, match=f"number is {number}"):
            counter.raise_to(number)
    with pytest.raises(TypeError, match="number must be an int, not float"):
        counter.raise_to(5.0)  # type: ignore[arg-type]
    assert counter.remove() is True
    assert counter.remove() is False
    for call in (counter.peek, counter.next_id):
        with pytest.raises(CounterUnavailableError, match=r"has no counter raised|it was removed"):
            call()
    counter.close()
    with Counter("raised", store=store) as counter:
        assert counter.next_id() == 1


def test_a_counter_cannot_be_copied(store: str) -> None:
    with Counter("copies", store=store) as counter:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="create one in each process"):
                attempt(counter)


# What is an IdGenerator --------------------------------------------------------------------------


class Fixed:
    """A program's own generator."""

    def __init__(self) -> None:
        self.numbers = itertools.count(42)

    def next_id(self) -> int:
        return next(self.numbers)

    def next_ids(self, n: int) -> list[int]:
        return list(itertools.islice(self.numbers, n))

    def __iter__(self) -> Iterator[int]:
        return self.numbers


def insert(ids: IdGenerator) -> int:
    """A type checker accepts all three."""
    first, second = ids.next_ids(2)
    return len({first, second, ids.next_id(), next(iter(ids))})


def test_what_gives_ids_is_an_id_generator(store: str) -> None:
    with Counter("typed", store=store) as counter:
        generators: list[IdGenerator] = [counter, Snowflake(node=620), Fixed()]
        for ids in generators:
            assert isinstance(ids, IdGenerator)
            assert insert(ids) == 4
    for other in (iter([1]), itertools.count(), object()):
        assert not isinstance(other, IdGenerator)


TYPES = """
from collections.abc import Iterator
from polyflake import Counter, IdGenerator, Snowflake

class Fixed:
    def next_id(self) -> int: return 42
    def next_ids(self, n: int) -> list[int]: return [42] * n
    def __iter__(self) -> Iterator[int]: return iter([42])

class Derived(IdGenerator):
    def next_id(self) -> int: return 42
    def next_ids(self, count: int, /) -> list[int]: return [42] * count
    def __iter__(self) -> Iterator[int]: return iter([42])

class Texts:
    def next_id(self) -> str: return "42"

def insert(ids: IdGenerator) -> int:
    return ids.next_id() + sum(ids.next_ids(2)) + next(iter(ids))

insert(Snowflake(node=7))
insert(Counter("orders", store="redis://host/0"))
insert(Fixed())
insert(Derived())
insert(Texts())
"""


def test_a_type_checker_knows_id_generators() -> None:
    line = TYPES.count("\n")
    assert type_errors(TYPES) == [
        f'<string>:{line}: error: Argument 1 to "insert" has incompatible type "Texts"; '
        'expected "IdGenerator"  [arg-type]'
    ]


# Waiting -----------------------------------------------------------------------------------------

INTERRUPTED = """
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
{before}
def announce():  # in which it needs the GIL
    time.sleep(0.2)
    tell("waiting")

threading.Thread(target=announce).start()
try:
    {call}
except KeyboardInterrupt:
    tell("interrupted")
"""
OPENED = "counter = Counter('slow', store=store, max_wait_ms=2**32 - 1, step=1); tell(0); input()"


@pytest.mark.parametrize(
    "call",
    [
        "Counter('slow', store=store, max_wait_ms=2**32 - 1)",
        "counter.next_id()",
        "next(counter)",
        "counter.next_ids(100)",
        "counter.next_block(100)",
        "counter.fill(memoryview(bytearray(800)).cast('Q'))",
        "counter.peek()",
        "counter.raise_to(5)",
        "counter.remove()",
    ],
)
def test_ctrl_c_ends_a_wait(redis: Redis, call: str) -> None:
    is_open = not call.startswith("Counter")
    code = INTERRUPTED.format(before=OPENED if is_open else "", call=call)
    if not is_open:
        redis.kill()
    with program(code, redis.address("")) as waiter:
        if is_open:
            assert waiter.told() == 0
            redis.kill()
            waiter.go()
        assert waiter.told() == "waiting"
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.told() == "interrupted"
        waiter.end()


def test_an_event_loop_goes_on(redis: Redis) -> None:
    address = redis.address("")

    async def main() -> list[int]:
        redis.send(signal.SIGSTOP)
        opening = asyncio.create_task(asyncio.to_thread(Counter, "loop", store=address, step=1))
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert not opening.done()
        redis.send(signal.SIGCONT)
        counter = await opening
        numbers = [await asyncio.to_thread(counter.next_id)]
        redis.send(signal.SIGSTOP)
        taking = asyncio.create_task(asyncio.to_thread(counter.next_ids, 5))
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert not taking.done()
        redis.send(signal.SIGCONT)
        numbers += await taking
        await asyncio.to_thread(counter.close)
        return numbers

    numbers = asyncio.run(main())
    assert len(numbers) == 6
    assert numbers == sorted(set(numbers))


def test_close_does_not_hold_the_gil(redis: Redis) -> None:
    """The store is paused until another thread resumes it."""
    counter = Counter("closing", store=redis.address(""))
    assert counter.next_id() == 1
    redis.send(signal.SIGSTOP)
    closing = threading.Thread(target=counter.close)
    closing.start()
    for _ in range(10):
        time.sleep(0.01)
    redis.send(signal.SIGCONT)
    closing.join()
    assert failure(counter.next_id) == "closed: the counter is closed"


@pytest.mark.skipif(not HAS_GIL, reason="this Python has no GIL")
def test_a_number_in_hand_does_not_release_the_gil(store: str) -> None:
    """A thread waiting for the GIL would request it only after an hour."""
    with Counter("fast", store=store, step=1_000_000) as counter:
        go, seen = threading.Event(), list[int]()

        def other() -> None:
            go.wait()
            seen.append(0)

        thread = threading.Thread(target=other)
        interval = sys.getswitchinterval()
        sys.setswitchinterval(3600)
        try:
            thread.start()
            go.set()
            for _ in range(100_000):
                counter.next_id()
                counter.try_next_id()
            during = len(seen)
        finally:
            sys.setswitchinterval(interval)
        thread.join()
        assert (during, len(seen)) == (0, 1)
        assert counter.stats.waits == 0


# Stores that go away -----------------------------------------------------------------------------


def test_redis_is_killed_and_comes_back(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "polyflake")
    patient = Counter("orders", store=redis.address(""), step=10, max_wait_ms=600_000)
    numbers = [patient.next_id()]
    # Opens at once, because the other one is open.
    counter = Counter("orders", store=redis.address(""), step=10, max_wait_ms=300)
    until(lambda: counter.stats.in_hand == 19)
    redis.kill()
    numbers += counter.next_ids(14) + [counter.try_next_id() for _ in range(5)]
    assert numbers == list(range(1, 21))
    for call in (counter.next_id, lambda: counter.next_block(5), counter.peek):
        with pytest.raises(CounterUnavailableError, match=r"redis://127") as caught:
            call()
        assert isinstance(caught.value, OSError)
        assert (caught.value.code, caught.value.name) == (15, "counter_unavailable")
    with pytest.raises(CounterUnavailableError):
        counter.try_next_id()
    assert counter.stats.waits > 0
    redis.start()
    numbers += [patient.next_id(), *patient.next_ids(100)]
    assert numbers == sorted(set(numbers))
    until(lambda: [it for it in redis.logged(caplog) if it.__dict__["kind"] == "store_reachable"])
    counter.close()
    patient.close()
    # A Redis server that restarts may have lost writes.
    kinds = {record.__dict__["kind"] for record in redis.logged(caplog)}
    assert kinds == {"store_reachable", "store_unreachable", "writes_lost"}
    for record in redis.logged(caplog):
        assert record.name == "polyflake"
        assert record.__dict__["node"] is None
        assert "orders" in record.getMessage()
        is_warning = record.__dict__["kind"] != "store_reachable"
        assert record.levelno == (logging.WARNING if is_warning else logging.INFO)


def test_a_store_that_has_lost_the_counter(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "polyflake")
    counter = Counter("orders", store=redis.address(""), step=10, max_wait_ms=60_000)
    assert counter.next_id() == 1
    until(lambda: counter.stats.in_hand == 19)
    flush(redis)
    until(lambda: redis.logged(caplog))
    (record,) = redis.logged(caplog)
    assert record.__dict__["kind"] == "writes_lost"
    assert record.__dict__["node"] is None
    assert record.levelno == logging.WARNING
    # The counter continues above every number it has handed out.
    assert counter.next_ids(19) == list(range(2, 21))
    assert counter.next_id() > 20
    counter.raise_to(1000)
    assert counter.next_ids(30)[-1] > 1000
    counter.close()


def test_a_store_that_cannot_be_reached(redis: Redis) -> None:
    port = redis.port
    redis.kill()
    address = f"redis://user:hunter2@127.0.0.1:{port}/0"
    with pytest.raises(CounterUnavailableError, match=rf"redis://127\.0\.0\.1:{port}/0") as caught:
        Counter("orders", store=address, max_wait_ms=200)
    assert "hunter2" not in str(caught.value)
    redis.start()
    with pytest.raises(CounterUnavailableError, match=rf"127\.0\.0\.1:{port}/0") as caught:
        Counter("orders", store=address, max_wait_ms=200)
    assert "hunter2" not in str(caught.value)
    # A counter with this name can then be opened with a different address and options.
    with Counter("orders", store=redis.address(""), step=5) as counter:
        assert counter.next_id() == 1


@pytest.mark.parametrize("end", ["counter.close()", "del counter", ""])
def test_a_program_ends_where_its_store_is_gone(redis: Redis, end: str) -> None:
    code = f"""
import logging
logging.basicConfig(level=logging.INFO)
counter = Counter("orders", store=store)
tell(counter.next_id())
input()
{end}
"""
    with program(code, redis.address("")) as ending:
        assert ending.told() == 1
        redis.kill()
        ending.go()
        ending.end()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_no_thread_is_left_after_close(store: str) -> None:
    code = """
import os
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
for _ in range(10):
    counter = Counter("orders", store=store)
    during = threads()
    counter.close()
while threads() != before:
    time.sleep(0.01)
tell([before, during])
"""
    with program(code, store) as ending:
        before, during = ending.told()
        assert before == 1
        assert during > 1
        assert ending.end() == ""


# Forks -------------------------------------------------------------------------------------------


def test_a_child_has_numbers_of_its_own(store: str) -> None:
    counter = Counter("forks", store=store)
    mine = counter.next_ids(10)

    def child() -> Any:
        numbers = [
            counter.next_id(),
            *counter.next_ids(200),
            *counter.next_block(10),
            next(counter),
        ]
        stats = counter.stats
        counter.close()
        return [numbers, stats.segments > 0, failure(counter.next_id)]

    for _ in range(3):
        told: Any = in_child(child)
        numbers, has_segments, closed = told
        assert len(numbers) == 212
        assert numbers == sorted(numbers)
        assert not {*mine} & {*numbers}
        assert has_segments
        assert closed == "closed: the counter is closed"
        mine += numbers
        mine += counter.next_ids(10)
    assert len(set(mine)) == len(mine)
    counter.close()
    # A closed counter stays closed.
    assert in_child(lambda: failure(counter.next_id)) == "closed: the counter is closed"


preloaded: list[Counter] = []
barrier: list[Any] = []


def take(_: int) -> list[int]:
    barrier[0].wait()
    return [preloaded[0].next_id() for _ in range(500)] + preloaded[0].next_ids(500)


def test_a_preloading_parent_and_its_workers(store: str) -> None:
    """Forks as `gunicorn --preload` does."""
    fork = multiprocessing.get_context("fork")
    preloaded[:] = [Counter("preloaded", store=store)]
    barrier[:] = [fork.Barrier(4)]
    given = [preloaded[0].next_ids(1000)]
    with fork.Pool(4) as pool:
        given += pool.map(take, range(8), chunksize=1)
    given += [preloaded[0].next_ids(1000)]
    preloaded.pop().close()
    assert all(numbers == sorted(numbers) for numbers in given)
    assert len({number for numbers in given for number in numbers}) == 10_000


def test_forks_amid_fetches(store: str) -> None:
    """A fork may happen while the keeper or another thread is holding a lock."""
    counter = Counter("amid", store=store, step=5)
    taken: list[int] = []
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            taken.extend(counter.next_ids(20))

    thread = threading.Thread(target=work)
    thread.start()
    numbers: list[int] = []
    for _ in range(20):
        told: Any = in_child(lambda: [counter.next_id(), *counter.next_ids(20)])
        numbers += told
    is_over.set()
    thread.join()
    assert len({*numbers, *taken}) == len(numbers) + len(taken)
    counter.close()
