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


#: Runs before a program. `slow` lets another thread run while a module is being imported.
BEGINNING = """
import os, signal, sys, threading, time
from importlib.machinery import BuiltinImporter, PathFinder

begun = threading.Event()

def slow(module, wait):
    class Loader:
        def __init__(self, real): self.real = real
        def create_module(self, spec): return self.real.create_module(spec)
        def exec_module(self, module):
            begun.set()
            wait()
            self.real.exec_module(module)

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == module:
                spec = BuiltinImporter.find_spec(name) or PathFinder.find_spec(name, path)
                spec.loader = Loader(spec.loader)
                return spec

    sys.meta_path.insert(0, Finder())

def lease():
    polyflake.Snowflake(lease="sqlite://{folder}/leases.db").close()

def load_in_a_thread():
    # Each would wait 2 s for a fork that seems to be in progress.
    names = list(sys.modules)[:40]
    thread = threading.Thread(target=lambda: [polyflake._polyflake._load(it) for it in names])
    thread.start()
    thread.join()

def fork(call):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        call()
        os._exit(0)
    return child
"""


def printed(program: str, folder: Path, within_s: float = 60) -> str:
    """Returns what a program printed, which may use BEGINNING."""
    program = BEGINNING.replace("{folder}", str(folder)) + program
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    # The library logs a file that does not answer in time, as on a busy disk.
    told = [line for line in ran.stderr.splitlines() if "no answer within" not in line]
    assert (told, ran.returncode) == ([], 0)
    return ran.stdout


AWAITED = "polyflake.Counter('n', store='sqlite://{folder}/n.db').next_id_async().close()"


@pytest.mark.parametrize(
    ("module", "call"),
    [
        ("polyflake._log", "lease()"),
        ("atexit", "lease()"),
        # asyncio.log takes a lock of logging, which logging also takes before a fork.
        ("polyflake._awaited", AWAITED),
        ("asyncio.log", AWAITED),
        ("polyflake._generator", "polyflake.IdGenerator"),
    ],
)
def test_a_fork_waits_for_an_import_by_another_thread(
    module: str, call: str, tmp_path: Path
) -> None:
    """Otherwise, the child would wait forever for the lock of a module that nobody is importing."""
    call = call.replace("{folder}", str(tmp_path))
    program = f"""
import polyflake
# Long enough for the fork to come meanwhile, if it did not wait.
slow("{module}", lambda: time.sleep(0.5))
first = threading.Thread(target=lambda: {call})
first.start()
assert begun.wait(20)
child = fork(lambda: {call})
first.join()
print(os.waitpid(child, 0)[1])
"""
    # If the two waited for each other, the fork would give up after 30 s.
    assert printed(program, tmp_path, within_s=25) == "0\n"


#: Runs before a program. `attached` runs in a thread that logs an event, after it has attached.
LOGGED = """
import polyflake
from polyflake import _log

real = _log.start

def start(take):
    attached()
    real(take)

_log.start = start
"""


def test_a_fork_waits_for_a_thread_that_attaches(tmp_path: Path) -> None:
    """Before Python 3.12, the child would wait forever for a lock of the other thread."""
    program = """
def attached():
    begun.set()
    time.sleep(0.5)  # long enough for the fork to come meanwhile, if it did not wait
    ended.set()

ended = threading.Event()
lease()
assert begun.wait(20)
child = fork(lambda: print(ended.is_set(), flush=True))
print(os.waitpid(child, 0)[1])
"""
    assert printed(LOGGED + program, tmp_path, within_s=25) == "True\n0\n"


def test_a_thread_that_attaches_waits_for_a_fork(tmp_path: Path) -> None:
    program = """
def attached():
    begun.set()

def before():
    if polyflake:
        lease()  # its events are logged in another thread
        assert not begun.wait(0.5)

polyflake = None
os.register_at_fork(before=before)  # before polyflake's own, so that it runs amid the fork
"""
    program += (
        LOGGED
        + """
polyflake._polyflake._load("polyflake._log")
child = fork(lambda: None)
print(begun.wait(20), os.waitpid(child, 0)[1])
"""
    )
    assert printed(program, tmp_path, within_s=25) == "True 0\n"


