"""Polyflake and other packages on PyPI. ../harness.py tells this program what to measure.

The Python that runs it must have Polyflake's wheel and the packages in requirements.txt installed.
"""

from __future__ import annotations

import gc
import io
import statistics
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from itertools import count, islice, repeat, starmap
from typing import Any
from uuid import UUID

from polyflake import Layout, PublicIds, Snowflake

WIDEST = "timestamp:38|worker:1|sequence:25@1735689600000/1ms"

BURSTS = 16  # per round
CALLS = 1000  # per burst
BATCH = 1000
BATCHES = 3  # per burst: with "spread", at least 3,072 of a fresh tick's 4,096 IDs are available
MANY_BATCHES = 100
CHUNK = 128  # calls between clock readings, next to a sleeping thread
BLOCK = 64  # the same while IDs are taken as fast as possible
SLEEP_MS = 0.5
SLEEPS_SECONDS = 0.2
# For sonyflake-turbo: the largest number in its README, and enough that bursts do not have to wait.
MACHINES_UNDER_LOAD, MACHINES_FOR_BURSTS = 32, 128

Call = Callable[[], Any]
Measure = Callable[[], float]


# What is measured --------------------------------------------------------------------------------


@dataclass
class Generator:
    call: Call  # the fastest for one ID
    iterator: Iterator[Any] | None = None
    batch: Call | None = None
    number: Callable[[Any], int] = int


def polyflake(_: bool) -> Generator:
    ids = Snowflake(node=1)
    return Generator(ids.next_id, ids, partial(ids.next_ids, BATCH))


def oneflake(_: bool) -> Generator:
    from oneflake import FlakeGenerator

    return Generator(FlakeGenerator(worker_id=1).generate)


def sonyflake_turbo(is_loaded: bool) -> Generator:
    from sonyflake_turbo import SonyFlake

    machines = MACHINES_UNDER_LOAD if is_loaded else MACHINES_FOR_BURSTS
    ids = SonyFlake(*range(machines))
    return Generator(ids.__next__, ids, partial(ids, BATCH))


def snowflake_id(_: bool) -> Generator:
    from snowflake import SnowflakeGenerator

    ids = SnowflakeGenerator(1)
    return Generator(ids.__next__, ids)


def tsidpy(_: bool) -> Generator:
    from tsidpy import TSIDGenerator

    return Generator(TSIDGenerator(node=1).create, number=lambda tsid: tsid.number)


# For each package, how to create its generator (given whether it is for full load), and its calls.
GENERATORS: dict[str, tuple[Callable[[bool], Generator], str, str]] = {
    "polyflake": (polyflake, "next_id()", "next_ids(1000)"),
    "oneflake": (oneflake, "generate()", ""),
    "sonyflake-turbo": (sonyflake_turbo, "__next__()", "(1000)"),
    "snowflake-id": (snowflake_id, "__next__()", ""),
    "tsidpy": (tsidpy, "create()", ""),
}


# How it is measured ------------------------------------------------------------------------------


def call_often(call: Call, times: int) -> None:
    for _ in range(times):
        call()


def call_into_list(call: Call, times: int) -> list[Any]:
    return [call() for _ in range(times)]


def iterate(ids: Iterator[Any], times: int) -> None:
    for _ in islice(ids, times):
        pass


def call_with_each(given: tuple[Callable[[Any], Any], list[Any]], times: int) -> None:
    call, values = given
    for value in islice(values, times):
        _ = call(value)


def time_of_each(given: tuple[Callable[[int], Any], list[int]], times: int) -> None:
    decode, ids = given
    for id in islice(ids, times):
        _ = decode(id).time


def datetime_of_each(given: tuple[Callable[[int], Any], list[int]], times: int) -> None:
    decode, ids = given
    for id in islice(ids, times):
        _ = decode(id).datetime


def timestamps_of(given: tuple[Callable[[Any], Any], Any], times: int) -> None:
    decode_all, ids = given
    for _ in range(times):
        _ = decode_all(ids).timestamps_ms


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


def bursts(loop: Callable[..., Any], argument: Any, times: int, ids_a_call: int = 1) -> Measure:
    """Measures ns per ID. Bursts start at the beginning of a millisecond, so that no call waits."""

    def measure() -> float:
        spent = 0
        for _ in range(BURSTS):
            now = wall_clock_ms()
            while wall_clock_ms() == now:
                pass
            start = time.perf_counter_ns()
            loop(argument, times)
            spent += time.perf_counter_ns() - start
        return spent / (BURSTS * times * ids_a_call)

    return measure


def run_in_threads(threads: int, work: Callable[[int], None]) -> None:
    """Calls work(0), work(1), ... in one thread each; the first runs in this one."""
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    others = [threading.Thread(target=guarded, args=(number,)) for number in range(1, threads)]
    for other in others:
        other.start()
    guarded(0)
    for other in others:
        other.join()
    if failures:
        raise failures[0]


def call_until(call: Call, until: float) -> None:
    while time.perf_counter() < until:
        for _ in repeat(None, CHUNK):
            call()


