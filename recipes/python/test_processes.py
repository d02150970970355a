"""The recipes for programs with several processes: each leases its node and gives it back.

The store has as many nodes as there are processes at once, and a lease lasts longer than a test. So
a process that replaces another gets a node only if the other has given back its own.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx2
import pytest
from conftest import server
from polyflake import Counter, IdGenerator, LeaseUnavailableError, Snowflake
from polyflake_processes import PerProcess
from shop_processes import take

HERE = Path(__file__).parent


class Issued:
    """Collects the processes' answers."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.nodes: dict[int, int] = {}

    def add(self, answer: dict[str, Any]) -> None:
        self.ids += map(int, answer["ids"])
        # A process keeps its node.
        assert self.nodes.setdefault(answer["process"], answer["node"]) == answer["node"]

    def check(self, nodes: set[int]) -> None:
        assert set(self.nodes.values()) == nodes
        assert len(set(self.ids)) == len(self.ids)


def leases(store: str, nodes: int) -> str:
    return f"{store}?ttl=10m&wait=1m&nodes=0-{nodes - 1}"


def sqlite(folder: Path, nodes: int) -> str:
    return leases(f"sqlite://{folder}/leases.db", nodes)


def check_that_all_are_free(store: str, nodes: int) -> None:
    for node in range(nodes):
        with Snowflake(lease=store.replace("wait=1m", "wait=0s"), node=node) as ids:
            assert ids.node == node


@pytest.fixture(autouse=True)
def meetings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEETINGS", str(tmp_path / "meetings"))


# For multiprocessing: `spawn` reads this file again in each child.
ids = PerProcess(lambda: Snowflake(lease=os.environ["LEASES"]))


