"""Compares `polyflake serve` with redis-server's own INCR, and with a constant sent over HTTP.

    python benchmarks/service/bench.py servers PROGRAM CONSTANT

This starts the servers, prints their processes and addresses, and stops them when its input ends.
PROGRAM is the command `polyflake` and CONSTANT is the program in this folder, both built for
release. With the servers in its environment, ../harness.py tells it what to measure. The clients
are Debian's redis-benchmark and wrk.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

# How long redis-benchmark and wrk send requests in a round.
ASK_S = 1.2
WRK_S = 2
HTTP_CONNECTIONS = 50
# Room for more IDs a second than are requested here: the default layout has 4,096 per millisecond.
ROOM = "timestamp:40|worker:4|sequence:20@1735689600000/1ms"
SECONDS, CPU = "requests per second", "requests per CPU second"
LONGEST_S = 120


class Failed(Exception):
    """A program that misbehaves; the message says how."""


class Run(NamedTuple):
    """The result of one run of a client."""

    requests: int
    per_second: float


# The clients -------------------------------------------------------------------------------------


def of_redis_benchmark(text: str) -> Run:
    requests = re.search(r"(\d+) requests completed", text)
    rate = re.search(r"throughput summary: ([\d.]+) requests per second", text)
    if requests is None or rate is None:
        raise Failed(f"redis-benchmark does not print its figures: {text[-300:]}")
    return Run(int(requests[1]), float(rate[1]))


def of_wrk(text: str) -> Run:
    """The result in the line printed by done.lua."""
    said = json.loads(text.splitlines()[-1])
    if any(said["errors"].values()):
        raise Failed(f"wrk: {said['errors']}")
    return Run(said["requests"], said["requests"] / (said["duration_us"] / 1e6))


def output(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise Failed(str(problem)) from None
    if done.returncode != 0:
        raise Failed(f"{command[0]}: exit status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def redis_benchmark(port: str, name: str, connections: int, pipeline: int, count: int) -> Run:
    options = {"-p": port, "-c": connections, "-P": pipeline, "-n": count}
    words = [str(word) for option in options.items() for word in option]
    return of_redis_benchmark(output("redis-benchmark", *words, "INCR", name))


def wrk(url: str) -> Run:
    options = ["-t", "1", "-c", str(HTTP_CONNECTIONS), "-d", f"{WRK_S}s"]
    script = Path(__file__).with_name("done.lua")
    return of_wrk(output("wrk", *options, "-s", str(script), url))


# The servers -------------------------------------------------------------------------------------

Server = subprocess.Popen[str]


def start(servers: list[Server], *command: str | Path, **pipes: Any) -> Server:
    words = [str(word) for word in command]
    servers.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True, **pipes))
    return servers[-1]


def start_redis(folder: Path, servers: list[Server]) -> tuple[Server, str]:
    """Starts Redis in its fastest configuration, which stores nothing on disk."""
    for port in map(str, range(21_379, 21_479)):
        options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        server = start(servers, "redis-server", *options, stdout=subprocess.DEVNULL)
        for _ in range(200):
            time.sleep(0.05)
            if server.poll() is not None:
                break  # The port is taken.
            try:
                info = output("redis-cli", "-p", port, "info", "server")
            except Failed:
                continue
            if f"process_id:{server.pid}\n" in info.replace("\r", ""):
                return server, port
    raise Failed("redis-server does not start")


def start_service(program: str, folder: Path, servers: list[Server]) -> tuple[Server, str, str]:
    """The service's store is a file, from which it fetches a counter segment now and then."""
    options = "--log json --admin none --http 127.0.0.1:0 --resp 127.0.0.1:0 --counter orders"
    store = f"sqlite://{folder}/service.db?init=always"
    command = [program, "serve", *options.split(), "--layout", ROOM, "--lease", store]
    server = start(servers, *command, stderr=subprocess.PIPE)
    assert server.stderr is not None
    addresses: dict[str, str] = {}
    said = ""
    for line in server.stderr:
        said = line
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("message") == "listening":
            addresses[message["protocol"]] = message["address"]
        if message.get("message") == "ready":
            return server, addresses["http"], addresses["resp"].rpartition(":")[2]
    raise Failed(f"{program} does not start: {said.strip()}")


