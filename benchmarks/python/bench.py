"""Polyflake and other packages on PyPI, in one run of interleaved rounds.

    python benchmarks/python/bench.py [--rounds 9]

Prints JSON Lines, which benchmarks/README.md describes. The Python that runs it must have
Polyflake's wheel; packages of requirements.txt that it does not have are reported as missing.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import statistics
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from itertools import count, islice, repeat, starmap
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any
from uuid import UUID

from polyflake import Layout, PublicIds, Snowflake

WIDE = "timestamp:40|worker:2|sequence:22@1735689600000/1ms"
WIDEST = "timestamp:38|worker:1|sequence:25@1735689600000/1ms"

BURSTS = 16  # per round
CALLS = 1000  # per burst
BATCH = 1000
BATCHES = 3  # per burst: with "spread", a fresh tick has at least 3,072 of its 4,096 IDs
FULL_LOAD_SECONDS = 0.25
CHUNK = 128  # calls between two readings of the clock under full load
CHECKED_IDS = 200_000
SLEEP_MS = 0.5
SLEEPS_SECONDS = 0.2
# For sonyflake-turbo: the largest number in its README, and enough that bursts need not wait.
MACHINES_UNDER_LOAD, MACHINES_FOR_BURSTS = 32, 128

REQUIREMENTS = (Path(__file__).parent / "requirements.txt").read_text().split()
PINNED = dict(line.split("==") for line in REQUIREMENTS if "==" in line)

Call = Callable[[], Any]


# What is measured --------------------------------------------------------------------------------


@dataclass
class Generator:
    """A generator, how to call it, and how to read its results."""

    package: str
    call: Call  # the fastest for one ID
    call_text: str
    time_ms: Callable[[int], float]  # the start of an ID's tick, in Unix ms
    ids_per_ms: float = 4096
    number: Callable[[Any], int] = int
    iterator: Iterator[Any] | None = None
    batch: Call | None = None
    batch_text: str = ""
    note: str = ""  # what cases.toml cannot know

    @property
    def is_ours(self) -> bool:
        return self.package == "polyflake"


def polyflake(layout: str) -> Generator:
    ids = Snowflake(layout=layout, node=1)
    return Generator(
        package="polyflake",
        call=ids.next_id,
        call_text="next_id()",
        iterator=ids,
        batch=partial(ids.next_ids, BATCH),
        batch_text="next_ids(1000)",
        time_ms=lambda id: ids.decode(id).timestamp_ms,
        ids_per_ms=ids.layout.ids_per_tick / ids.layout.tick_ms,
    )


def oneflake() -> Generator:
    from oneflake import DEFAULT_EPOCH_MS, FlakeGenerator

    return Generator(
        package="oneflake",
        call=FlakeGenerator(worker_id=1).generate,
        call_text="generate()",
        time_ms=lambda id: (id >> 22) + DEFAULT_EPOCH_MS,
    )


def sonyflake_turbo(machines: int) -> Generator:
    from sonyflake_turbo import SONYFLAKE_EPOCH, SonyFlake

    ids = SonyFlake(*range(machines))
    pure = "" if SonyFlake.__module__ == "sonyflake_turbo" else "; its version in pure Python"
    return Generator(
        package="sonyflake-turbo",
        call=ids.__next__,
        call_text="__next__()",
        iterator=ids,
        batch=partial(ids, BATCH),
        batch_text="(1000)",
        time_ms=lambda id: (id >> 24) * 10 + SONYFLAKE_EPOCH * 1000,
        ids_per_ms=machines * 256 / 10,
        note=f"{machines} machine IDs, with 256 IDs in 10 ms each{pure}",
    )


def snowflake_id() -> Generator:
    from snowflake import SnowflakeGenerator

    ids = SnowflakeGenerator(1)
    return Generator(
        package="snowflake-id",
        call=ids.__next__,
        call_text="__next__()",
        iterator=ids,
        time_ms=lambda id: id >> 22,
    )


def tsidpy() -> Generator:
    from tsidpy import TSID, TSIDGenerator

    return Generator(
        package="tsidpy",
        call=TSIDGenerator(node=1).create,
        call_text="create()",
        number=lambda tsid: tsid.number,
        time_ms=lambda id: TSID(id).timestamp,
    )


def uuid_utils() -> Generator:
    from uuid_utils import uuid7

    return Generator(
        package="uuid-utils",
        call=uuid7,
        call_text="uuid7()",
        number=int,
        time_ms=lambda uuid: uuid >> 80,
    )


# How it is measured ------------------------------------------------------------------------------


def own_copy(loop: Callable[..., Any]) -> Callable[..., Any]:
    """A copy with separate code, since Python adapts the code of a loop to what it calls."""
    consts = loop.__code__.co_consts
    inner = tuple(const.replace() if isinstance(const, CodeType) else const for const in consts)
    return FunctionType(loop.__code__.replace(co_consts=inner), loop.__globals__)


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


def only_loop(_: object, times: int) -> None:
    for _ in range(times):
        pass


def wait_for_next_ms() -> None:
    now = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == now:
        pass


def bursts(loop: Callable[..., Any], argument: Any, times: int, ids_a_call: int = 1) -> Call:
    """Measures ns per ID. Each burst begins with a millisecond, so that no call waits."""
    loop = own_copy(loop)

    def measure() -> float:
        spent = 0
        for _ in range(BURSTS):
            wait_for_next_ms()
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


def load(call: Call, until: float, made: list[tuple[float, int]]) -> None:
    """Calls as fast as possible; records the time and the number of IDs after each chunk."""
    now = time.perf_counter()
    while now < until:
        refused = 0
        for _ in repeat(None, CHUNK):
            if call() is None:
                refused += 1
        now = time.perf_counter()
        made.append((now, CHUNK - refused))


def full_load(generator: Generator, threads: int) -> Callable[[], tuple[float, float]]:
    """Measures the share of the capacity in %, and the CPU seconds per second."""
    loop = own_copy(load)

    def measure() -> tuple[float, float]:
        made: list[list[tuple[float, int]]] = [[] for _ in range(threads)]
        # After the warm-up, the threads have started and a partly used first tick is over.
        loop(generator.call, time.perf_counter() + 0.01, [])
        start, processor = time.perf_counter(), time.process_time()
        run_in_threads(
            threads, lambda number: loop(generator.call, start + FULL_LOAD_SECONDS, made[number])
        )
        processor = time.process_time() - processor
        elapsed = time.perf_counter() - start
        # Only the time in which all threads were running counts.
        begin, end = max(chunks[0][0] for chunks in made), min(chunks[-1][0] for chunks in made)
        ids = sum(n for chunks in made for at, n in chunks if begin < at <= end)
        return ids / ((end - begin) * 1000 * generator.ids_per_ms) * 100, processor / elapsed

    return measure


def wakes(call: Call | None) -> Call:
    """Measures by how many ms a thread that sleeps for 0.5 ms wakes late while another calls."""
    loop = own_copy(load)

    def measure() -> float:
        late: list[float] = []
        until = time.perf_counter() + SLEEPS_SECONDS

        def sleep_often() -> None:
            while (start := time.perf_counter()) < until:
                time.sleep(SLEEP_MS / 1000)
                late.append((time.perf_counter() - start) * 1000 - SLEEP_MS)

        def work(number: int) -> None:
            if number == 0:
                sleep_often()
            elif call is not None:
                loop(call, until, [])

        run_in_threads(2, work)
        return statistics.median(late)

    return measure


def repeats(generator: Generator, call: Call, ids_a_call: int, threads: int) -> dict[str, Any]:
    """How many IDs a run under full load repeats, and how far ahead of the clock they are."""
    given: list[list[Any]] = [[] for _ in range(threads)]
    ahead = [0.0] * threads

    def work(number: int) -> None:
        ids = given[number]
        while len(ids) < CHECKED_IDS // threads:
            for _ in range(max(1, 64 // ids_a_call)):
                if ids_a_call > 1:
                    ids.extend(call())
                elif (id := call()) is not None:
                    ids.append(id)
            now_ms = time.time_ns() // 1_000_000
            if ids:
                lead = generator.time_ms(generator.number(ids[-1])) - now_ms
                ahead[number] = max(ahead[number], lead)

    run_in_threads(threads, work)
    numbers = [generator.number(id) for ids in given for id in ids]
    repeated = len(numbers) - len(set(numbers))
    return {"repeated": repeated, "ids": len(numbers), "ahead_ms": round(max(ahead), 3)}


# The tables --------------------------------------------------------------------------------------


@dataclass
class Row:
    table: str
    subject: str
    note: str = ""
    checked: dict[str, Any] = field(default_factory=dict)
    rounds: list[float] = field(default_factory=list)

    def record(self) -> dict[str, Any]:
        line = {"table": self.table, "subject": self.subject, "rounds": self.rounds, **self.checked}
        note = {"note": self.note} if self.note else {}
        return {"kind": "result", "language": "Python", **line, **note}


@dataclass
class Measurement:
    """What is measured together, for one row or more, and the run that checks for repeats."""

    rows: list[Row]
    measure: Callable[[], float | tuple[float, ...]]
    check: Callable[[], dict[str, Any]] = dict
    may_fail: bool = False
    failure: str = ""

    def attempt(self, step: Callable[[], None]) -> None:
        """Records a peer's failure; it is left out from then on. Only peers may fail."""
        if self.failure:
            return
        try:
            step()
        except Exception as failure:
            if not self.may_fail:
                raise
            self.failure = f"{type(failure).__name__}: {failure}"

    def run_check(self) -> None:
        checked = self.check()
        for row in self.rows:
            row.checked = checked

    def run_round(self) -> None:
        seen = self.measure()
        values = seen if isinstance(seen, tuple) else (seen,)
        for row, value in zip(self.rows, values, strict=True):
            row.rounds.append(float(f"{value:.6g}"))