def task(number: int) -> dict[str, Any]:
    return take(ids, str(number // 2))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent has taken IDs too."""
    store = sqlite(tmp_path, 3)
    monkeypatch.setenv("LEASES", store)
    issued = Issued()
    issued.ids += ids.next_ids(10)
    issued.nodes[os.getpid()] = ids.here.node
    # Each process exits after three tasks.
    with multiprocessing.get_context(method).Pool(2, maxtasksperchild=3) as pool:
        for answer in pool.imap_unordered(task, range(18), chunksize=1):
            issued.add(answer)
        pool.close()
        pool.join()
    issued.ids += ids.next_ids(10)
    ids.close()
    assert len(issued.nodes) == 7
    issued.check({0, 1, 2})
    check_that_all_are_free(store, 3)


def test_threads_that_open_at_once_share_a_lease(tmp_path: Path) -> None:
    store = sqlite(tmp_path, 1)
    ids = PerProcess(lambda: Snowflake(lease=store))
    barrier = Barrier(8)

    def take_many(_number: int) -> list[int]:
        barrier.wait()
        return ids.next_ids(1000)

    with ThreadPoolExecutor(8) as threads:
        issued = [id_ for taken in threads.map(take_many, range(8)) for id_ in taken]
    assert len(set(issued)) == 8000
    ids.close()
    check_that_all_are_free(store, 1)
    # A call after `close` opens a new generator.
    assert ids.next_id() > max(issued)
    ids.close()


def test_a_process_that_opens_forgets_those_of_its_ancestors(tmp_path: Path) -> None:
    """A descendant with a dead ancestor's PID would otherwise find the ancestor's generator."""
    store = sqlite(tmp_path, 2)
    ids = PerProcess(lambda: Snowflake(lease=store))
    before, held = ids.next_id(), ids.here.node
    child = os.fork()
    if child == 0:
        status = 99
        try:
            node = ids.here.node
            if set(ids._opened) == {os.getpid()}:
                status = node
            ids.close()
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1 - held
    # The parent's lease is unchanged.
    with pytest.raises(LeaseUnavailableError):
        Snowflake(lease=store.replace("wait=1m", "wait=0s"), node=held)
    assert ids.here.node == held
    assert ids.next_id() > before
    ids.close()
    check_that_all_are_free(store, 2)


def test_it_is_an_id_generator(tmp_path: Path) -> None:
    ids = PerProcess(lambda: Counter("orders", store=f"sqlite://{tmp_path}/store.db"))
    assert isinstance(ids, IdGenerator)
    assert [ids.next_id(), *ids.next_ids(2), next(iter(ids))] == [1, 2, 3, 4]
    ids.close()


@contextmanager
def running(log: Path, *command: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server from Python's environment until the block ends, then stops it with SIGTERM."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), **environment}
    program = str(Path(sys.executable).with_name(command[0]))
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [program, *command[1:]], env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()


@contextmanager
def client(process: subprocess.Popen[bytes], socket: Path) -> Iterator[httpx2.Client]:
    while not socket.exists():
        assert process.poll() is None
        time.sleep(0.05)
    with httpx2.Client(
        transport=httpx2.HTTPTransport(uds=str(socket), retries=10),
        base_url="http://shop",
        headers={"Connection": "close"},
        timeout=120,
    ) as made:
        yield made


def replace_workers(http: httpx2.Client, issued: Issued, end: signal.Signals) -> None:
    """Stops four workers, one after another, each as soon as both workers have answered."""
    meetings = itertools.count()
    ended: set[int] = set()

    def meet(path: str) -> dict[str, Any]:
        answer: dict[str, Any] = http.post(path).raise_for_status().json()
        return answer

    with ThreadPoolExecutor(2) as threads:
        for number in range(2, 7):
            while len(issued.nodes) < number:
                for answer in threads.map(meet, [f"/meetings/{next(meetings)}"] * 2):
                    issued.add(answer)
            if number < 6:
                worker = min(issued.nodes.keys() - ended)
                ended.add(worker)
                os.kill(worker, end)


def gunicorn(socket: Path, *options: str) -> list[str]:
    return [
        "gunicorn", "shop_gunicorn:app", "--config", "python:shop_gunicorn",
        "--bind", f"unix:{socket}", "--no-control-socket", *options,
    ]  # fmt: skip


def test_gunicorn(tmp_path: Path) -> None:
    """The parent, which has loaded the application, has a node too."""
    store, log, socket = sqlite(tmp_path, 3), tmp_path / "log", tmp_path / "socket"
    command = gunicorn(socket, "--preload", "--workers", "2")
    issued = Issued()
    with (
        running(log, *command, LEASES=store, FIRST="1") as process,
        client(process, socket) as http,
    ):
        replace_workers(http, issued, signal.SIGTERM)
    text = log.read_text()
    for pid, node in issued.nodes.items():
        assert f"Worker {pid} has node {node}\n" in text
    [first] = re.findall(r"first (\d+) (\d+)\n", text)
    issued.add({"process": process.pid, "node": int(first[0]), "ids": [first[1]]})
    issued.check({0, 1, 2})
    assert process.returncode == 0
    check_that_all_are_free(store, 3)


def test_gunicorn_goes_on_without_a_store(tmp_path: Path) -> None:
    folder, log, socket = tmp_path / "later", tmp_path / "log", tmp_path / "socket"
    store = sqlite(folder, 1).replace("wait=1m", "wait=0s")
    with (
        running(log, *gunicorn(socket), LEASES=store) as process,
        client(process, socket) as http,
    ):
        assert http.get("/orders/1").json() == {"id": 1}
        assert http.post("/orders").status_code == 500
        folder.mkdir()
        assert http.post("/orders").status_code == 200
    assert "has no node yet" in log.read_text()
    assert process.returncode == 0
    check_that_all_are_free(store, 1)


@pytest.mark.parametrize("loaded", ["before", "after"])
def test_uwsgi(loaded: str, tmp_path: Path) -> None:
    """The application is loaded before the fork, or after it."""
    store, log, socket = sqlite(tmp_path, 2), tmp_path / "log", tmp_path / "socket"
    command = [
        "uwsgi", "--module", "shop_uwsgi:app", "--master", "--processes", "2",
        "--hook-master-start", "unix_signal:15 gracefully_kill_them_all",
        "--http-socket", str(socket), "--virtualenv", sys.prefix,
    ]  # fmt: skip
    if loaded == "after":
        command.append("--lazy-apps")
    issued = Issued()
    with running(log, *command, LEASES=store) as process, client(process, socket) as http:
        replace_workers(http, issued, signal.SIGHUP)
    issued.check({0, 1})
    assert ("worker 1 has node" in log.read_text()) == (loaded == "before")
    check_that_all_are_free(store, 2)


def test_celery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    redis = server("redis")
    store = leases(redis.geturl(), 2) + "&init=always"
    environment = {"LEASES": store, "BROKER": redis._replace(path="/1").geturl()}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    from shop_celery import app, meet

    command = [
        "celery", "--app", "shop_celery", "worker", "--concurrency", "2",
        "--max-tasks-per-child", "5",
    ]  # fmt: skip
    issued = Issued()
    with running(tmp_path / "log", *command) as process:
        for meeting in itertools.count():
            for result in [meet.delay(str(meeting)) for _ in range(2)]:
                issued.add(result.get(timeout=200))
            if len(issued.nodes) == 6:
                break
    app.close()
    issued.check({0, 1})
    assert process.returncode == 0
    check_that_all_are_free(store, 2)
