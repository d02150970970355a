"""Nodes by lease, a counter, a million IDs in sixteen SQLite shards: every claim is checked.

Run it with `make demo`. It exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import logging
import multiprocessing
import random
import sqlite3
import sys
import tempfile
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Literal, NamedTuple

from polyflake import Counter, Decoded, Layout, LeaseUnavailableError, Snowflake, parse_id
from tqdm import tqdm

SHARDS = 16
TILLS = 4
CLERKS = 3
ROWS_PER_INSERT = 250
SLOW_TICKS = 16_000
# An even split over 16 shards exceeds this by chance once in millions of runs.
LARGEST_CHI_SQUARE = 60.0

SCHEMA = """
CREATE TABLE orders (
    id           INTEGER PRIMARY KEY,   -- the Snowflake ID; id % 16 is the shard
    customer     INTEGER NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
    issued_at    INTEGER NOT NULL,      -- Unix ms, by the till's clock
    till         INTEGER NOT NULL,      -- the thread that took the order
    number       INTEGER NOT NULL       -- that thread's count of orders
)
"""


class Order(NamedTuple):
    """A row of the table."""

    id: int
    customer: int
    amount_cents: int
    issued_at: int
    till: int
    number: int


ROW = f"({', '.join('?' * len(Order._fields))})"


# Printing ----------------------------------------------------------------------------------------


class Report:
    """Prints, and remembers which checks failed."""

    PLAIN = str.maketrans("┌┬┐└┴┘─│✓✗²", "++++++-|vx2")

    def __init__(self) -> None:
        self.held = 0
        self.failed: list[str] = []
        encoding = (sys.stdout.encoding or "ascii").lower()
        self.plain = not encoding.startswith("utf")

    def say(self, text: str = "") -> None:
        print(text.translate(self.PLAIN) if self.plain else text, flush=True)

    def title(self, text: str) -> None:
        self.say(f"\n{text}\n{'─' * len(text)}")

    def check(self, holds: bool, text: str) -> None:
        if holds:
            self.held += 1
        else:
            self.failed.append(text)
        self.say(f"  {'✓' if holds else '✗'} {text}")

    def finish(self) -> int:
        self.say()
        if self.failed:
            self.say(f"{len(self.failed)} of {self.held + len(self.failed)} checks FAILED:")
            for text in self.failed:
                self.say(f"  ✗ {text}")
            return 1
        self.say(f"All {self.held} checks passed.")
        return 0


# Processes with leased nodes ---------------------------------------------------------------------


class Share(NamedTuple):
    """What a process received."""

    node: int
    ids: list[int]
    invoices: list[int]


def clerk(store: str, pipe: Connection) -> None:
    """Runs in a separate process: sends a share each time it is asked, until it is told to stop."""
    with Snowflake(lease=store) as ids, Counter("invoices", store=store) as invoices:
        while pipe.recv():
            share = Share(
                ids.node, list(ids.next_ids(1000)), [invoices.next_id() for _ in range(50)]
            )
            pipe.send(share)


class Clerk:
    def __init__(self, store: str) -> None:
        self.pipe, theirs = multiprocessing.get_context("spawn").Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=clerk, args=(store, theirs), daemon=True
        )
        self.process.start()
        theirs.close()

    def share(self) -> Share:
        self.pipe.send(True)
        share: Share = self.pipe.recv()
        return share

    def end(self) -> None:
        self.pipe.send(False)
        self.process.join()

    def kill(self) -> None:
        self.process.kill()
        self.process.join()


def check_leases(report: Report, folder: Path) -> None:
    report.title(f"{CLERKS} processes, whose nodes come from a file")
    # The orders below use node 39 without a lease, so this process must not lease it.
    store = f"sqlite://{folder}/leases.sqlite?ttl=3s&nodes=100-199"
    # Nodes that are not free yet are the point here, and not worth a warning.
    logging.getLogger("polyflake").setLevel(logging.ERROR)
    clerks = [Clerk(store) for _ in range(CLERKS)]
    shares = [clerk.share() for clerk in clerks]
    nodes = [share.node for share in shares]
    report.check(len(set(nodes)) == CLERKS, f"each leased its own node: {nodes}")

    dead = shares[0]
    report.say(f"  The one with node {dead.node} is killed.")
    clerks[0].kill()
    try:
        Snowflake(lease=f"{store}&wait=0s", node=dead.node)
    except LeaseUnavailableError as error:
        report.check(True, f"nobody gets its node while its lease may still hold: {error}")
    else:
        report.check(False, "nobody gets its node while its lease may still hold")
    shares += [clerk.share() for clerk in clerks[1:]]
    with Snowflake(lease=store, node=dead.node) as heir:
        first = heir.next_id()
        report.check(
            heir.node == dead.node and first > max(dead.ids),
            f"then node {heir.node} goes on, with higher IDs than the one that was killed: {first}",
        )
        ids = [first, *itertools.chain.from_iterable(share.ids for share in shares)]
    report.check(len(set(ids)) == len(ids), f"the {len(ids):,} IDs of all are distinct")

    for survivor in clerks[1:]:
        survivor.end()
    with Counter("invoices", store=store) as invoices:
        numbers = sorted(
            [*itertools.chain.from_iterable(s.invoices for s in shares), invoices.next_id()]
        )
    report.check(
        len(set(numbers)) == len(numbers),
        f"the {len(numbers)} numbers of their counter are distinct, {numbers[0]} to {numbers[-1]}",
    )


# The shards --------------------------------------------------------------------------------------


def shard_paths(folder: Path) -> list[Path]:
    return [folder / f"orders-{shard:02}.sqlite" for shard in range(SHARDS)]


def create_shard(path: Path) -> None:
    with closing(sqlite3.connect(path)) as shard:
        shard.execute("PRAGMA journal_mode = WAL")
        shard.execute(SCHEMA)


def insert(shard: sqlite3.Connection, orders: Sequence[Order]) -> None:
    """Inserts all orders in one statement, which runs in SQLite without holding Python's lock."""
    shard.execute(
        f"INSERT INTO orders VALUES {', '.join([ROW] * len(orders))}",
        list(itertools.chain.from_iterable(orders)),
    )