def serve(program: str, constant: str, folder: Path, servers: list[Server]) -> None:
    """Prints the servers' processes, and where they listen."""
    redis, port = start_redis(folder, servers)
    print(f"REDIS\t{redis.pid} {port}")
    service, http, resp = start_service(program, folder, servers)
    print(f"SERVICE_RESP\t{service.pid} {resp}\nSERVICE_HTTP\t{service.pid} {http}")
    for n in (1, 1_000):
        body = folder / f"body-{n}"
        direct = build_opener(ProxyHandler({}))
        with direct.open(f"http://{http}{path('snowflake', n)}", timeout=10) as answer:
            body.write_bytes(answer.read())
        beside = start(servers, constant, "127.0.0.1:0", body, stdout=subprocess.PIPE)
        assert beside.stdout is not None
        print(f"CONSTANT_{n}\t{beside.pid} {beside.stdout.readline().strip()}")
    print(flush=True)
    sys.stdin.read()


def path(key: str, n: int) -> str:
    return f"/v1/ids/{key}" + (f"?n={n}" if n > 1 else "")


def cpu_s(process: str) -> float:
    """The processor time used by the process."""
    stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


# What is measured --------------------------------------------------------------------------------


def enough(ask: Callable[[int], Run], first: int) -> Callable[[], Run]:
    """Sends enough requests to fill a round, as estimated from a short first run."""
    ask(first)
    count = max(first, int(ask(first).per_second * ASK_S))
    return lambda: ask(count)


# By table and subject: the server's variable, and a function from its address to a client.
Rows = dict[tuple[str, str], tuple[str, Callable[[str], Callable[[], Run]]]]


def rows() -> Rows:
    found: Rows = {}
    for connections in (1, 50):
        for pipeline in (1, 16):
            table = f"RESP, {connections} connection" + "s" * (connections > 1)
            table += f", pipeline of {pipeline}" if pipeline > 1 else ""
            first = 2_000 * connections if pipeline > 1 else 10_000

            def client(
                port: str,
                key: str,
                connections: int = connections,
                pipeline: int = pipeline,
                first: int = first,
            ) -> Callable[[], Run]:
                return enough(
                    lambda count: redis_benchmark(port, key, connections, pipeline, count), first
                )

            for subject, server, key in (
                ("polyflake snowflake", "SERVICE_RESP", "snowflake"),
                ("polyflake counter", "SERVICE_RESP", "orders"),
                ("redis-server INCR", "REDIS", "orders"),
            ):
                found[table, subject] = server, lambda port, key=key, it=client: it(port, key)
    for title, n in (("one ID", 1), ("1,000 IDs", 1_000)):
        table = f"HTTP, {title}, {HTTP_CONNECTIONS} connections"
        for subject, server, key in (
            ("polyflake snowflake", "SERVICE_HTTP", "snowflake"),
            ("polyflake counter", "SERVICE_HTTP", "orders"),
            ("a constant", f"CONSTANT_{n}", "snowflake"),
        ):
            url = path(key, n)
            found[table, subject] = (
                server,
                lambda where, url=url: lambda: wrk(f"http://{where}{url}"),
            )
    return found


def figures(process: str, run: Callable[[], Run]) -> tuple[float, float]:
    """Requests per second, and per second of the server's processor time."""
    before = cpu_s(process)
    done = run()
    return done.per_second, done.requests / max(cpu_s(process) - before, 0.01)


def main() -> None:
    match sys.argv[1:]:
        case ["servers", program, constant]:
            memory = Path("/dev/shm")
            servers: list[Server] = []
            with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
                try:
                    serve(program, constant, Path(folder), servers)
                finally:
                    for server in servers:
                        server.terminate()
                    for server in servers:
                        server.wait(20)
        case [table, subject]:
            variable, client = rows()[table.partition("|")[0], subject]
            process, address = os.environ[variable].split()
            run = None
            for line in sys.stdin:
                # Not before its turn: clients that size their rounds at the same time disturb each
                # other.
                run = run or client(address)
                # The server makes IDs, but they are not checked here.
                said = (0, 1) if line.startswith("ids ") else figures(process, run)
                print(*said[: 2 if said == (0, 1) else table.count("|") + 1], flush=True)
        case _:
            version = re.search(r"\d+\.\d+\.\d+", output("redis-server", "--version"))
            for table, subject in rows():
                # If a response has many IDs, they account for most of a server's work.
                both = "" if table.startswith("HTTP, 1,000") else f"|{table}"
                units = f"unit={SECONDS}" + (f"|{CPU}" if both else "")
                theirs = f"\tversion={version[0]}" if version and "redis" in subject else ""
                print(f"{table}{both}\t{subject}\t{units}{theirs}")


if __name__ == "__main__":
    main()
