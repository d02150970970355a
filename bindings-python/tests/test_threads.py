"""Objects shared between threads, which take turns with a GIL and run in parallel without one."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from polyflake import (
    ClockFailedError,
    ClosedError,
    Counter,
    ForkedError,
    Layout,
    Sequences,
    Snowflake,
)
from support import HAS_GIL, in_child

THREADS = 4
#: Wide enough that no call waits for the clock.
WIDEST = "timestamp:38|worker:1|sequence:25@1735689600000/1ms"


def at_once(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Returns each thread's result. All threads start together."""
    begin = threading.Barrier(threads)
    returned: list[Any] = [None] * threads
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            begin.wait()
            returned[number] = work(number)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert failures == []
    return returned


def check_unique(given: list[list[int]]) -> None:
    """Checks that no number repeats, and that each thread's numbers increase."""
    assert all(a < b for mine in given for a, b in pairwise(mine))
    everything = [number for mine in given for number in mine]
    assert len(set(everything)) == len(everything)


def test_the_module_declares_that_it_needs_no_gil() -> None:
    source = (Path(__file__).parents[1] / "src/lib.rs").read_text()
    assert re.findall(r"#\[pymodule.*", source) == ["#[pymodule(gil_used = false)]"]


@pytest.mark.skipif(HAS_GIL, reason="this Python has a GIL")
def test_it_does_not_turn_the_gil_on(tmp_path: Path) -> None:
    """Python would, with a warning, if the module did not declare that it needs no GIL."""
    program = f"""
import asyncio, sys
from polyflake import Counter, IdGenerator, Layout, Sequences, Snowflake
ids = Snowflake(lease="sqlite://{tmp_path}/leases.db")
Layout("twitter").decode_all(memoryview(ids.next_id().to_bytes(8, sys.byteorder)).cast("Q"))
counter = Counter("orders", store="sqlite://{tmp_path}/numbers.db")
asyncio.run(counter.next_id_async())
ids.close()
assert not sys._is_gil_enabled()
"""
    command = [sys.executable, "-W", "error", "-c", program]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    subprocess.run(command, check=True, env=environment)


def test_no_class_can_be_borrowed() -> None:
    """A PyO3 class that is not frozen may raise an exception if two threads call it at once."""
    sources = (Path(__file__).parents[1] / "src").glob("*.rs")
    classes = [it for path in sources for it in re.findall(r"#\[pyclass.*", path.read_text())]
    assert len(classes) >= 13
    assert all(it.startswith("#[pyclass(frozen") for it in classes)


@pytest.mark.parametrize("clock", ["system", "steady", "custom"])
@pytest.mark.parametrize("objects", ["one", "two of one node"])
def test_all_ways_to_take_ids(clock: str, objects: str) -> None:
    readings = count()
    options: dict[str, Any] = {"layout": WIDEST, "node": 0, "clock": clock}
    if clock == "custom":
        options["clock"] = lambda: 1_800_000_000_000 + next(readings) // 100
        if objects != "one":
            pytest.skip("with a custom clock each has its own cursor")
    both = [Snowflake(**options), Snowflake(**options)]
    if objects == "one":
        both = both[:1]

    def work(number: int) -> list[int]:
        ids, mine, buffer = both[number % len(both)], list[int](), array("Q", bytes(8 * 500))
        for _ in range(100):
            mine += [ids.next_id(), *ids.next_ids(100), ids.try_next_id(), next(ids)]
            ids.fill(buffer)
            mine += buffer
        return mine

    check_unique(at_once(work))


def test_one_iterator() -> None:
    ids = iter(Snowflake(layout=WIDEST, node=0))
    check_unique(at_once(lambda _: [next(ids) for _ in range(20_000)]))
    # `zip` stops when its first argument is exhausted, so it drops no ID.
    check_unique(at_once(lambda _: [id for _, id in zip(range(20_000), ids, strict=False)]))


def test_each_thread_gets_the_exception_of_its_own_clock_call() -> None:
    def clock() -> int:
        raise LookupError(threading.get_ident())

    ids = Snowflake(layout=WIDEST, node=0, clock=clock)

    def work(_: int) -> None:
        for _ in range(2_000):
            with pytest.raises(ClockFailedError) as raised:
                ids.next_id()
            cause = raised.value.__cause__
            assert isinstance(cause, LookupError)
            assert cause.args == (threading.get_ident(),)

    at_once(work)


def test_close_while_others_take_ids() -> None:
    for _ in range(20):
        ids = Snowflake(layout=WIDEST, node=0)

        def work(number: int, ids: Snowflake = ids) -> list[int]:
            mine: list[int] = []
            try:
                for _ in range(50):
                    mine.append(ids.next_id())
                if number == 0:
                    ids.close()
                while len(mine) < 20_000:
                    mine.append(ids.next_id())
            except ClosedError:
                pass
            return mine

        check_unique(at_once(work))
        with pytest.raises(ClosedError):
            ids.next_id()


