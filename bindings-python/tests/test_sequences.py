"""Sequences: keys, batches, threads, processes, forks. No test asserts a duration."""

from __future__ import annotations

import asyncio
import copy
import enum
import itertools
import logging
import pickle
import re
import signal
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from polyflake import (
    ClosedError,
    CounterUnavailableError,
    IdGenerator,
    InvalidOptionError,
    LeaseLostError,
    LeaseUnavailableError,
    Sequences,
    SequencesStats,
)
from support import HAS_GIL, Redis, failure, in_child, program, type_errors, until

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and POSIX signals"),
    # Turns a wait that never ends into a failure.
    pytest.mark.timeout(300),
]

# For tests that never contact the store.
NOBODY = "redis://127.0.0.1:1/0"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path}/sequences.db?ttl=10m"


# Keys and numbers --------------------------------------------------------------------------------


def test_each_key_counts_for_itself(store: str) -> None:
    with Sequences("inbox", store=store) as inbox:
        assert [inbox.next_id("alice") for _ in range(3)] == [1, 2, 3]
        assert [inbox.next_id("bob"), inbox.try_next_id("bob"), inbox.next_id("bob")] == [1, 2, 3]
        assert inbox.next_id("alice") == 4
        assert type(inbox.next_id("alice")) is int
        assert inbox.name == "inbox"
        assert repr(inbox) == "Sequences('inbox')"
        # Each of its numbers belongs to a key.
        assert not isinstance(inbox, IdGenerator)


class Red(enum.IntEnum):
    FIVE = 5


class Text(enum.StrEnum):
    FIVE = "5"


class Five:
    """An integer like NumPy's."""

    def __index__(self) -> int:
        return 5


def test_texts_and_integers_are_different_keys(store: str) -> None:
    with Sequences("kinds", store=store) as kinds:
        assert kinds.next_ids([5, "5", 5, "5", 5]) == [1, 1, 2, 2, 3]
        fives: list[Any] = [np.int64(5), np.uint8(5), Red.FIVE, Five()]
        assert [kinds.next_id(key) for key in fives] == [4, 5, 6, 7]
        assert [kinds.next_id(key) for key in (Text.FIVE, np.str_("5"))] == [3, 4]
        ends = [-(2**63), -1, 0, 2**63 - 1, 2**63, 2**64 - 1]
        texts = ["", "\0", " 5", "ü 🦀", "u\u0308 🦀", "a\nb", "x" * 100_000, *map(str, ends)]
        keys: list[str | int] = [*ends, *texts]
        assert kinds.next_ids(keys) == [1] * len(keys)
        assert [kinds.next_id(key) for key in keys] == [2] * len(keys)
        assert [kinds.try_next_id(key) for key in keys] == [3] * len(keys)


CANNOT_BE = [1.0, float("nan"), None, True, False, b"5", (5,), [5], {}, object(), np.float64(5)]


@pytest.mark.parametrize("key", CANNOT_BE, ids=repr)
def test_keys_that_cannot_be(store: str, key: Any) -> None:
    with Sequences("keys", store=store) as sequences:
        says = f"key must be a str or an int, not {re.escape(type(key).__name__)}"
        for call in (sequences.next_id, sequences.try_next_id):
            with pytest.raises(TypeError, match=says):
                call(key)
        # The keys before the invalid one lose no numbers.
        with pytest.raises(TypeError, match=says):
            sequences.next_ids(["alice", 5, key])
        assert sequences.next_ids(["alice", 5]) == [1, 1]


@pytest.mark.parametrize("key", [2**64, -(2**63) - 1, 2**127, -(2**127) - 1, 2**200], ids=hex)
def test_integers_that_64_bits_do_not_hold(store: str, key: int) -> None:
    with Sequences("keys", store=store) as sequences:
        for call in (sequences.next_id, sequences.try_next_id, lambda it: sequences.next_ids([it])):
            with pytest.raises(InvalidOptionError, match=f"key is {str(key)[:20]}.*{2**64 - 1}"):
                call(key)
        with pytest.raises(InvalidOptionError, match="an int of 16610 bits"):
            sequences.next_id(10**5000)
        assert sequences.stats.keys == 0