class Suite:
    def __init__(self) -> None:
        self.measurements: list[Measurement] = []

    def subject(
        self,
        tables: str | list[str],
        generator: Generator,
        text: str,
        measure: Callable[[], float | tuple[float, ...]],
        *,
        call: Call | None = None,
        ids_a_call: int = 1,
        threads: int = 1,
    ) -> None:
        """Adds a row of ours or of a peer to each of the tables."""
        names = [tables] if isinstance(tables, str) else tables
        rows = [Row(table, f"{generator.package} {text}", generator.note) for table in names]
        check = partial(repeats, generator, call or generator.call, ids_a_call, threads)
        self.measurements.append(Measurement(rows, measure, check, not generator.is_ours))

    def call(self, table: str, subject: str, measure: Callable[[], float]) -> None:
        """Adds a row that makes no IDs."""
        may_fail = subject.split()[0] in PINNED
        self.measurements.append(Measurement([Row(table, subject)], measure, may_fail=may_fail))


def layout_of(generator: Generator) -> str:
    """Tells our rows apart: empty for the default layout."""
    wide = generator.is_ours and generator.ids_per_ms > 4096
    return ", 22-bit sequence" if wide else ""


def single_ids(suite: Suite, generators: list[Generator]) -> None:
    table = "one ID"
    # A position of 61 bits: its tell() returns a new int as large as an ID.
    stream = io.BytesIO()
    stream.seek(1 << 60)
    new_int = "a C method that returns a new 61-bit int: BytesIO.tell()"
    for it in generators:
        suite.subject(
            table,
            it,
            it.call_text + layout_of(it),
            bursts(call_often, it.call, CALLS),
        )
    floors = [
        ("a C call that returns a small int: int.bit_length()", (1).bit_length),
        (new_int, stream.tell),
        ("a C call that reads the clock: time.time_ns()", time.time_ns),
    ]
    for text, call in floors:
        suite.call(table, text, bursts(call_often, call, CALLS))
    suite.call(table, "a loop without a call", bursts(only_loop, None, CALLS))


