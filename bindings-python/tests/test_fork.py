"""After a fork: inherited Snowflakes fail in the child, and the parent continues."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from polyflake import ForkedError, PolyflakeError, Snowflake
from support import in_child, until

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except PolyflakeError as error:
        return error.name
    return "issued"


def test_the_child_fails_and_the_parent_continues() -> None:
    ids = Snowflake(node=500)
    own_clock = Snowflake(node=500, clock=lambda: 1_700_000_000_000)
    first, own_first = ids.next_id(), own_clock.next_id()
    calls: list[Callable[[], object]] = [
        ids.next_id,
        ids.try_next_id,
        lambda: next(ids),
        lambda: ids.next_ids(10),
        lambda: ids.next_ids(20_000),
        lambda: ids.fill(array("Q", [0])),
        lambda: ids.fill(array("Q")),
        lambda: ids.stats,
        own_clock.next_id,
        lambda: Snowflake(node=500),
        lambda: Snowflake(node=500, layout="leaf"),
    ]
    assert in_child(lambda: [outcome(call) for call in calls]) == ["forked"] * len(calls)
    assert ids.next_id() > first
    assert own_clock.next_id() == own_first + 1


def test_the_child_issues_ids_on_its_own_node() -> None:
    parent = Snowflake(node=501)
    parents = parent.next_ids(1000)
    from_child = in_child(lambda: Snowflake(node=502).next_ids(1000))
    assert isinstance(from_child, list)
    assert len({*parents, *from_child, *parent.next_ids(1000)}) == 3000


def test_decoding_works_in_the_child() -> None:
    ids = Snowflake(node=503)
    id_ = ids.next_id()
    assert in_child(lambda: ids.decode(id_).node) == 503


def test_dropping_an_inherited_snowflake_does_not_affect_the_parent() -> None:
    ids = Snowflake(node=504)
    first = ids.next_id()

    def drop() -> bool:
        nonlocal ids
        del ids
        return True

    assert in_child(drop) is True
    assert ids.next_id() > first


shared = Snowflake(node=505)


def worker(_: int) -> str:
    with pytest.raises(ForkedError) as raised:
        shared.next_id()
    return str(raised.value)


def test_the_error_in_a_forked_worker_says_what_to_do() -> None:
    shared.next_id()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        (message,) = set(pool.map(worker, range(8)))
    assert "fork" in message


@pytest.mark.parametrize("module", ["polyflake._log", "atexit"])
def test_a_fork_waits_for_what_another_thread_imports(module: str, tmp_path: Path) -> None:
    """Otherwise, the child would wait forever for the lock of a module that nobody is importing."""
    program = f"""
import os, signal, sys, threading, time
from polyflake import Snowflake

begun = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            begun.set()
            time.sleep(0.5)  # Long enough for the fork to come meanwhile, where it does not wait.

sys.meta_path.insert(0, Slow())
lease = "sqlite://{tmp_path}/leases.db?init=always"
first = threading.Thread(target=lambda: Snowflake(lease=lease).close())
first.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(30)
    Snowflake(lease=lease).close()
    os._exit(0)
first.join()
print(os.waitpid(child, 0)[1])
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout == "0\n", ran.stderr


def test_a_signal_handler_that_forks_amid_an_import(tmp_path: Path) -> None:
    """The import goes on in both processes, and neither waits for itself."""
    program = f"""
import os, signal, sys
from polyflake import Snowflake

child = None

def fork(*_):
    global child
    child = os.fork()
    if child == 0:
        signal.alarm(20)

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "polyflake._log":
            signal.raise_signal(signal.SIGUSR1)

signal.signal(signal.SIGUSR1, fork)
sys.meta_path.insert(0, Slow())
Snowflake(lease="sqlite://{tmp_path}/leases.db?init=always").close()
if child != 0:
    print(os.waitpid(child, 0)[1])
"""
    # A handler that waited for itself would give up after 30 s.
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=25, check=False
    )
    assert ran.stdout == "0\n", ran.stderr


def test_a_signal_handler_that_forks_inside_a_call_that_waits(tmp_path: Path) -> None:
    """The call continues in both processes. The child has no other threads to wait for."""
    # A one-second tick holds four IDs, which nine threads compete for.
    ids = Snowflake(
        layout="timestamp:32|node:10|sequence:2@1577836800000/1s",
        node=506,
        state=tmp_path / "state",
        max_wait_ms=15_000,
    )
    is_child = has_forked = False
    child = 0
    others: list[int] = []

    def fork(*_: object) -> None:
        nonlocal child, has_forked, is_child
        child = os.fork()
        has_forked, is_child = True, child == 0

    def take() -> None:
        while not has_forked:
            others.append(ids.next_id())

    def interrupt() -> None:
        until(lambda: ids.stats.waits > 12)
        os.kill(os.getpid(), signal.SIGUSR1)

    read, write = os.pipe()
    before = signal.signal(signal.SIGUSR1, fork)
    threads = [threading.Thread(target=it) for it in (*[take] * 8, interrupt)]
    mine: list[int] = []
    try:
        for thread in threads:
            thread.start()
        answer: object = None
        try:
            while not has_forked:
                mine.append(ids.next_id())
            answer = [*mine[-1:], ids.next_id()]
        except PolyflakeError as error:
            answer = error.name
        if is_child:
            os.write(write, json.dumps(answer).encode())
    finally:
        if is_child:
            os._exit(0)
        signal.signal(signal.SIGUSR1, before)
    for thread in threads:
        thread.join()
    os.close(write)
    with os.fdopen(read) as pipe:
        answers = [answer, json.load(pipe)]
    os.waitpid(child, 0)
    assert all(isinstance(it, list) for it in answers), answers
    issued = [*others, *mine[:-1], *answers[0], *answers[1]]
    assert len(set(issued)) == len(issued)