def test_texts_that_utf_8_cannot_encode(store: str) -> None:
    with Sequences("keys", store=store) as sequences:
        for call in (sequences.next_id, sequences.try_next_id, lambda it: sequences.next_ids([it])):
            with pytest.raises(UnicodeEncodeError):
                call("\udc80")
        with pytest.raises(UnicodeEncodeError):
            Sequences("\udc80", store=store)


def test_an_exception_of_a_key_is_the_callers(store: str) -> None:
    class Bad:
        def __index__(self) -> int:
            raise ZeroDivisionError

    def stops() -> Iterator[str]:
        yield "alice"
        raise ZeroDivisionError

    with Sequences("keys", store=store) as sequences:
        calls: list[Callable[[], object]] = [
            lambda: sequences.next_id(Bad()),
            lambda: sequences.try_next_id(Bad()),
            lambda: sequences.next_ids(["alice", Bad()]),
            lambda: sequences.next_ids(stops()),
        ]
        for call in calls:
            with pytest.raises(ZeroDivisionError):
                call()
        assert sequences.next_id("alice") == 1


def test_batches(store: str) -> None:
    with Sequences("batches", store=store) as sequences:
        numbers = sequences.next_ids(["a", "b", "a", "c", "a", "b"])
        assert type(numbers) is list
        assert type(numbers[0]) is int
        assert numbers == [1, 1, 2, 1, 3, 2]
        several: list[Iterable[str]] = [
            ("a", "b", "c"),
            iter(["a", "b", "c"]),
            (letter for letter in "abc"),
            {"a": 0, "b": 0, "c": 0},
            map(str, ["a", "b", "c"]),
            np.array(["a", "b", "c"]),
        ]
        for at, keys in enumerate(several):
            assert sequences.next_ids(keys) == [4 + at, 3 + at, 2 + at]
        for integers in (array("q", [7, 8]), np.array([7, 8]), range(7, 9), {7, 8}):
            numbers = sequences.next_ids(integers)
            assert numbers[0] == numbers[1]
        assert numbers == [4, 4]
        none: list[Iterable[str]] = [[], (), iter(())]
        for keys in none:
            assert sequences.next_ids(keys) == []
        for wrong in (5, None, 1.5, object(), "alice", b"alice"):
            with pytest.raises(TypeError):
                sequences.next_ids(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="keys must be an iterable of str or int, not str"):
            sequences.next_ids("alice")


def test_large_batches(store: str) -> None:
    with Sequences("large", store=store, step=3000) as sequences:
        assert sequences.next_ids(range(50_000)) == [1] * 50_000
        assert sequences.next_ids(list(range(50_000))) == [2] * 50_000
        # The section's bound is moved during the call.
        assert sequences.next_ids(["alice"] * 50_000) == list(range(1, 50_001))
        assert sequences.stats.keys == 50_001


def test_a_list_that_changes_meanwhile(store: str) -> None:
    class Clears:
        def __index__(self) -> int:
            keys.clear()
            return 5

    keys: list[Any] = ["a" * 1000, Clears(), "b" * 1000, *map(str, range(10_000))]
    with Sequences("changes", store=store) as sequences:
        assert sequences.next_ids(keys) == [1] * 10_003
        assert keys == []


def test_reopened_it_goes_on(store: str) -> None:
    for at in range(3):
        with Sequences("inbox", store=store, sections=1) as inbox:
            first = inbox.next_id("alice")
            assert first == 3 * at + 1
            assert inbox.next_ids(["alice", "alice"]) == [first + 1, first + 2]
    with (
        Sequences("others", store=store) as others,
        Sequences("inbox", store=store, sections=1) as inbox,
    ):
        # Above every number in the section.
        assert inbox.next_ids(["bob", "alice", "bob"]) == [10, 10, 11]
        assert others.next_id("alice") == 1


