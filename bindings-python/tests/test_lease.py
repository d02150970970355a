"""Leased nodes: processes, threads, forks, stores that go down. No test asserts a duration."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from polyflake import (
    ForkedError,
    InvalidNodeError,
    InvalidOptionError,
    LeaseLostError,
    LeaseUnavailableError,
    SequenceExhaustedError,
    Snowflake,
)
from support import (
    HOLDER,
    Program,
    Redis,
    failure,
    holds_the_node_of_its_ids,
    in_child,
    program,
    until,
)

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="forks and POSIX signals"),
    # Turns a wait that never ends into a failure.
    pytest.mark.timeout(300),
]

T = 1_700_000_000_000
NODES = "&nodes=900-963"


@pytest.fixture
def store(tmp_path: Path) -> str:
    # Once leased, a node can be used only through a lease, so this process's other tests use other
    # nodes.
    return f"sqlite://{tmp_path}/leases.db?ttl=10m{NODES}"


# Processes and threads ---------------------------------------------------------------------------


def test_four_processes_have_four_nodes(store: str) -> None:
    store = store.replace(NODES, "&nodes=904-907&wait=20s")
    with ExitStack() as stack:
        holders = [
            stack.enter_context(program(HOLDER, f"{store}&label=holder-{i}")) for i in range(4)
        ]
        told = [holder.told() for holder in holders]
        assert {node for node, _ in told} == {904, 905, 906, 907}
        assert len({id for _, ids in told for id in ids}) == 4000
        with pytest.raises(LeaseUnavailableError, match=r"all 4 .* `holder-[0-3]`, becomes free"):
            Snowflake(lease=store.replace("wait=20s", "wait=0s"))


def test_close_frees_the_node_at_once(store: str) -> None:
    store = store.replace(NODES, "&nodes=900-900")
    ids = Snowflake(lease=f"{store}&label=the+first")
    first = ids.next_ids(1000)
    told = in_child(lambda: failure(lambda: Snowflake(lease=f"{store}&wait=0s")))
    assert str(told).startswith("lease_unavailable: no node is free")
    assert "node 900, held by `the first`, becomes free first" in str(told)
    ids.close()
    with program(HOLDER, f"{store}&wait=20s") as holder:
        node, second = holder.told()
        assert node == 900
        assert max(first) < min(second)
        holder.go()
        assert holder.told() == "closed"


def test_two_snowflakes_share_a_lease(store: str) -> None:
    one, two = Snowflake(lease=store), Snowflake(lease=store)
    assert one.node == two.node
    assert len({*one.next_ids(5000), *two.next_ids(5000), *one.next_ids(5000)}) == 15_000
    one.close()
    assert one.lease is not None
    assert one.lease.state == "closed"
    assert two.next_id() > 0
    assert two.lease is not None
    assert two.lease.state == "held"
    two.close()


def test_threads(store: str) -> None:
    issued: list[list[int]] = []

    def work(ids: Snowflake) -> None:
        mine = []
        for _ in range(200):
            mine += [*ids.next_ids(50), ids.next_id(), ids.next_id()]
        issued.append(mine)

    with (
        Snowflake(lease=store, max_wait_ms=60_000) as ids,
        Snowflake(lease=store, max_wait_ms=60_000) as other,
    ):
        threads = [threading.Thread(target=work, args=(it,)) for it in [ids, other] * 4]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({id for mine in issued for id in mine}) == 8 * 200 * 52
    assert all(mine == sorted(mine) for mine in issued)


def test_fields_that_are_given_narrow_the_choice(store: str) -> None:
    with Snowflake(lease=store.replace(NODES, ""), node={"datacenter": 31}) as ids:
        assert ids.node >> 5 == 31
        assert ids.decode(ids.next_id()).node == ids.node
    with Snowflake(lease=store.replace(NODES, ""), node=77) as ids:
        assert ids.node == 77


# What a program sees -----------------------------------------------------------------------------


def test_a_lease_tells_how_it_stands(store: str, tmp_path: Path) -> None:
    before = int(time.time() * 1000)
    with Snowflake(lease=store) as ids:
        lease = ids.lease
        assert lease is not None
        assert (lease.node, lease.state) == (ids.node, "held")
        assert lease.store == f"sqlite://{tmp_path}/leases.db"
        assert lease.left_ms > 0
        assert lease.bound_ms > before
        assert len({lease, lease, ids.lease}) <= 2
        assert repr(lease) == (
            f"Lease(node={lease.node}, bound_ms={lease.bound_ms}, left_ms={lease.left_ms}, "
            f"store='sqlite://{tmp_path}/leases.db', state='held')"
        )
        with pytest.raises(AttributeError):
            lease.node = 1  # type: ignore[misc]
        assert ids.stats.lease_losses == 0
        assert repr(ids.stats).endswith("lease_losses=0)")


def test_without_a_lease_there_is_none() -> None:
    ids = Snowflake(node=601)
    assert ids.lease is None
    assert ids.stats.lease_losses == 0


@pytest.mark.parametrize("options", [{"state": "x.state"}, {"clock": lambda: T}], ids=str)
def test_a_lease_excludes_state_and_a_clock_of_the_callers(
    store: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOptionError, match="lease"):
        Snowflake(lease=store, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("", "redis://host/0"),
        ("localhost:6379", "redis://host"),
        ("http://user:hunter2@host", "no such kind"),
        ("redis://user:hunter2@host/x", "number"),
        ("redis://user:hunter2@host?ttl=2s", "3s to 1h"),
        ("redis://user:hun/ter2@host", "%2F"),
        ("redis://user:hunter2@host?password=hunter2&node=1", "the parameters are namespace"),
        ("sqlite://hunter2", "whole path"),
    ],
)
def test_a_wrong_address_is_named_without_its_secrets(address: str, says: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Snowflake(lease=address)
    assert str(caught.value).startswith("invalid_option: lease")
    assert says in str(caught.value)
    assert "hun" not in str(caught.value)
    assert "ter2" not in str(caught.value)


def test_a_store_that_cannot_be_reached_or_used(tmp_path: Path, redis: Redis) -> None:
    port = redis.port
    address = f"redis://user:hunter2@127.0.0.1:{port}/0?wait=0s"
    with pytest.raises(LeaseUnavailableError, match=rf"127\.0\.0\.1:{port}/0") as caught:
        Snowflake(lease=address)
    assert "hunter2" not in str(caught.value)
    redis.kill()
    with pytest.raises(LeaseUnavailableError, match=r"cannot be reached: redis://127") as caught:
        Snowflake(lease=address)
    assert isinstance(caught.value, OSError)
    assert (caught.value.code, caught.value.name) == (12, "lease_unavailable")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(LeaseUnavailableError, match="no/such/folder"):
        Snowflake(lease=f"sqlite://{tmp_path}/no/such/folder/x.db?wait=0s")


def test_wrong_types_and_nodes(store: str) -> None:
    with pytest.raises(TypeError, match="lease must be a str, not int"):
        Snowflake(lease=5)  # type: ignore[arg-type]
    with pytest.raises(InvalidNodeError):
        Snowflake(lease=store, node={"shelf": 3})


# Waiting -----------------------------------------------------------------------------------------


def test_ctrl_c_ends_the_wait_for_a_node(store: str) -> None:
    store = store.replace(NODES, "&nodes=900-900")
    waiting = """
import signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)

def announce():  # in which it needs the GIL
    time.sleep(0.2)
    tell("waiting")

threading.Thread(target=announce).start()
try:
    Snowflake(lease=lease)
except KeyboardInterrupt:
    tell("interrupted")
"""
    with Snowflake(lease=store), program(waiting, f"{store}&wait=1h") as waiter:
        assert waiter.told() == "waiting"
        waiter.process.send_signal(signal.SIGINT)
        assert waiter.told() == "interrupted"
        waiter.end()


def test_an_event_loop_goes_on(store: str) -> None:
    store = store.replace(NODES, "&nodes=900-900&wait=1h")

    async def main(holder: Program) -> tuple[int, int]:
        opening = asyncio.create_task(asyncio.to_thread(Snowflake, lease=store))
        # The node is freed only after this loop has run for a while.
        for _ in range(20):
            await asyncio.sleep(0.01)
            assert not opening.done()
        holder.go()
        assert await asyncio.to_thread(holder.told) == "closed"
        ids = await opening
        id_ = ids.next_id()
        await asyncio.to_thread(ids.close)
        return ids.node, id_

    with program(HOLDER, store) as holder:
        node, earlier = holder.told()
        assert node == 900
        node, later = asyncio.run(main(holder))
        assert node == 900
        assert later > max(earlier)


def test_close_does_not_hold_the_gil(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    """The store is paused until another thread resumes it."""
    caplog.set_level(logging.INFO, "polyflake")
    ids = Snowflake(lease=redis.address("ttl=10m&nodes=900-900"))
    redis.send(signal.SIGSTOP)
    closing = threading.Thread(target=ids.close)
    closing.start()
    for _ in range(10):
        time.sleep(0.01)
    redis.send(signal.SIGCONT)
    closing.join()
    until(lambda: [it for it in redis.logged(caplog) if it.__dict__["kind"] == "released"])
    with program(HOLDER, redis.address("ttl=10m&nodes=900-900&wait=20s")) as holder:
        assert holder.told()[0] == 900


# Stores that go away -----------------------------------------------------------------------------


def test_redis_is_killed_and_comes_back(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "polyflake")
    ids = Snowflake(lease=redis.address("ttl=3s&wait=2m" + NODES), max_wait_ms=120_000)
    issued = [ids.next_id()]
    redis.kill()
    lost: list[LeaseLostError] = []
    while not lost:
        try:
            issued.append(ids.try_next_id())
        except LeaseLostError as error:
            lost.append(error)
        except SequenceExhaustedError:
            pass
        time.sleep(0.001)
    (error,) = lost
    assert isinstance(error, RuntimeError)
    assert (error.code, error.name) == (13, "lease_lost")
    assert error.retry_after_ms >= 0
    assert f"redis://127.0.0.1:{redis.port}/0" in str(error)
    until(lambda: ids.stats.lease_losses >= 1)
    state = ids.lease
    assert state is not None
    assert (state.state, state.left_ms) == ("lost", 0)
    redis.start()
    issued += [ids.next_id(), *ids.next_ids(1000)]
    assert len(set(issued)) == len(issued)
    assert issued == sorted(issued)
    until(lambda: holds_the_node_of_its_ids(ids))
    ids.close()
    until(lambda: [it for it in redis.logged(caplog) if it.__dict__["kind"] == "released"])
    by_kind = {record.__dict__["kind"]: record for record in redis.logged(caplog)}
    # On a busy machine, Redis may not answer the first request in time.
    kinds = [kind for kind in by_kind if kind not in ("store_unreachable", "store_reachable")]
    assert kinds[:2] == ["init_always", "acquired"]
    assert {"lost", "store_unreachable", "store_reachable", "released"} < by_kind.keys()
    for kind, record in by_kind.items():
        warnings = ("init_always", "lost", "store_unreachable", "clock_differs", "waiting")
        is_warning = kind in warnings
        assert record.levelno == (logging.WARNING if is_warning else logging.INFO)
        assert record.name == "polyflake"
        assert record.__dict__["node"] is None or record.__dict__["node"] >= 0
        assert record.getMessage()


def test_a_program_ends_where_its_store_is_gone(redis: Redis) -> None:
    code = """