def iteration(suite: Suite, generators: list[Generator]) -> None:
    table = "iteration"
    new_ints = "a C iterator that returns new 61-bit ints: itertools.count()"
    for it in generators:
        if it.package == "uuid-utils":
            continue
        if it.iterator is not None:
            suite.subject(
                table,
                it,
                "for" + layout_of(it),
                bursts(iterate, it.iterator, CALLS),
                call=it.iterator.__next__,
            )
            continue
        suite.subject(
            table,
            it,
            it.call_text,
            bursts(call_often, it.call, CALLS),
        )
        if it.package == "oneflake":
            # The fastest iterator that the standard library can make from it.
            suite.subject(
                table,
                it,
                "starmap(generate, repeat(()))",
                bursts(iterate, starmap(it.call, repeat(())), CALLS),
            )
    suite.call(table, new_ints, bursts(iterate, count(1 << 60), CALLS))


def batches(suite: Suite, generators: list[Generator]) -> None:
    table = "batch of 1,000"
    ids = array("Q", range(1 << 60, (1 << 60) + BATCH))
    new_list = "a list of 1,000 new 61-bit ints: array.tolist()"
    for it in generators:
        if it.package == "uuid-utils":
            continue
        if it.batch is not None:
            suite.subject(
                table,
                it,
                it.batch_text + layout_of(it),
                bursts(call_often, it.batch, BATCHES, BATCH),
                call=it.batch,
                ids_a_call=BATCH,
            )
            continue

        suite.subject(
            table,
            it,
            f"[{it.call_text} for ...]",
            bursts(call_into_list, it.call, BATCH),
        )
    suite.call(table, new_list, bursts(call_often, ids.tolist, BATCHES, BATCH))