def test_keys_leave_memory_and_come_back(store: str) -> None:
    with Sequences("few", store=store, sections=1, max_keys=2) as few:
        seen: dict[int, list[int]] = {}
        for at in range(100):
            key = at * at % 7
            seen.setdefault(key, []).append(few.next_id(key))
        assert all(numbers == sorted(set(numbers)) for numbers in seen.values())
        assert few.stats.keys <= 2
        assert few.stats.evicted > 0


def test_sequences_of_a_name_share(store: str) -> None:
    with Sequences("inbox", store=store) as one, Sequences("inbox", store=store) as two:
        assert [it.next_id("alice") for it in (one, two, one)] == [1, 2, 3]
        one.close()
        assert two.next_id("alice") == 4
        with pytest.raises(ClosedError):
            one.next_id("alice")


@pytest.mark.parametrize("step", [7, 10_000])
def test_threads(store: str, step: int) -> None:
    keys: list[str | int] = ["alice", "bob", 5, "5"]
    given: list[list[tuple[object, int]]] = []

    def work(sequences: Sequences) -> None:
        mine: list[tuple[object, int]] = []
        for at in range(50):
            several = [keys[at % 4], keys[at % 3], keys[at % 4]]
            mine += zip(several, sequences.next_ids(several), strict=True)
            mine.append((keys[at % 2], sequences.next_id(keys[at % 2])))
        given.append(mine)

    with (
        Sequences("threads", store=store, step=step) as one,
        Sequences("threads", store=store, step=step) as two,
    ):
        threads = [threading.Thread(target=work, args=(it,)) for it in [one, two] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(given) == 8
    for key in keys:
        of_threads = [[number for its, number in mine if its == key] for mine in given]
        assert all(numbers == sorted(numbers) for numbers in of_threads)
        numbers = sorted(itertools.chain(*of_threads))
        assert numbers == list(range(1, len(numbers) + 1))


# Processes ---------------------------------------------------------------------------------------

OWNER = """
inbox = Sequences("inbox", store=store, sections=1, step=10)
tell([inbox.next_id("alice") for _ in range(5)])
input()
inbox.close()
"""


def test_one_process_at_a_time(tmp_path: Path) -> None:
    address = f"sqlite://{tmp_path}/sequences.db?wait=1s&label="
    with program(OWNER, address + "first") as first:
        assert first.told() == [1, 2, 3, 4, 5]
        with pytest.raises(LeaseUnavailableError, match="`first` holds its lease") as caught:
            Sequences("inbox", store=address + "second", sections=1, step=10)
        assert isinstance(caught.value, OSError)
        assert (caught.value.code, caught.value.name) == (12, "lease_unavailable")
        # Sequences with a different name are available.
        with Sequences("others", store=address + "second") as others:
            assert others.next_id("alice") == 1
        first.go()
        first.end()
    with Sequences("inbox", store=address + "second", sections=1, step=10) as inbox:
        assert inbox.next_id("alice") == 6


def test_an_owner_that_is_killed(tmp_path: Path) -> None:
    address = f"sqlite://{tmp_path}/sequences.db?ttl=3s&wait=5m"
    with program(OWNER, address) as first:
        assert first.told() == [1, 2, 3, 4, 5]
        first.process.kill()
        first.process.wait()
    with Sequences("inbox", store=address, sections=1, step=10) as inbox:
        # At most two steps are lost.
        assert 5 < inbox.next_id("alice") <= 26


# Options -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sections": 0}, "sections is 0; it takes a whole number from 1 to 16384"),
        ({"sections": 16385}, "sections is 16385"),
        ({"sections": -1}, "sections is -1"),
        ({"sections": 10**5000}, "sections is an int of 16610 bits"),
        ({"step": 0}, "step is 0"),
        ({"step": 2**40}, "step is 1099511627776"),
        ({"step": 2**64}, "step is 18446744073709551616"),
        ({"max_keys": 0}, "max_keys is 0"),
        ({"max_keys": 10**9 + 1}, "max_keys is 1000000001"),
        ({"max_wait_ms": -1}, "max_wait_ms is -1"),
        ({"max_wait_ms": 2**32}, "max_wait_ms is 4294967296"),
        ({"name": ""}, "0 characters; it takes 1 to 100"),
        ({"name": "x" * 1000}, "1000 characters; it takes 1 to 100"),
        ({"name": "a\nb"}, "control character"),
        ({"store": ""}, "store"),
        ({"store": "http://user:hunter2@host"}, "no such kind"),
        ({"store": "redis://user:hun/ter2@host"}, "%2F"),
        ({"store": "postgres://user:hunter2@host/shop?schema=leaf"}, "schema is for counters"),
    ],
    ids=itertools.count(),
)
def test_options_that_cannot_be(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Sequences(**{"name": "inbox", "store": NOBODY, **options})
    assert says in str(caught.value)
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": 5}, "name must be a str, not int"),
        ({"name": None}, "name must be a str, not NoneType"),
        ({"store": 5}, "store must be a str, not int"),
        ({"store": None}, "store must be a str, not NoneType"),
        ({"store": [NOBODY]}, "store must be a str, not list"),
        ({"sections": 1.0}, "sections must be an int, not float"),
        ({"step": "auto"}, "step must be an int, not str"),
        ({"max_keys": True}, "max_keys must be an int, not bool"),
        ({"max_wait_ms": 0.5}, "max_wait_ms must be an int, not float"),
        ({"start": 1}, "start"),
    ],
    ids=str,
)
def test_wrong_types(options: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as caught:
        Sequences(**{"name": "inbox", "store": NOBODY, **options})
    assert says in str(caught.value)


def test_a_name_and_a_store_must_be_given() -> None:
    with pytest.raises(TypeError, match="store"):
        Sequences("inbox")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name"):
        Sequences(store=NOBODY)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Sequences("inbox", NOBODY)  # type: ignore[call-arg]


def test_options_of_others(store: str) -> None:
    options = {"sections": 16, "step": 50, "max_keys": 100}
    with Sequences("inbox", store=store, **options):
        for other in ({"sections": 17}, {"step": 51}, {"max_keys": 101}):
            with pytest.raises(InvalidOptionError, match="sections=16, step=50, max_keys=100"):
                Sequences("inbox", store=store, **{**options, **other})
        with Sequences("inbox", store=store, max_wait_ms=5, **options) as same:
            assert same.next_id("alice") == 1
    # The store records the number of sections.
    with pytest.raises(InvalidOptionError, match="16 sections of it, and 17 are asked for"):
        Sequences("inbox", store=store, sections=17)
    with Sequences("inbox", store=store, sections=np.int8(16)) as inbox:
        assert inbox.next_id("alice") == 2


def test_none_is_the_default(store: str) -> None:
    with (
        Sequences(
            "inbox", store=store, sections=None, step=None, max_keys=None, max_wait_ms=None
        ) as one,
        Sequences("inbox", store=store, sections=1024, step=10_000, max_keys=1_000_000) as two,
    ):
        assert (one.next_id(1), two.next_id(1)) == (1, 2)


def test_names(store: str) -> None:
    for name in ("x" * 100, "Eingänge ü 🦀", "a b:c/d?e=f&g", "'"):
        with Sequences(name, store=store) as sequences:
            assert (sequences.next_id("alice"), sequences.name) == (1, name)
            assert repr(sequences) == f"Sequences({name!r})"


# What a program sees -----------------------------------------------------------------------------


def test_stats(store: str) -> None:
    with Sequences("stats", store=store, step=10_000) as sequences:
        sequences.next_ids(["alice", "bob", "alice"])
        stats = sequences.stats
        assert type(stats) is SequencesStats
        assert (stats.keys, stats.evicted, stats.moves, stats.waits) == (2, 0, 1, 0)
        assert 0 < stats.time_left_ms <= 600_000
        shown = f"keys=2, evicted=0, moves=1, waits=0, time_left_ms={stats.time_left_ms}"
        assert repr(stats) == f"SequencesStats({shown})"
        # Two snapshots are equal if they were taken in the same millisecond.
        until(lambda: len({sequences.stats, sequences.stats}) == 1)
        sequences.next_id("carol")
        assert stats != sequences.stats
        assert sequences.stats.keys == 3
        with pytest.raises(AttributeError):
            stats.keys = 5  # type: ignore[misc]
        with pytest.raises(TypeError):
            SequencesStats()


def test_closed(store: str) -> None:
    sequences = Sequences("closed", store=store)
    assert sequences.__enter__() is sequences
    assert sequences.next_id("alice") == 1
    sequences.__exit__(None, None, None)
    sequences.close()
    calls: list[Callable[[], object]] = [
        lambda: sequences.next_id("alice"),
        lambda: sequences.try_next_id(5),
        lambda: sequences.next_ids(["alice"]),
        lambda: sequences.next_ids([]),
        lambda: sequences.stats,
    ]
    for call in calls:
        with pytest.raises(ClosedError, match="the sequences are closed"):
            call()
    assert sequences.name == "closed"
    assert repr(sequences) == "Sequences('closed')"
    with Sequences("closed", store=store) as sequences:
        assert sequences.next_id("alice") == 2
    with pytest.raises(ClosedError):
        sequences.next_id("alice")


def test_it_cannot_be_copied(store: str) -> None:
    with Sequences("copies", store=store) as sequences:
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="one process at a time"):
                attempt(sequences)