ids = Snowflake(lease=lease)
tell(ids.next_id())
input()
"""
    with program(code, redis.address("ttl=1h")) as ending:
        assert ending.told() > 0
        redis.kill()
        ending.go()
        # Without a handler, only warnings are shown, on standard error.
        (warning,) = ending.end().splitlines()
        assert warning.startswith("init=always is set for redis://")


def test_a_program_whose_log_is_held_up_ends(redis: Redis) -> None:
    """A blocked log prevents neither lease renewals nor the program's exit."""
    code = """
import logging, threading
# No handler: those have a lock that `logging` itself waits for at the end.
class Stuck(logging.Filter):
    def filter(self, record):
        tell(record.kind)
        stuck.set()
        threading.Event().wait()
stuck = threading.Event()
logging.getLogger("polyflake").addFilter(Stuck())
logging.getLogger("polyflake").setLevel(logging.INFO)
ids = Snowflake(lease=lease, max_wait_ms=60_000)
held_until = ids.lease.bound_ms
while not stuck.is_set() or ids.lease.bound_ms <= held_until + 2000:
    time.sleep(0.1)
    ids.next_ids(100)
tell("renewed")
"""
    with program(code, redis.address("ttl=3s&wait=2m")) as ending:
        assert ending.told() == "init_always"
        assert ending.told() == "renewed"
        ending.end()


def test_a_filter_that_raises_does_not_end_the_log(store: str) -> None:
    code = """
import logging
class Fails(logging.Filter):
    def filter(self, record):
        tell(record.kind)
        raise ValueError("not this one")
logging.getLogger("polyflake").addFilter(Fails())
logging.getLogger("polyflake").setLevel(logging.INFO)
Snowflake(lease=lease).close()
"""
    with program(code, store) as ending:
        assert [ending.told(), ending.told()] == ["acquired", "released"]
        assert ending.end().count("ValueError: not this one") == 2