def test_a_call_that_needs_no_store_imports_nothing() -> None:
    """Otherwise, a fork by another thread could leave the child waiting for that import."""
    program = """
import builtins
from array import array
from datetime import datetime, timezone
from types import MappingProxyType
from polyflake import Counter, Layout, PolyflakeError, PublicIds, Snowflake
from polyflake import format_id, parse_id, reset_state

def refuse(name, *_):
    raise SystemExit(f"imports {name}")

builtins.__import__, real = refuse, builtins.__import__
ids = Snowflake(node=7)
id_ = ids.next_id()
buffer = array("Q", [0])
ids.next_ids(3), ids.try_next_id(), next(ids), ids.fill(buffer), ids.stats, ids.lease, repr(ids)
ids.decode(id_).time, ids.decode(id_).fields, str(ids.decode(id_)), ids.decode(id_).__reduce__()
ids.layout.decode_all(buffer).timestamps_ms, ids.layout.decode_all(buffer).fields
ids.layout.compose(datetime.now(timezone.utc), {"datacenter": 1, "worker": 2}, 3)
Layout(fields=(("timestamp", 41), ("node", 10), ("sequence", 12)), epoch_ms=0)
Layout(fields=MappingProxyType({"timestamp": 41, "node": 10, "sequence": 12}), epoch_ms=0)
parse_id(format_id(id_, "base32"), "base32")
public = PublicIds([PublicIds.generate_key()], "order")
public.decode_all(public.encode_all(iter([id_])))
for wrong in (
    lambda: Snowflake(node="seven"),
    lambda: Snowflake(node=-1),
    lambda: Snowflake(node={"worker": 1.5}),
    lambda: format_id("x"),
    lambda: Counter("n", store=7),
    lambda: reset_state(7),
):
    try:
        wrong()
    except (PolyflakeError, TypeError):
        continue
    raise SystemExit(f"{wrong} fails to fail")
builtins.__import__ = real
print("nothing")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("nothing\n", "")


def test_a_signal_handler_that_forks_amid_an_import(tmp_path: Path) -> None:
    """The import goes on in both processes, and neither waits for itself."""
    program = """
import polyflake

child = None

def on_signal(*_):
    global child
    child = os.fork()
    if child == 0:
        signal.alarm(20)

signal.signal(signal.SIGUSR1, on_signal)
slow("polyflake._log", lambda: signal.raise_signal(signal.SIGUSR1))
lease()
if child != 0:
    print(os.waitpid(child, 0)[1])
"""
    # A handler that waited for itself would give up after 30 s.
    assert printed(program, tmp_path, within_s=25) == "0\n"


def test_a_fork_within_a_fork(tmp_path: Path) -> None:
    """Afterwards, other threads import without waiting, in the parent and in the child."""
    program = """
children = []

def before():
    if not children:
        children.append(None)
        children.append(fork(lambda: None))

os.register_at_fork(before=before)  # before polyflake's own, so that it runs amid the outer fork
import polyflake
children.append(fork(load_in_a_thread))
load_in_a_thread()
print([os.waitpid(child, 0)[1] for child in children[1:]])
"""
    assert printed(program, tmp_path) == "[0, 0]\n"


def test_a_signal_that_raises_amid_a_fork(tmp_path: Path) -> None:
    """Afterwards, other threads import without waiting."""
    program = """
import ctypes, functools

class Interrupted(Exception): pass

def interrupt(*_):
    raise Interrupted

signal.signal(signal.SIGUSR1, interrupt)
# Runs after polyflake's own. It is not Python, so the signal's handler runs only after the fork.
os.register_at_fork(before=functools.partial(ctypes.PyDLL(None)["raise"], int(signal.SIGUSR1)))
import polyflake

try:
    child = os.fork()
    if child == 0:
        os._exit(0)
except Interrupted:
    print("interrupted")
load_in_a_thread()
"""
    assert printed(program, tmp_path) == "interrupted\n"


def test_a_fork_that_an_import_cannot_wait_for(tmp_path: Path) -> None:
    """The import goes ahead, and the child then says why it cannot import.

    The forking thread may itself wait for the thread that imports.
    """
    program = """
def before():
    if not begun.is_set():
        threading.Thread(target=lease, daemon=True).start()
        assert begun.wait(20)
        os.waitpid(fork(lambda: None), 0)  # waits for nothing, since the outer fork has waited

def in_child():
    assert polyflake.Snowflake(node=7).next_id() > 0
    try:
        lease()
    except ImportError as error:
        print(error, flush=True)

os.register_at_fork(before=before)  # before polyflake's own, so that an import must wait
import polyflake
slow("polyflake._log", threading.Event().wait)
print(os.waitpid(fork(in_child), 0)[1])
os._exit(0)
"""
    (told, status) = printed(program, tmp_path, within_s=25).splitlines()
    assert told.startswith("cannot import polyflake._log: this process was forked while")
    assert status == "0"


def test_a_call_amid_an_import_that_fails(tmp_path: Path) -> None:
    """A signal handler may make such a call. The next call imports the module again."""
    program = """
import polyflake

def amid():
    try:
        polyflake.IdGenerator
    except AttributeError:
        raise KeyError

times = iter([amid])
slow("polyflake._generator", lambda: next(times, int)())
try:
    polyflake.IdGenerator
except KeyError:
    print(polyflake.IdGenerator.__name__)
"""
    assert printed(program, tmp_path) == "IdGenerator\n"


def test_a_module_that_was_removed_is_not_imported_again() -> None:
    program = """
