"""Two servers behind haproxy, configured as in deploy/, on one Redis.

Each server and the store are restarted, and a server is killed, while clients keep sending
requests. The program prints how many of their requests failed in each phase, and why. No ID may be
issued twice.
"""

from __future__ import annotations

import csv
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

TOKEN = "not-for-everybody"
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
# How long to wait for a condition to become true, in seconds.
LONGEST = 180


def free_port(*hosts: str) -> int:
    """Returns a port that is free on all hosts."""
    while True:
        with socket.create_server((hosts[0], 0)) as first:
            port = int(first.getsockname()[1])
        try:
            for host in hosts[1:]:
                socket.create_server((host, port)).close()
        except OSError:
            continue
        return port


def eventually(what: str, is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + LONGEST
    while not is_so():
        assert time.monotonic() < until, f"it does not become so: {what}"
        time.sleep(0.05)


def get(address: tuple[str, int], path: str) -> int:
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


class Fleet:
    """A store, two servers and a balancer."""

    hosts = ("127.0.0.1", "127.0.0.2")

    def __init__(self, folder: Path, polyflake: str) -> None:
        self.folder, self.polyflake = folder, polyflake
        self.http, self.admin = free_port(*self.hosts), free_port(*self.hosts)
        self.store_port, self.front = free_port("127.0.0.1"), ("127.0.0.1", free_port("127.0.0.1"))
        self.store = self.start_store()
        # The store has never been used before, which is true only at the first start.
        self.servers = [self.start_server(host, "?ttl=9s&init=always") for host in self.hosts]
        for host in self.hosts:
            self.wait_ready(host)
        text = (DEPLOY / "haproxy.cfg").read_text()
        for there, here in (
            ("10.0.0.7:8080", f"{self.hosts[0]}:{self.http}"),
            ("10.0.0.8:8080", f"{self.hosts[1]}:{self.http}"),
            ("port 9080", f"port {self.admin}"),
            ("bind :8000", "bind {}:{}".format(*self.front)),
        ):
            assert there in text, there
            text = text.replace(there, here)
        config, self.stats = folder / "haproxy.cfg", folder / "haproxy.sock"
        config.write_text(f"global\n    stats socket {self.stats}\n{text}")
        self.balancer = self.start("haproxy", "haproxy", "-db", "-f", str(config))
        eventually("haproxy answers", lambda: get(self.front, "/healthz") == 200)
        eventually("haproxy has found both servers ready", self.are_both_up)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdout=log, stderr=log, env={**os.environ, "POLYFLAKE_TOKEN": TOKEN}
            )

    def start_store(self) -> subprocess.Popen[bytes]:
        port = str(self.store_port)
        command = [
            "redis-server",
            "--port",
            port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
        ]
        store = self.start("redis", *command, "--dir", str(self.folder))

        def answers() -> bool:
            asked = subprocess.run(
                ["redis-cli", "-p", port, "ping"], capture_output=True, check=False
            )
            return asked.stdout == b"PONG\n"

        eventually("redis answers", answers)
        return store

    def start_server(self, host: str, rest: str = "?ttl=9s") -> subprocess.Popen[bytes]:
        lease = f"redis://127.0.0.1:{self.store_port}/0{rest}"
        resp, admin = f"{host}:0", f"{host}:{self.admin}"
        command = [
            self.polyflake,
            "serve",
            "--lease",
            lease,
            "--counter",
            "orders",
            "--sequences",
            "inbox",
        ]
        return self.start(
            host, *command, "--http", f"{host}:{self.http}", "--resp", resp, "--admin", admin
        )

    def wait_ready(self, host: str) -> None:
        eventually(f"{host} is ready", lambda: get((host, self.admin), "/readyz") == 200)

    def are_both_up(self) -> bool:
        """Whether haproxy sends requests to both servers."""
        with socket.socket(socket.AF_UNIX) as stats:
            stats.connect(str(self.stats))
            stats.sendall(b"show stat\n")
            rows = csv.DictReader(stats.makefile(encoding="ascii"))
            states = [
                row["status"]
                for row in rows
                if row["# pxname"] == "all" and row["svname"] in ("a", "b")
            ]
        return states == ["UP", "UP"]

    def owner(self) -> int:
        """Returns the index of the server that has the sequences."""
        ready: list[bool] = []

        def has_one() -> bool:
            ready[:] = [get((host, self.admin), "/readyz/inbox") == 200 for host in self.hosts]
            return any(ready)

        eventually("a server has the sequences", has_one)
        return ready.index(True)

    def restart(self, at: int, how: signal.Signals) -> None:
        self.servers[at].send_signal(how)
        status = self.servers[at].wait(LONGEST)
        assert status == (-signal.SIGKILL if how == signal.SIGKILL else 0), status
        self.servers[at] = self.start_server(self.hosts[at])
        self.wait_ready(self.hosts[at])
        # haproxy checks once a second. If the other server stopped before the next check, haproxy
        # would have no server left.
        eventually("haproxy has found both servers ready", self.are_both_up)

    def end(self) -> None:
        for each in (self.balancer, *self.servers, self.store):
            each.kill()
            each.wait()