TYPES = """
from polyflake import Sequences

inbox = Sequences("inbox", store="redis://host/0")
numbers: list[int] = [inbox.next_id("alice"), inbox.try_next_id(5)]
numbers += inbox.next_ids(["alice", "bob"]) + inbox.next_ids(range(5)) + inbox.next_ids({"a": 1})
mixed: tuple[str | int, ...] = ("alice", 5)
numbers += inbox.next_ids(mixed) + inbox.next_ids(str(i) for i in range(5))
with inbox as same:
    left: int = same.stats.time_left_ms
inbox.next_id(5.0)
"""


def test_a_type_checker_knows_keys() -> None:
    line = TYPES.count("\n")
    assert type_errors(TYPES) == [
        f'<string>:{line}: error: Argument 1 to "next_id" of "Sequences" has incompatible type '
        '"float"; expected "str | SupportsIndex"  [arg-type]'
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
OPENED = """
slow = Sequences('slow', store=store, max_wait_ms=2**32 - 1, step=1, sections=1)
tell(0)
input()
"""


@pytest.mark.parametrize(
    "call",
    [
        "Sequences('slow', store=store)",
        "[slow.next_id('alice') for _ in range(10)]",
        "slow.next_ids(['alice'] * 10)",
    ],
)
def test_ctrl_c_ends_a_wait(redis: Redis, call: str) -> None:
    is_open = not call.startswith("Sequences")
    code = INTERRUPTED.format(before=OPENED if is_open else "", call=call)
    if not is_open:
        redis.kill()
    with program(code, redis.address("wait=10m&ttl=10m")) as waiter:
        if is_open:
            assert waiter.told() == 0
            redis.kill()
            waiter.go()
        assert waiter.told() == "waiting"
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.told() == "interrupted"
        waiter.end()


def test_an_event_loop_goes_on(redis: Redis) -> None:
    async def main() -> list[int]:
        redis.send(signal.SIGSTOP)
        opening = asyncio.create_task(
            asyncio.to_thread(Sequences, "loop", store=redis.address(""), step=1, sections=1)
        )
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert not opening.done()
        redis.send(signal.SIGCONT)
        sequences = await opening
        numbers = [await asyncio.to_thread(sequences.next_id, "alice")]
        redis.send(signal.SIGSTOP)
        taking = asyncio.create_task(asyncio.to_thread(sequences.next_ids, ["alice"] * 10))
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert not taking.done()
        redis.send(signal.SIGCONT)
        numbers += await taking
        await asyncio.to_thread(sequences.close)
        return numbers

    assert asyncio.run(main()) == list(range(1, 12))


def test_close_does_not_hold_the_gil(redis: Redis) -> None:
    """The store is paused until another thread resumes it."""
    sequences = Sequences("closing", store=redis.address(""))
    assert sequences.next_id("alice") == 1
    redis.send(signal.SIGSTOP)
    closing = threading.Thread(target=sequences.close)
    closing.start()
    for _ in range(10):
        time.sleep(0.01)
        assert closing.is_alive()
    redis.send(signal.SIGCONT)
    closing.join()
    assert failure(lambda: sequences.next_id("alice")) == "closed: the sequences are closed"


def test_close_ends_the_calls_that_wait(redis: Redis) -> None:
    sequences = Sequences(
        "waiting", store=redis.address("ttl=10m"), step=1, sections=1, max_wait_ms=2**32 - 1
    )
    redis.kill()
    outcome: list[str] = []

    def work() -> None:
        outcome.append(failure(lambda: [sequences.next_id("alice") for _ in range(10)]))

    waiting = threading.Thread(target=work)
    waiting.start()
    until(lambda: sequences.stats.waits == 1)
    assert outcome == []
    sequences.close()
    waiting.join()
    assert outcome == ["closed: the sequences are closed"]


@pytest.mark.skipif(not HAS_GIL, reason="this Python has no GIL")
def test_a_number_in_hand_does_not_release_the_gil(store: str) -> None:
    """A thread waiting for the GIL would request it only after an hour."""
    with Sequences("fast", store=store, step=1_000_000) as sequences:
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
            for _ in range(50_000):
                sequences.next_id("alice")
                sequences.try_next_id(5)
            sequences.next_ids(["alice", 5])
            during = len(seen)
        finally:
            sys.setswitchinterval(interval)
        thread.join()
        assert (during, len(seen)) == (0, 1)
        assert sequences.stats.waits == 0


@pytest.mark.skipif(not HAS_GIL, reason="this Python has no GIL")
def test_a_large_batch_lets_other_threads_run(store: str) -> None:
    """A number that another thread takes during a batch is missing from the batch."""
    with Sequences("shared", store=store, step=100_000_000) as sequences:
        # The first number waits for the store; a wait during the batch would also let the other
        # thread run.
        sequences.next_id(5)
        ended = threading.Event()

        def other() -> None:
            while not ended.is_set():
                sequences.next_id(5)

        thread = threading.Thread(target=other)
        thread.start()
        batch = [0]
        try:
            # A thread requests the GIL only after waiting for the switch interval.
            while batch[-1] - batch[0] == len(batch) - 1:
                batch = sequences.next_ids([5] * 200_000)
        finally:
            ended.set()
            thread.join()
        assert sequences.stats.waits == 0


# Stores that go away -----------------------------------------------------------------------------


def test_redis_is_killed_and_comes_back(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "polyflake")
    address = redis.address("ttl=10m")
    sequences = Sequences("inbox", store=address, step=5, sections=1, max_wait_ms=300)
    patient = Sequences("inbox", store=address, step=5, sections=1, max_wait_ms=600_000)
    redis.kill()
    numbers = [sequences.next_id("alice") for _ in range(10)]
    assert numbers == list(range(1, 11))
    for call in (
        lambda: sequences.next_id("alice"),
        lambda: sequences.next_ids(["alice", "alice"]),
    ):
        with pytest.raises(CounterUnavailableError, match=r"sequences \"inbox\": .*redis://127"):
            call()
    with pytest.raises(CounterUnavailableError):
        sequences.try_next_id("alice")
    assert sequences.stats.waits > 0
    redis.start()
    numbers += [patient.next_id("alice"), *patient.next_ids(["alice"] * 100)]
    assert numbers == list(range(1, 112))
    sequences.close()
    patient.close()
    until(lambda: [it for it in redis.logged(caplog) if it.__dict__["kind"] == "released"])
    kinds = [record.__dict__["kind"] for record in redis.logged(caplog)]
    # A server that restarts may have lost its last writes. On a busy machine, Redis may not answer
    # the first request in time.
    others = [kind for kind in kinds if kind not in ("store_unreachable", "store_reachable")]
    assert [*others[:2], kinds[-1]] == ["init_always", "acquired", "released"]
    assert {"store_unreachable", "writes_lost", "store_reachable"} < set(kinds)
    for record in redis.logged(caplog):
        assert record.name == "polyflake"
        assert record.__dict__["node"] is None
        assert 'sequences "inbox"' in record.getMessage()


def test_a_lease_that_runs_out(redis: Redis) -> None:
    address = redis.address("ttl=3s&wait=2m")
    patient = Sequences("inbox", store=address, max_wait_ms=600_000)
    sequences = Sequences("inbox", store=address, max_wait_ms=50)
    assert patient.next_id("alice") == 1
    redis.kill()
    numbers, lost = [1], None
    while lost is None:
        try:
            numbers.append(sequences.next_id("alice"))
        except LeaseLostError as error:
            lost = error
        time.sleep(0.01)
    assert numbers == list(range(1, len(numbers) + 1))
    assert isinstance(lost, RuntimeError)
    assert (lost.code, lost.name) == (13, "lease_lost")
    with pytest.raises(LeaseLostError):
        sequences.try_next_id("bob")
    with pytest.raises(LeaseLostError):
        sequences.next_ids(["alice", "bob"])
    assert sequences.stats.time_left_ms == 0
    redis.start()
    until(lambda: failure(lambda: numbers.append(sequences.next_id("alice"))) == "")
    assert numbers == sorted(set(numbers))
    sequences.close()
    patient.close()


def test_a_store_that_cannot_be_reached(redis: Redis) -> None:
    port = redis.port
    redis.kill()
    address = f"redis://user:hunter2@127.0.0.1:{port}/0?wait=200ms"
    with pytest.raises(LeaseUnavailableError, match=rf"127\.0\.0\.1:{port}/0") as caught:
        Sequences("inbox", store=address)
    assert "hunter2" not in str(caught.value)
    redis.start()
    with Sequences("inbox", store=redis.address(""), step=5) as sequences:
        assert sequences.next_id("alice") == 1


@pytest.mark.parametrize("end", ["inbox.close()", "del inbox", ""])
def test_a_program_ends_where_its_store_is_gone(redis: Redis, end: str) -> None:
    code = f"""
import logging
logging.basicConfig(level=logging.INFO)
inbox = Sequences("inbox", store=store)
tell(inbox.next_id("alice"))
input()
{end}
"""
    with program(code, redis.address("ttl=3s&wait=2m")) as ending:
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
    inbox = Sequences("inbox", store=store)
    during = threads()
    inbox.close()
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


def test_a_child_has_none(store: str) -> None:
    address = f"{store}&wait=0s&label=parent"
    sequences = Sequences("forks", store=address)
    assert sequences.next_id("alice") == 1

    def child() -> Any:
        calls: list[Callable[[], object]] = [
            lambda: sequences.next_id("alice"),
            lambda: sequences.try_next_id("alice"),
            lambda: sequences.next_ids(["alice"]),
            lambda: sequences.next_ids([]),
            lambda: sequences.stats,
        ]
        failures = {failure(call) for call in calls}
        # A child cannot open the sequences that its parent holds either, but it can open others.
        taken = failure(lambda: Sequences("forks", store=address))
        with Sequences("child", store=address) as others:
            number = others.next_id("alice")
        name = sequences.name
        sequences.close()
        return [list(failures), taken, number, name]

    for at in range(3):
        told: Any = in_child(child)
        (why,), taken, number, name = told
        assert why.startswith("forked: these sequences belong to the parent process")
        assert taken.startswith("lease_unavailable: ")
        assert "`parent`" in taken
        assert (number, name) == (at + 1, "forks")
        assert sequences.next_id("alice") == at + 2
    sequences.close()
    # When the children exited, they gave nothing back and lost nothing.
    with Sequences("forks", store=store) as again:
        assert again.next_id("alice") == 5