def fills(suite: Suite, peers: list[Generator]) -> None:
    ids = Snowflake(layout=WIDEST, node=1)
    generator = polyflake(WIDEST)  # the same node, so they share one cursor
    for size, calls in ((1000, 100), (100_000, 4)):
        table = f"fill of {size:,} (buffer)"
        buffer, other = array("Q", bytes(8 * size)), array("Q", bytes(8 * size))

        def filled(buffer: array[int] = buffer) -> list[int]:
            ids.fill(buffer)
            return buffer.tolist()

        suite.subject(
            table,
            generator,
            "fill(buffer), 25-bit sequence",
            bursts(call_often, partial(ids.fill, buffer), calls, size),
            call=filled,
            ids_a_call=size,
        )
        for it in peers:
            if size == BATCH and it.batch is not None and not it.is_ours:

                def fill_by_list(batch: Call = it.batch, buffer: array[int] = buffer) -> None:
                    buffer[:] = array("Q", batch())

                suite.subject(
                    table,
                    it,
                    "buffer[:] = array('Q', (1000))",
                    bursts(call_often, fill_by_list, BATCHES, size),
                    call=it.batch,
                    ids_a_call=BATCH,
                )

        copy = partial(memoryview(buffer).__setitem__, slice(None), other)
        suite.call(table, "a copy of the buffer", bursts(call_often, copy, calls, size))


def full_loads(suite: Suite, generators: list[Generator]) -> None:
    for threads, words in ((1, "one thread"), (2, "two threads")):
        for it in generators:
            suite.subject(
                [f"full load, {words}", f"processor time under full load, {words}"],
                it,
                it.call_text,
                full_load(it, threads),
                threads=threads,
            )


def wakes_under_load(suite: Suite, generators: list[Generator]) -> None:
    table = "another thread's wake-up delay under full load"
    for it in generators:
        suite.subject(table, it, it.call_text, wakes(it.call))
    suite.call(table, "nothing beside it", wakes(None))


def decodes(suite: Suite, records: list[dict[str, Any]]) -> None:
    layout = Layout("discord")
    ids = Snowflake(layout=layout, node=1).next_ids(CALLS)
    table = "decode, as a datetime"

    def add(text: str, loop: Callable[..., Any], call: Callable[[int], Any]) -> None:
        suite.call(table, text, bursts(loop, (call, ids), CALLS))

    add("polyflake layout.decode(id).time", time_of_each, layout.decode)
    for text, loop, module, name in (
        ("discord.py utils.snowflake_time(id)", call_with_each, "discord.utils", "snowflake_time"),
        ("snowflake-id Snowflake.parse(id).datetime", datetime_of_each, "snowflake", "Snowflake"),
        ("tsidpy TSID(id).datetime", datetime_of_each, "tsidpy", "TSID"),
    ):
        try:
            call = getattr(import_module(module), name)
        except ImportError as failure:
            records.append(missing(text.split()[0], f"{type(failure).__name__}: {failure}"))
        else:
            add(text, loop, getattr(call, "parse", call))
    epoch = datetime(2015, 1, 1, tzinfo=UTC)
    since = [timedelta(milliseconds=id >> 22) for id in ids]
    measure = bursts(call_with_each, (epoch.__add__, since), CALLS)
    suite.call(table, "making a datetime: epoch + timedelta", measure)

    for size, calls in ((1000, 100), (100_000, 4)):
        table = f"decode of {size:,} (buffer)"
        buffer = array("Q", bytes(8 * size))
        Snowflake(layout=WIDEST, node=1).fill(buffer)
        measure = bursts(timestamps_of, (Layout(WIDEST).decode_all, buffer), calls, size)
        suite.call(table, "polyflake layout.decode_all(buffer).timestamps_ms", measure)
        copy = partial(bytes, memoryview(buffer))
        suite.call(
            table, "a copy of the buffer: bytes(buffer)", bursts(call_often, copy, calls, size)
        )