class Clients:
    """Threads that keep sending requests, and record what they receive."""

    paths = (
        "/v1/ids/snowflake?n=3",
        "/v1/ids/orders?n=3",
        "/v1/ids/inbox?key=alice",
        "/v1/ids/inbox?key=bob",
    )

    def __init__(self, front: tuple[str, int]) -> None:
        self.front, self.phase, self.ended = front, "", False
        self.lock = threading.Lock()
        self.given: dict[str, list[int]] = {path: [] for path in self.paths}
        self.asked: Counter[tuple[str, str]] = Counter()
        self.failed: Counter[tuple[str, str, str]] = Counter()
        self.longest: dict[tuple[str, str], float] = {}
        self.threads = [threading.Thread(target=self.ask, args=(path,)) for path in self.paths * 2]
        for thread in self.threads:
            thread.start()

    def ask(self, path: str) -> None:
        connection = http.client.HTTPConnection(*self.front, timeout=60)
        name = path.split("?")[0].split("/")[-1]
        while not self.ended:
            phase, start, why, ids = self.phase, time.monotonic(), None, []
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
                answer = connection.getresponse()
                body = answer.read()
                if answer.status == 200:
                    ids = [int(text) for text in json.loads(body)["ids"]]
                else:
                    said = re.search(rb'"error":"(\w+)","message":"([^"]*)', body)
                    text = b" ".join(said.groups()).decode() if said else "haproxy"
                    why = f"{answer.status} {text}"
            except (OSError, http.client.HTTPException) as error:
                why = type(error).__name__
                connection.close()
            took = time.monotonic() - start
            with self.lock:
                self.given[path] += ids
                self.asked[phase, name] += 1
                if why:
                    self.failed[phase, name, why] += 1
                self.longest[phase, name] = max(took, self.longest.get((phase, name), 0))
            time.sleep(0.005)

    def more(self) -> None:
        """Waits until each path has returned some more IDs."""
        with self.lock:
            before = {path: len(ids) for path, ids in self.given.items()}
        eventually(
            "each gives more",
            lambda: all(len(ids) > before[path] + 100 for path, ids in self.given.items()),
        )

    def end(self) -> None:
        self.ended = True
        for thread in self.threads:
            thread.join()

    def failures(self, phase: str, *names: str) -> int:
        return sum(
            count for (of, name, _), count in self.failed.items() if of == phase and name in names
        )


def main() -> None:
    counts = {"passed": 0, "failed": 0}

    def check(what: str, is_so: bool) -> None:
        counts["passed" if is_so else "failed"] += 1
        if not is_so:
            print(f"FAILED: {what}")

    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), os.environ["POLYFLAKE"])
        clients = Clients(fleet.front)
        phases = (
            "steady",
            "rolling restart",
            "store restart",
            "restart after it",
            "kill",
            "afterwards",
        )
        try:
            for phase in phases:
                clients.phase = phase
                clients.more()
                match phase:
                    case "rolling restart":
                        for at in (0, 1):
                            fleet.restart(at, signal.SIGTERM)
                            clients.more()
                    case "store restart":
                        fleet.store.terminate()
                        fleet.store.wait(LONGEST)
                        fleet.store = fleet.start_store()
                        for host in fleet.hosts:
                            fleet.wait_ready(host)
                        eventually("haproxy has found both servers ready", fleet.are_both_up)
                    case "restart after it":
                        # A new lease waits for a TTL, since the store may have lost earlier leases.
                        fleet.restart(1 - fleet.owner(), signal.SIGTERM)
                    case "kill":
                        fleet.restart(fleet.owner(), signal.SIGKILL)
                clients.more()
        finally:
            clients.end()
            fleet.end()
            logs = {log.name: log.read_text() for log in sorted(Path(folder).glob("*.log"))}
    names = ("snowflake", "orders", "inbox")
    for phase, name in itertools.product(phases, names):
        reasons = {
            why: count
            for (of, it, why), count in clients.failed.items()
            if (of, it) == (phase, name)
        }
        asked, longest = clients.asked[phase, name], clients.longest.get((phase, name), 0)
        print(
            f"{phase}, {name}: {asked} requests, the longest {longest:.2f} s; "
            f"failed: {reasons or 'none'}"
        )
    for path, ids in clients.given.items():
        check(
            f"{path}: {len(ids) - len(set(ids))} of {len(ids)} came twice",
            len(ids) == len(set(ids)),
        )
    for phase in ("steady", "rolling restart", "restart after it", "afterwards"):
        check(f"{phase}: requests failed", clients.failures(phase, *names) == 0)
    # Each thread has one request in flight.
    for name in names[:2]:
        check(f"kill: {name}: requests failed", clients.failures("kill", name) <= 2)
    # The sequences' owner was killed, and no server can issue their numbers until its lease has
    # expired.
    cut = sum(
        count
        for (of, name, why), count in clients.failed.items()
        if (of, name) == ("kill", "inbox") and not why.startswith("503 ")
    )
    check("kill: inbox: requests failed that were not in flight", cut <= 4)
    if counts["failed"]:
        for name, log in logs.items():
            print(f"--- {name}\n{log}")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    sys.exit(counts["failed"] > 0)


main()