class ShardWriter:
    """Stores one shard's orders, in one thread with one connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stored = 0
        # Bounded, so that the tills cannot get far ahead of the disk. None stops the thread.
        self.batches: Queue[list[Order] | None] = Queue(maxsize=16)

    def run(self, stop: Event) -> None:
        try:
            # Without isolation_level, each statement is a transaction.
            with closing(sqlite3.connect(self.path, isolation_level=None)) as shard:
                shard.execute("PRAGMA synchronous = NORMAL")
                while batch := self.batches.get():
                    insert(shard, batch)
                    self.stored += len(batch)
        except BaseException:
            stop.set()
            # A till that is still handing over orders must not wait for this thread forever.
            while self.batches.get():
                pass
            raise


# The tills ---------------------------------------------------------------------------------------


class Till:
    """Takes orders in one thread: gives each an ID and hands it to its shard."""

    def __init__(self, number: int, orders: int, ids: Snowflake) -> None:
        self.number = number
        self.orders = orders
        self.ids = ids
        self.issued = array("Q")
        # When the call that issued each ID began and returned.
        self.began_ns = array("q")
        self.returned_ns = array("q")

    def run(self, writers: Sequence[ShardWriter], stop: Event) -> None:
        try:
            self.take_orders(writers, stop)
        except BaseException:
            stop.set()
            raise

    def take_orders(self, writers: Sequence[ShardWriter], stop: Event) -> None:
        now_ns = time.perf_counter_ns
        chance = random.Random(self.number)
        waiting: list[list[Order]] = [[] for _ in writers]
        for number in range(self.orders):
            customer = int(chance.random() * 50_000)
            amount_cents = 199 + int(chance.expovariate(1 / 4_000))
            issued_at = time.time_ns() // 1_000_000

            began_ns = now_ns()
            id = self.ids.next_id()
            returned_ns = now_ns()

            self.issued.append(id)
            self.began_ns.append(began_ns)
            self.returned_ns.append(returned_ns)
            batch = waiting[id % SHARDS]
            batch.append(Order(id, customer, amount_cents, issued_at, self.number, number))
            if len(batch) == ROWS_PER_INSERT:
                if stop.is_set():
                    return
                writers[id % SHARDS].batches.put(batch)
                waiting[id % SHARDS] = []
        for writer, batch in zip(writers, waiting, strict=True):
            if batch:
                writer.batches.put(batch)


def take_orders(tills: Sequence[Till], paths: Iterable[Path]) -> float:
    """Runs all tills and writers at once; returns the seconds until all orders are stored."""
    writers = [ShardWriter(path) for path in paths]
    stop = Event()
    start = time.perf_counter()
    with ThreadPoolExecutor(len(writers)) as writing, ThreadPoolExecutor(len(tills)) as issuing:
        stored = [writing.submit(writer.run, stop) for writer in writers]
        issued = [issuing.submit(till.run, writers, stop) for till in tills]
        try:
            show_progress(sum(till.orders for till in tills), writers, stop)
        finally:
            # Any till that is not done must stop: a thread failed, or the user pressed Ctrl-C.
            stop.set()
            issuing.shutdown()
            for writer in writers:
                writer.batches.put(None)
    for thread in [*stored, *issued]:
        thread.result()
    return time.perf_counter() - start


def show_progress(orders: int, writers: Sequence[ShardWriter], stop: Event) -> None:
    """Shows on a terminal how many orders are stored, until all are or a thread fails."""
    hidden = not sys.stderr.isatty()
    with tqdm(total=orders, unit=" orders", unit_scale=True, disable=hidden) as bar:
        shown = 0
        while shown < orders and not stop.is_set():
            time.sleep(0.05)
            stored = sum(writer.stored for writer in writers)
            bar.update(stored - shown)
            shown = stored


# The checks --------------------------------------------------------------------------------------


def rows(shard: sqlite3.Connection) -> Iterator[Order]:
    return map(Order._make, shard.execute("SELECT * FROM orders ORDER BY id"))


def check_order_of_issue(
    report: Report, shards: Sequence[sqlite3.Connection], tills: Sequence[Till]
) -> None:
    """Reads all shards merged by ID, and compares them with the tills' records."""
    report.title("The shards, merged by ID")
    read = rising = as_issued = in_turn = 0
    early: int | None = None
    last_id = -1
    last_begin_ns = 0
    next_number = [0] * len(tills)
    for order in heapq.merge(*map(rows, shards)):
        till = tills[order.till]
        read += 1
        rising += order.id > last_id
        as_issued += till.issued[order.number] == order.id
        in_turn += next_number[order.till] == order.number
        # This call must not have returned before the call for a lower ID began.
        if till.returned_ns[order.number] < last_begin_ns:
            early = order.id
        last_id = order.id
        last_begin_ns = max(last_begin_ns, till.began_ns[order.number])
        next_number[order.till] += 1

    total = sum(till.orders for till in tills)
    distinct = len(set().union(*(till.issued for till in tills)))
    report.check(distinct == total, f"{distinct:,} distinct IDs were issued for {total:,} orders")
    report.check(
        read == rising == as_issued == total,
        f"{read:,} orders read back, each ID greater than the one before, exactly those issued",
    )
    report.check(
        in_turn == total,
        f"the orders of each of the {len(tills)} tills are in the order it took them",
    )
    report.check(
        early is None,
        "across threads: no ID is lower than one whose call returned before this call began",
    )