def public_ids(suite: Suite, records: list[dict[str, Any]]) -> None:
    def add(what: str, subject: str, call: Callable[[Any], Any], values: list[Any]) -> None:
        measure = bursts(call_with_each, (call, values), len(values))
        suite.call(f"public ID, {what}", subject, measure)

    ids = [1541815603606036480 + n * 0x1234567891 for n in range(CALLS)]
    ours = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
    add("encode", "polyflake PublicIds.encode(id)", ours.encode, ids)
    add("decode", "polyflake PublicIds.decode(text)", ours.decode, ours.encode_all(ids))
    try:
        from sqids import Sqids
    except ImportError as failure:
        records.append(missing("sqids", f"{type(failure).__name__}: {failure}"))
    else:
        sqids, lists = Sqids(), [[id] for id in ids]
        add("encode", "sqids encode([id])", sqids.encode, lists)
        add("decode", "sqids decode(text)", sqids.decode, [sqids.encode(one) for one in lists])
    try:
        from hashids import Hashids
    except ImportError as failure:
        records.append(missing("hashids", f"{type(failure).__name__}: {failure}"))
    else:
        hashids = Hashids(salt="salt")
        add("encode", "hashids encode(id)", hashids.encode, ids)
        add("decode", "hashids decode(text)", hashids.decode, [hashids.encode(id) for id in ids])
    uuids = [UUID(int=id << 64 | id) for id in ids]
    add("encode", "uuid str(UUID)", str, uuids)
    add("decode", "uuid UUID(text)", UUID, [str(uuid) for uuid in uuids])
    new_str = "a C method that returns a new str: bytes.hex()"
    add("encode", new_str, bytes.hex, [id.to_bytes(14, "big") for id in ids])
    add("decode", "a new 61-bit int: -n", int.__neg__, ids)


# The run -----------------------------------------------------------------------------------------


def missing(package: str, why: str) -> dict[str, Any]:
    return {
        "kind": "missing",
        "language": "Python",
        "subject": package,
        "version": PINNED[package],
        "why": why,
    }


def found(
    records: list[dict[str, Any]], package: str, makers: list[Callable[[], Generator]]
) -> list[Generator]:
    """The package's generators; none, and a record, if it cannot be imported or built."""
    try:
        generators = [make() for make in makers]
        for it in generators:
            it.time_ms(it.number(it.call()))
    except Exception as failure:
        records.append(missing(package, f"{type(failure).__name__}: {failure}"))
        return []
    return generators


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    if rounds < 1:
        parser.error("--rounds must be 1 or more")

    records: list[dict[str, Any]] = []
    ours = polyflake("twitter")
    one = found(records, "oneflake", [oneflake])
    sony = found(
        records,
        "sonyflake-turbo",
        [
            lambda: sonyflake_turbo(MACHINES_FOR_BURSTS),
            lambda: sonyflake_turbo(MACHINES_UNDER_LOAD),
        ],
    )
    twelve_bits = [
        *found(records, "snowflake-id", [snowflake_id]),
        *found(records, "tsidpy", [tsidpy]),
    ]
    uuids = found(records, "uuid-utils", [uuid_utils])
    for_bursts = [ours, polyflake(WIDE), *one, *sony[:1], *twelve_bits, *uuids]
    under_load = [ours, *one, *sony[1:], *twelve_bits]

    suite = Suite()
    single_ids(suite, for_bursts)
    iteration(suite, for_bursts)
    batches(suite, for_bursts)
    fills(suite, for_bursts)
    full_loads(suite, under_load)
    wakes_under_load(suite, under_load)
    decodes(suite, records)
    public_ids(suite, records)

    gc.disable()  # as timeit does: it could run in any burst
    print("Python: checking for repeats", file=sys.stderr)
    for measurement in suite.measurements:
        measurement.attempt(measurement.run_check)
    for number in range(rounds):
        print(f"Python: round {number + 1} of {rounds}", file=sys.stderr)
        for measurement in suite.measurements:
            measurement.attempt(measurement.run_round)

    for measurement in suite.measurements:
        if measurement.failure:
            row = measurement.rows[0]
            why = f"failed in the table “{row.table}”: {measurement.failure}"
            records.append(missing(row.subject.split()[0], why))
        else:
            records += [row.record() for row in measurement.rows]
    for record in records:
        print(json.dumps(record))


if __name__ == "__main__":
    main()