def wakes(call: Call | None) -> Measure:
    """Measures how many ms late a thread wakes from 0.5 ms of sleep while another makes calls."""

    def measure() -> float:
        late: list[float] = []
        until = time.perf_counter() + SLEEPS_SECONDS

        def work(number: int) -> None:
            if number == 1 and call is not None:
                call_until(call, until)
            while number == 0 and (start := time.perf_counter()) < until:
                time.sleep(SLEEP_MS / 1000)
                late.append((time.perf_counter() - start) * 1000 - SLEEP_MS)

        run_in_threads(2, work)
        return statistics.median(late)

    return measure


# The tables --------------------------------------------------------------------------------------


@dataclass
class Row:
    measure: Measure | None  # None under full load, which is measured by the IDs
    take: Callable[[], list[Any]] | None = None  # a block of IDs
    number: Callable[[Any], int] = int
    threads: int = 1

    def write_ids(self, n: int, file: str) -> None:
        """Takes IDs as fast as possible, with a clock reading after each block."""
        if self.take is None:
            print(0, 1, flush=True)
            return
        blocks: list[list[tuple[list[Any], int]]] = [[] for _ in range(self.threads)]
        first = self.take()

        def work(number: int) -> None:
            assert self.take is not None
            for _ in range(n // self.threads // len(first)):
                blocks[number].append((self.take(), time.time_ns() // 1000))

        run_in_threads(self.threads, work)
        print(len(first), self.threads, flush=True)
        words = array("Q")
        for ids, clock in (block for each in blocks for block in each):
            words.extend(map(self.number, ids))
            words.append(clock)
        with open(file, "wb") as into:
            words.tofile(into)
        print(flush=True)


Rows = dict[tuple[str, str], Callable[[], Row]]


def block_of(call: Call) -> list[Any]:
    ids = [id for _ in repeat(None, BLOCK) if (id := call()) is not None]
    while len(ids) < BLOCK:
        if (id := call()) is not None:
            ids.append(id)
    return ids


def generated(rows: Rows, package: str) -> None:
    """The generators' tables. Nothing is created before a row is measured."""
    make, call, batch = GENERATORS[package]

    def add(
        table: str,
        text: str,
        measure: Callable[[Generator], Measure | None],
        take: Callable[[Generator], list[Any]] = lambda it: block_of(it.call),
        is_loaded: bool = False,
        threads: int = 1,
    ) -> None:
        def row() -> Row:
            it = make(is_loaded)
            return Row(measure(it), lambda: take(it), it.number, threads)

        rows[table, f"{package} {text}"] = row

    add("one ID", call, lambda it: bursts(call_often, it.call, CALLS))
    if package in ("oneflake", "tsidpy"):
        add("iteration", call, lambda it: bursts(call_often, it.call, CALLS))
    else:
        add("iteration", "for", lambda it: bursts(iterate, it.iterator, CALLS))
    if package == "oneflake":
        # The fastest iterator that the standard library can build from it.
        text = "starmap(generate, repeat(()))"
        add("iteration", text, lambda it: bursts(iterate, starmap(it.call, repeat(())), CALLS))
    table = "batch of 1,000"
    if batch:
        measure = lambda it: bursts(call_often, it.batch, BATCHES, BATCH)  # noqa: E731
        add(table, batch, measure, lambda it: list(it.batch()))
    else:
        add(table, f"[{call} for ...]", lambda it: bursts(call_into_list, it.call, BATCH))
    if package == "sonyflake-turbo":

        def fill(it: Generator) -> Measure:
            buffer = array("Q", bytes(8 * BATCH))

            def fill_by_list() -> None:
                buffer[:] = array("Q", it.batch())  # type: ignore[misc]

            return bursts(call_often, fill_by_list, BATCHES, BATCH)

        take_list = lambda it: list(it.batch())  # noqa: E731
        add("fill of 1,000 (buffer)", "buffer[:] = array('Q', (1000))", fill, take_list)
    one = "full load, one thread|processor time under full load, one thread"
    add(one, call, lambda _: None, is_loaded=True)
    add("full load, two threads", call, lambda _: None, is_loaded=True, threads=2)
    late = "another thread's wake-up delay under full load"
    add(late, call, lambda it: wakes(it.call), is_loaded=True)


def buffers(rows: Rows) -> None:
    buffer = array("Q", bytes(8 * BATCH))
    ids = Snowflake(layout=WIDEST, node=1)

    def filled() -> list[int]:
        ids.fill(buffer)
        return buffer.tolist()

    def often(call: Call) -> Measure:
        return bursts(call_often, call, MANY_BATCHES, BATCH)

    def decode_all() -> Row:
        ids.fill(buffer)
        given = (Layout(WIDEST).decode_all, buffer)
        return Row(bursts(timestamps_of, given, MANY_BATCHES, BATCH))

    view, other = memoryview(buffer), buffer[:]
    fill, decode = "fill of 1,000 (buffer)", "decode of 1,000 (buffer)"
    rows[fill, "polyflake fill(buffer), 25-bit sequence"] = lambda: Row(
        often(partial(ids.fill, buffer)), filled
    )
    copy = partial(view.__setitem__, slice(None), other)
    rows[fill, "a copy of the buffer"] = lambda: Row(often(copy))
    rows[decode, "polyflake layout.decode_all(buffer).timestamps_ms"] = decode_all
    rows[decode, "a copy of the buffer: bytes(buffer)"] = lambda: Row(often(partial(bytes, view)))


def floors(rows: Rows) -> None:
    # A 61-bit position, so that tell() returns a new int as large as an ID.
    stream = io.BytesIO()
    stream.seek(1 << 60)
    ids = array("Q", range(1 << 60, (1 << 60) + BATCH))
    since = [timedelta(milliseconds=n * 86_400_007) for n in range(CALLS)]
    add = datetime(2015, 1, 1, tzinfo=UTC).__add__
    texts = [id.to_bytes(14, "big") for id in ids]

    def floor(table: str, text: str, *measured: Any) -> None:
        rows[table, text] = lambda: Row(bursts(*measured))

    text = "a C method that returns a new 61-bit int: BytesIO.tell()"
    floor("one ID", text, call_often, stream.tell, CALLS)
    text = "a C iterator that returns new 61-bit ints: itertools.count()"
    floor("iteration", text, iterate, count(1 << 60), CALLS)
    text = "a list of 1,000 new 61-bit ints: array.tolist()"
    floor("batch of 1,000", text, call_often, ids.tolist, BATCHES, BATCH)
    text = "making a datetime: epoch + timedelta"
    floor("decode, as a datetime", text, call_with_each, (add, since), CALLS)
    text = "a C method that returns a new str: bytes.hex()"
    floor("public ID, encode", text, call_with_each, (bytes.hex, texts), CALLS)
    negated = (int.__neg__, ids.tolist())
    floor("public ID, decode", "a new 61-bit int: -n", call_with_each, negated, CALLS)
    late = "another thread's wake-up delay under full load"
    rows[late, "nothing beside it"] = lambda: Row(wakes(None))


def decodes(rows: Rows) -> None:
    ids = Snowflake(layout="discord", node=1).next_ids(CALLS)
    for text, loop, module, name in (
        ("polyflake layout.decode(id).time", time_of_each, "polyflake", "Layout"),
        ("discord.py utils.snowflake_time(id)", call_with_each, "discord.utils", "snowflake_time"),
        ("snowflake-id Snowflake.parse(id).datetime", datetime_of_each, "snowflake", "Snowflake"),
        ("tsidpy TSID(id).datetime", datetime_of_each, "tsidpy", "TSID"),
    ):

        def row(loop: Any = loop, module: str = module, name: str = name) -> Row:
            call = getattr(import_module(module), name)
            call = call("discord").decode if name == "Layout" else getattr(call, "parse", call)
            return Row(bursts(loop, (call, ids), CALLS))

        rows["decode, as a datetime", text] = row


def public_ids(rows: Rows) -> None:
    ids = [1541815603606036480 + n * 0x1234567891 for n in range(CALLS)]

    def ours() -> tuple[Any, ...]:
        it = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
        return it.encode, it.decode, ids

    def sqids() -> tuple[Any, ...]:
        it = import_module("sqids").Sqids()
        return it.encode, it.decode, [[id] for id in ids]

    def hashids() -> tuple[Any, ...]:
        it = import_module("hashids").Hashids(salt="salt")
        return it.encode, it.decode, ids

    def uuid() -> tuple[Any, ...]:
        return str, UUID, [UUID(int=id << 64 | id) for id in ids]

    def encoded(make: Callable[[], tuple[Any, ...]]) -> Row:
        encode, _, values = make()
        return Row(bursts(call_with_each, (encode, values), CALLS))

    def decoded(make: Callable[[], tuple[Any, ...]]) -> Row:
        encode, decode, values = make()
        return Row(bursts(call_with_each, (decode, [encode(each) for each in values]), CALLS))

    for make, encode, decode in (
        (ours, "polyflake PublicIds.encode(id)", "polyflake PublicIds.decode(text)"),
        (sqids, "sqids encode([id])", "sqids decode(text)"),
        (hashids, "hashids encode(id)", "hashids decode(text)"),
        (uuid, "uuid str(UUID)", "uuid UUID(text)"),
    ):
        rows["public ID, encode", encode] = partial(encoded, make)
        rows["public ID, decode", decode] = partial(decoded, make)


def main() -> None:
    rows: Rows = {}
    for package in GENERATORS:
        generated(rows, package)
    uuid7 = "uuid-utils uuid7()"
    rows["one ID", uuid7] = lambda: Row(
        bursts(call_often, import_module("uuid_utils").uuid7, CALLS)
    )
    buffers(rows)
    decodes(rows)
    public_ids(rows)
    floors(rows)
    if len(sys.argv) != 3:
        for table, subject in rows:
            print(f"{table}\t{subject}")
        return
    gc.disable()  # as timeit does: it could run in any burst
    row = rows[sys.argv[1], sys.argv[2]]()
    for line in sys.stdin:
        if line.startswith("ids "):
            _, n, file = line.split()
            row.write_ids(int(n), file)
        elif row.measure:
            print(row.measure(), flush=True)


if __name__ == "__main__":
    main()