import sys
import polyflake
first = polyflake._polyflake._load("polyflake._awaited")
del sys.modules["polyflake._awaited"]
print(polyflake._polyflake._load("polyflake._awaited") is first)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.stdout, ran.stderr) == ("True\n", "")


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
        if is_child:
            signal.alarm(60)

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


def test_a_signal_handler_that_forks_inside_a_batch_that_waits(tmp_path: Path) -> None:
    """The child does not return the IDs that the batch had before."""
    program = """
import json
import polyflake

# A one-second tick holds four IDs, so the batch has some of them when it waits.
ids = polyflake.Snowflake(
    layout="timestamp:32|node:10|sequence:2@1577836800000/1s",
    node=506,
    state="{folder}/state",
    max_wait_ms=60_000,
)
child = None

def on_signal(*_):
    global child
    child = os.fork()
    if child == 0:
        signal.alarm(40)

def interrupt():
    while ids.stats.waits == 0:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, on_signal)
read, write = os.pipe()
threading.Thread(target=interrupt).start()
batch = ids.next_ids(13)
if child == 0:
    os.write(write, json.dumps(batch).encode())
    os._exit(0)
print(os.waitpid(child, 0)[1], len({*batch, *json.loads(os.read(read, 9999))}))
"""
    program = program.replace("{folder}", str(tmp_path))
    assert printed(program, tmp_path) == "0 26\n"


def test_a_fork_while_a_call_is_awaited(tmp_path: Path) -> None:
    """The result is the parent's, even if it has already reached the event loop."""
    program = """
import asyncio
from polyflake import Counter, ForkedError, _awaited

counter = Counter("n", store="sqlite://{folder}/n.db", step=1, max_wait_ms=60_000)
child = None

def later(ticket):
    global child
    waiter = counter._next_id_later(ticket)
    while not asyncio.get_running_loop()._ready:
        time.sleep(0.001)
    child = os.fork()
    return waiter

async def main():
    try:
        print(await _awaited.given(None, later), os.waitpid(child, 0)[1], flush=True)
    except ForkedError:
        print("forked", flush=True)
        os._exit(0)

asyncio.run(main())
"""
    program = program.replace("{folder}", str(tmp_path))
    assert printed(program, tmp_path) == "forked\n1 0\n"


def test_a_signal_handler_that_forks_inside_a_call_that_waits_for_a_store(tmp_path: Path) -> None:
    """The call fails in the child, because the parent returns its number."""
    program = '''
import subprocess
from polyflake import Counter, PolyflakeError

counter = Counter("n", store="sqlite://{folder}/n.db", step=1, max_wait_ms=60_000)
child = None

def on_signal(*_):
    global child
    other.communicate()
    time.sleep(0.2)  # the number has usually arrived by then
    child = os.fork()
    if child == 0:
        signal.alarm(20)

def interrupt():
    while counter.stats.waits == waits:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGUSR1)

signal.signal(signal.SIGUSR1, on_signal)
earlier = counter.next_id()
# The store answers nobody until the handler runs. (The locks do not keep out the process itself.)
lock = """
import sqlite3, sys
connection = sqlite3.connect("{folder}/n.db", timeout=60)
connection.execute("BEGIN IMMEDIATE")
print(flush=True)
sys.stdin.read()
"""
pipe = subprocess.PIPE
other = subprocess.Popen([sys.executable, "-c", lock], stdin=pipe, stdout=pipe)
other.stdout.readline()
waits = counter.stats.waits
threading.Thread(target=interrupt).start()
try:
    number = counter.next_id()
except PolyflakeError as error:
    print(error.name, counter.next_id() > earlier, flush=True)
    os._exit(0)
print(number > earlier, os.waitpid(child, 0)[1])
'''
    program = program.replace("{folder}", str(tmp_path))
    assert printed(program, tmp_path) == "forked True\nTrue 0\n"


def test_threads_that_a_hook_starts_in_a_child(tmp_path: Path) -> None:
    """Their imports are counted, too. Otherwise, each later fork would wait for 30 s."""
    program = """
import polyflake

def in_child():
    threading.Thread(target=load).start()
    assert begun.wait(20)

def load():
    polyflake.IdGenerator
    loaded.set()

loaded, go_on = threading.Event(), threading.Event()
os.register_at_fork(after_in_child=in_child)
lease()  # registers polyflake's own hooks, which run afterwards
slow("polyflake._generator", go_on.wait)

def child():
    go_on.set()
    assert loaded.wait(20)
    grandchild = fork(lambda: None)
    assert os.waitpid(grandchild, 0)[1] == 0

print(os.waitpid(fork(child), 0)[1])
"""
    # A fork that waited for 30 s would end the child.
    assert printed(program, tmp_path) == "0\n"