def check_primary_key(report: Report, shard: sqlite3.Connection) -> None:
    report.title("The primary key")
    order = next(rows(shard))
    try:
        insert(shard, [order])
    except sqlite3.IntegrityError as error:
        report.check(True, f"storing {order.id} again fails: {error}")
    else:
        report.check(False, f"storing {order.id} again fails")


def time_range(layout: Layout, tills: Sequence[Till]) -> tuple[datetime, datetime]:
    """100 ms around the middle of the run."""
    issued = sorted(itertools.chain.from_iterable(till.issued for till in tills))
    middle = layout.decode(issued[len(issued) // 2]).time
    assert middle is not None
    return middle - timedelta(milliseconds=50), middle + timedelta(milliseconds=50)


def check_time_range(
    report: Report, shards: Sequence[sqlite3.Connection], layout: Layout, tills: Sequence[Till]
) -> None:
    report.title("A range of time is a range of IDs")
    start, end = time_range(layout, tills)
    low, high = layout.min_id(start), layout.max_id(end)
    report.say(f"  from {start.isoformat(timespec='milliseconds')}   min_id {low}")
    report.say(f"  to   {end.isoformat(timespec='milliseconds')}   max_id {high}")
    query = "SELECT id FROM orders WHERE id BETWEEN ? AND ?"
    plan = shards[0].execute(f"EXPLAIN QUERY PLAN {query}", (low, high)).fetchone()[3]
    report.say(f"  {query}")
    report.say(f"  plan: {plan}")

    def within(id: int) -> bool:
        time = layout.decode(id).time
        return time is not None and start <= time <= end

    found = {id for shard in shards for (id,) in shard.execute(query, (low, high))}
    scanned = {
        id for shard in shards for (id,) in shard.execute("SELECT id FROM orders") if within(id)
    }
    report.check(
        found == scanned and len(found) > 0,
        f"{len(found):,} orders found; decoding every ID of every shard finds {len(scanned):,}, "
        f"{'the same' if found == scanned else 'others'}",
    )


def chi_square(counts: Sequence[int]) -> float:
    even = sum(counts) / len(counts)
    return sum((count - even) ** 2 for count in counts) / even


def show_counts(report: Report, counts: Sequence[int]) -> None:
    even = sum(counts) / len(counts)
    for half in (counts[:8], counts[8:]):
        report.say("    " + "".join(f"{count:>9,}" for count in half))
    furthest = max(abs(count - even) for count in counts) / even
    chi = chi_square(counts)
    report.say(f"    at most {furthest:.2%} off the mean; chi² {chi:,.1f} (15 degrees of freedom)")


def slow_counts(sequence_start: Literal["spread", "zero"]) -> list[int]:
    """The IDs per shard if each tick has one ID, on a clock that advances at each reading."""
    clock = itertools.count(1_767_225_600_000).__next__
    ids = Snowflake(node=7, sequence_start=sequence_start, clock=clock)
    counts = [0] * SHARDS
    for id in itertools.islice(ids, SLOW_TICKS):
        counts[id % SHARDS] += 1
    return counts


def check_evenness(report: Report, shards: Sequence[sqlite3.Connection]) -> None:
    report.title("How evenly the orders are spread (id % 16)")
    counts = [shard.execute("SELECT count(*) FROM orders").fetchone()[0] for shard in shards]
    report.say(f"  the {sum(counts):,} orders of this run:")
    show_counts(report, counts)
    report.check(chi_square(counts) <= LARGEST_CHI_SQUARE, "the run's orders are spread evenly")
    spread = slow_counts("spread")
    report.say(f"  {SLOW_TICKS:,} IDs issued slowly, one a millisecond:")
    show_counts(report, spread)
    report.check(
        chi_square(spread) <= LARGEST_CHI_SQUARE,
        'IDs issued slowly are spread evenly too, thanks to sequence_start="spread"',
    )
    zero = slow_counts("zero")
    report.say(f'    (with sequence_start="zero", {max(zero):,} of them go to one shard)')


# Published IDs -----------------------------------------------------------------------------------


class Published(NamedTuple):
    """A published ID, and what it means."""

    source: str
    layout: str
    id: int
    time: str
    values: dict[str, int]


BAIDU_README = "timestamp:29|worker:21|sequence:13@1474300800000/1s"
PUBLISHED = [
    Published(
        "Twitter",
        "twitter",
        1541815603606036480,
        "2022-06-28T16:07:40.105+00:00",
        {"node": 378, "sequence": 0},
    ),
    Published(
        "Discord",
        "discord",
        175928847299117063,
        "2016-04-30T11:18:25.796+00:00",
        {"worker": 1, "process": 0, "sequence": 7},
    ),
    Published(
        "ShardingSphere",
        "shardingsphere",
        725026630224842752,
        "2022-04-24T08:36:58.989+00:00",
        {"worker": 1, "sequence": 0},
    ),
    Published(
        "TSID 01226N0640J7Q",
        "tsid",
        38358284406638839,
        "2020-04-15T20:22:07.665+00:00",
        {"ticks": 9145327665, "node": 4, "sequence": 2295},
    ),
    Published(
        "Baidu's README",
        BAIDU_README,
        180363646902239241,
        "2017-01-19T04:15:46.000+00:00",
        {"worker": 4, "sequence": 9},
    ),
]


def meaning(decoded: Decoded, names: Iterable[str]) -> tuple[str, dict[str, int]]:
    assert decoded.time is not None
    values = {
        "ticks": decoded.ticks,
        "node": decoded.node,
        **decoded.fields,
        "sequence": decoded.sequence,
    }
    return decoded.time.isoformat(timespec="milliseconds"), {name: values[name] for name in names}


def words(time: str, values: dict[str, int]) -> str:
    return "  ".join([time, *(f"{name} {value}" for name, value in values.items())])


def check_published(report: Report) -> None:
    report.title("Published IDs")
    for known in PUBLISHED:
        time, values = meaning(Layout(known.layout).decode(known.id), known.values)
        report.check((time, values) == known[3:], f"{known.source}: {known.id}")
        report.say(f"      expected  {words(known.time, known.values)}")
        report.say(f"      got       {words(time, values)}")
    report.check(
        parse_id("01226N0640J7Q", "base32") == 38358284406638839,
        "TSID's text 01226N0640J7Q reads as 38358284406638839",
    )


# The bit picture ---------------------------------------------------------------------------------


class Part(NamedTuple):
    """A run of bits in the picture."""

    name: str
    bits: int
    value: int
    note: str


def parts(decoded: Decoded) -> list[Part]:
    layout = decoded.layout
    assert decoded.time is not None
    time = decoded.time.isoformat(timespec="milliseconds")
    notes = {"timestamp": f" ticks of {layout.tick_ms} ms, which is {time}"}
    found = [
        Part(
            field.name,
            field.bits,
            (decoded.id & field.mask) >> field.shift,
            notes.get(field.name, ""),
        )
        for field in layout.fields
    ]
    unused = 64 - layout.total_bits
    return [Part("unused", unused, 0, ""), *found] if unused else found


def picture(decoded: Decoded) -> list[str]:
    """The 64 bits, and under them the meaning of each part."""
    runs = parts(decoded)
    centres = []
    at = 1
    for run in runs:
        centres.append(at + run.bits // 2)
        at += run.bits + 1

    def marked(line: str, marks: Iterable[int], mark: str) -> str:
        characters = list(line)
        for place in marks:
            characters[place] = mark
        return "".join(characters)

    lines = [
        "┌" + "┬".join("─" * run.bits for run in runs) + "┐",
        "│" + "│".join(f"{run.value:0{run.bits}b}" for run in runs) + "│",
        marked("└" + "┴".join("─" * run.bits for run in runs) + "┘", centres, "┬"),
    ]
    for nth in reversed(range(len(runs))):
        run = runs[nth]
        bits = f"{run.bits} bit{'s' if run.bits > 1 else ''}"
        legend = f"└─ {run.name}, {bits}: {run.value}{run.note}"
        lines.append(marked(" " * centres[nth], centres[:nth], "│") + legend)
    return lines


def show_picture(report: Report, decoded: Decoded) -> None:
    report.title("An order's ID, bit by bit")
    report.say(f"  {decoded.id}")
    for line in picture(decoded):
        report.say(f"  {line}")
    value = 0
    for run in parts(decoded):
        value = value << run.bits | run.value
    report.check(value == decoded.id, "the bits of the picture are the ID")


# The rate ----------------------------------------------------------------------------------------


def show_rate(report: Report, orders: int, seconds: float, ids: Snowflake) -> None:
    report.title("The rate")
    layout = ids.layout
    ceiling = layout.ids_per_tick * 1000 // layout.tick_ms
    rate = orders / seconds
    report.say(f"  {orders:,} orders taken and stored in {seconds:.1f} s: {rate:,.0f}/s")
    report.say(f"  Without the database, of the {ceiling:,} IDs/s that fit in one node:")
    count = 1_000_000
    start = time.perf_counter()
    for _ in itertools.islice(ids, count):
        pass
    single = count / (time.perf_counter() - start)
    buffer = array("Q", bytes(8 * count))
    start = time.perf_counter()
    ids.fill(buffer)
    filled = count / (time.perf_counter() - start)
    report.say(f"    for id in ids     {single:>11,.0f}/s  {single / ceiling:.0%}")
    report.say(f"    ids.fill(buffer)  {filled:>11,.0f}/s  {filled / ceiling:.0%}")


# Running it --------------------------------------------------------------------------------------


def share_out(orders: int, tills: int) -> list[int]:
    return [orders // tills + (till < orders % tills) for till in range(tills)]


def run(folder: Path, orders: int) -> int:
    report = Report()
    check_leases(report, folder)
    ids = Snowflake(node={"datacenter": 1, "worker": 7})
    paths = shard_paths(folder)
    for path in paths:
        create_shard(path)
    report.say(f"\nTaking {orders:,} orders with {TILLS} threads, into {SHARDS} files in {folder}")
    tills = [Till(number, share, ids) for number, share in enumerate(share_out(orders, TILLS))]
    seconds = take_orders(tills, paths)

    with ExitStack() as stack:
        shards = [stack.enter_context(closing(sqlite3.connect(path))) for path in paths]
        show_picture(report, ids.decode(tills[0].issued[0]))
        check_evenness(report, shards)
        check_order_of_issue(report, shards, tills)
        check_primary_key(report, shards[tills[0].issued[0] % SHARDS])
        check_time_range(report, shards, ids.layout, tills)
    show_rate(report, orders, seconds, ids)
    check_published(report)
    return report.finish()


def arguments() -> argparse.Namespace:
    def enough(text: str) -> int:
        number = int(text)
        if number < TILLS:
            raise argparse.ArgumentTypeError(f"{number}: each of {TILLS} threads needs an order")
        return number

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=enough, default=1_000_000, help="default: %(default)s")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="leave the shards' files in DIR (a new folder)"
    )
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if given.keep is None:
        with tempfile.TemporaryDirectory(prefix="polyflake-demo-") as folder:
            return run(Path(folder), given.orders)
    try:
        given.keep.mkdir(parents=True)
    except FileExistsError:
        print(f"{given.keep} already exists; --keep creates a new folder", file=sys.stderr)
        return 2
    return run(given.keep, given.orders)


if __name__ == "__main__":
    sys.exit(main())