def test_a_lease_does_not_import_logging(store: str) -> None:
    """Logging takes memory, and shows only warnings unless the program has configured it."""
    code = """
import atexit, sys
# Registered before the log's, so it runs after.
atexit.register(lambda: tell("logging" in sys.modules))
Snowflake(lease=lease).close()
"""
    with program(code, store) as ending:
        assert ending.told() is False
        assert ending.end() == ""


@pytest.mark.parametrize("end", ["ids.close()", "del ids", ""])
def test_a_program_may_end_while_a_line_is_logged(store: str, end: str) -> None:
    """No thread enters an interpreter that is shutting down, and no line is lost."""
    code = f"""
import logging
logging.basicConfig(level=logging.INFO)
ids = Snowflake(lease=lease)
{end}
"""
    for _ in range(10):
        with program(code, store) as ending:
            errors = ending.end()
        assert "is leased from" in errors
        if "close" in end:
            assert "is given back" in errors


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux")
def test_no_thread_is_left_after_close(store: str) -> None:
    code = """
import logging, os, threading
logging.basicConfig(level=logging.INFO)
def threads():
    return len(os.listdir("/proc/self/task")), len(threading.enumerate())
before = threads()
for _ in range(10):
    ids = Snowflake(lease=lease)
    during = threads()
    ids.close()
while threads() != before:
    time.sleep(0.01)
tell([before, during])
"""
    with program(code, store) as ending:
        before, during = ending.told()
        assert before == [1, 1]
        assert during[0] > 1
        errors = ending.end()
    assert errors.count("is leased from") == errors.count("is given back") == 10


# Forks -------------------------------------------------------------------------------------------


def test_a_child_leases_its_own(store: str) -> None:
    ids = Snowflake(lease=store)
    first = ids.next_id()

    def child() -> Any:
        inherited = [
            failure(call).split(":")[0]
            for call in (ids.next_id, ids.try_next_id, lambda: ids.lease, lambda: ids.stats)
        ]
        assert repr(ids)
        own = Snowflake(lease=store)
        found = [inherited, ids.node, own.node, own.next_ids(1000)]
        own.close()
        # Neither affects the parent's lease.
        ids.close()
        return found

    inherited, node, own_node, own = in_child(child)  # type: ignore[misc]
    assert inherited == ["forked"] * 4
    assert node == ids.node != own_node
    assert first not in own
    assert ids.next_id() > first
    assert ids.lease is not None
    assert ids.lease.state == "held"
    ids.close()


def leased_node(store: str) -> tuple[int, list[int]]:
    with pytest.raises(ForkedError):
        preloaded[0].next_id()
    with Snowflake(lease=store) as ids:
        issued = ids.next_ids(1000)
        barrier[0].wait()
        return ids.node, issued


preloaded: list[Snowflake] = []
barrier: list[Any] = []


def test_a_preloading_parent_and_its_workers(store: str) -> None:
    """Forks as `gunicorn --preload` does; each worker needs a node while the others hold theirs."""
    fork = multiprocessing.get_context("fork")
    preloaded[:] = [Snowflake(lease=store)]
    barrier[:] = [fork.Barrier(4)]
    issued = preloaded[0].next_ids(1000)
    with fork.Pool(4) as pool:
        answers = pool.map(leased_node, [store] * 4, chunksize=1)
    nodes = {preloaded[0].node, *(node for node, _ in answers)}
    assert len(nodes) == 5
    issued += [id for _, ids in answers for id in ids]
    issued += preloaded[0].next_ids(1000)
    assert len(set(issued)) == 6000
    preloaded[0].close()


def test_forks_amid_renewals(redis: Redis) -> None:
    """A fork may happen while the keeper is holding a lock."""
    forks_amid_renewals(redis.address("ttl=3s&wait=5m" + NODES))


def test_forks_amid_renewals_in_sqlite(store: str) -> None:
    forks_amid_renewals(store.replace("10m", "3s") + "&wait=5m")


def forks_amid_renewals(store: str) -> None:
    ids = Snowflake(lease=store)
    for _ in range(20):
        assert in_child(lambda: repr(ids) != "") is True
        assert in_child(lambda: failure(lambda: opened_and_closed(store))) == ""
        time.sleep(0.05)
    ids.close()


def opened_and_closed(store: str) -> None:
    with Snowflake(lease=store, max_wait_ms=60_000) as own:
        own.next_id()