def test_snowflakes_of_one_node_are_made_at_once() -> None:
    """Snowflakes created at the same time share the cursor that one of them created."""
    for node in range(50):
        layout = f"timestamp:38|worker:8|sequence:18@{1735689600000 + node}/1ms"

        def work(_: int, node: int = node, layout: str = layout) -> list[int]:
            return Snowflake(layout=layout, node=node).next_ids(20)

        check_unique(at_once(work))


def test_columns_are_made_once() -> None:
    layout = Layout("twitter")
    ids = array("Q", Snowflake(node=39).next_ids(1_000))
    for _ in range(20):
        decoded = layout.decode_all(ids)

        def work(_: int, decoded: Any = decoded) -> list[Any]:
            columns = [decoded.ids, decoded.timestamps_ms, decoded.ticks, decoded.nodes]
            return [*columns, decoded.sequences, *decoded.fields.values(), hash(decoded)]

        first, *others = at_once(work)
        assert all(a is b for other in others for a, b in zip(first[:-1], other, strict=False))
        assert all(first[-1] == other[-1] for other in others)
        assert first[0].tolist() == ids.tolist()


def test_one_layout() -> None:
    layout, other = Layout("discord"), Layout(str(Layout("discord")))
    id = 175928847299117063
    decoded = layout.decode(id)

    def work(_: int) -> None:
        for _ in range(2_000):
            again = layout.decode(id)
            assert (again, hash(again), again.time) == (decoded, hash(decoded), decoded.time)
            assert again.fields == {"worker": 1, "process": 0}
            assert layout.compose(again.time, again.fields, again.sequence) == id
            assert (layout, hash(layout)) == (other, hash(other))

    at_once(work)


def test_counters_and_sequences_are_first_used_at_once(tmp_path: Path) -> None:
    """Threads that start using counters at the same time all import the modules at once."""
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import asyncio
from test_threads import Counter, Sequences, Snowflake, at_once, check_unique

def work(number):
    with (
        Counter("orders", store="sqlite://{tmp_path}/numbers.db") as counter,
        Sequences("inbox", store="sqlite://{tmp_path}/numbers.db") as sequences,
    ):
        async def later():
            calls = [counter.next_id_async() for _ in range(50)]
            return await asyncio.gather(*calls, sequences.next_id_async("alice"))

        *numbers, of_alice = asyncio.run(later())
        numbers += [counter.next_id() for _ in range(500)]
        return sorted(numbers), [of_alice, *sequences.next_ids(["alice"] * 500)]

given = at_once(work)
check_unique([numbers for numbers, _ in given])
check_unique([of_alice for _, of_alice in given])
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_awaited_calls_of_several_event_loops(tmp_path: Path) -> None:
    """Each result goes to the call waiting for it. With a step of 1, every call waits."""
    store = f"sqlite://{tmp_path}/numbers.db"
    with (
        Counter("orders", store=store, step=1) as counter,
        Sequences("inbox", store=store, step=3) as sequences,
    ):

        async def calls(key: int) -> tuple[list[int], list[int]]:
            numbers = await asyncio.gather(*(counter.next_id_async() for _ in range(30)))
            of_key = [await sequences.next_id_async(key) for _ in range(30)]
            return sorted(numbers), of_key

        given = at_once(lambda number: asyncio.run(calls(number)))
    check_unique([numbers for numbers, _ in given])
    check_unique([of_key for _, of_key in given[:1]])
    # Each thread counts with its own key.
    assert all(of_key == list(range(1, 31)) for _, of_key in given)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("state", [False, True])
def test_forks_while_others_take_ids(state: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"state": tmp_path / "state", "node": 1} if state else {"node": 0}
    layout = "timestamp:38|worker:2|sequence:20@1735689600000/1ms"
    ids = Snowflake(layout=layout, max_wait_ms=60_000, **options)
    in_children: list[list[int]] = []
    over = threading.Event()

    def child() -> list[int] | str:
        try:
            return [ids.next_id(), *ids.next_ids(50), next(ids)]
        except ForkedError:
            return "forked"

    def work(number: int) -> list[int]:
        if number == 0:
            try:
                told = [in_child(child) for _ in range(5)]
            finally:
                over.set()
            if state:
                in_children.extend(told)  # type: ignore[arg-type]
            else:
                assert told == ["forked"] * 5
        mine: list[int] = []
        while not over.is_set() and len(mine) < 200_000:
            mine += [ids.next_id(), *ids.next_ids(20)]
        return mine

    check_unique([*at_once(work), *in_children])
