"""Measures `polyflake serve` beside redis-server's own INCR, and beside a constant over HTTP.

    python benchmarks/service/bench.py PROGRAM CONSTANT [--rounds N]

PROGRAM is the command `polyflake` and CONSTANT the program of this folder, both built for release.
The clients are Debian's redis-benchmark and wrk. Prints JSON Lines, as the others do.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

SUITE = Path(__file__).resolve().parent
# How long redis-benchmark and wrk ask in a round.
ASK_S = 1.2
WRK_S = 2
HTTP_CONNECTIONS = 50
# More IDs a second than anyone asks for here: the default layout has 4,096 in a millisecond.
ROOM = "timestamp:40|worker:4|sequence:20@1735689600000/1ms"
SECONDS, CPU = "requests per second", "requests per CPU second"
LONGEST_S = 120


class Failed(Exception):
    """A program that does not do what it should; the text says what."""


class Run(NamedTuple):
    """What one run of a client came to."""

    requests: int
    per_second: float
    # In µs.
    percentiles: dict[str, float]


# The clients -------------------------------------------------------------------------------------


def of_redis_benchmark(text: str) -> Run:
    """Of what redis-benchmark prints; its CSV lacks the last percentile."""

    def find(pattern: str) -> str:
        found = re.search(pattern, text)
        if found is None:
            raise Failed(f"redis-benchmark does not print {pattern}: {text[-300:]}")
        return found[1]

    requests = int(find(r"(\d+) requests completed"))
    # Of the steps that it prints, the first with that many of them.
    steps = re.findall(r"% <= ([\d.]+) milliseconds \(cumulative count (\d+)\)", text)
    most = next((float(ms) for ms, count in steps if int(count) >= 0.999 * requests), None)
    if most is None:
        raise Failed(f"redis-benchmark prints no distribution: {text[-300:]}")
    summary = r"avg\s+min\s+p50\s+p95\s+p99\s+max\s+(?:[\d.]+\s+){%d}([\d.]+)"
    in_ms = {"p50": float(find(summary % 2)), "p99": float(find(summary % 4)), "p99.9": most}
    return Run(
        requests,
        float(find(r"throughput summary: ([\d.]+) requests per second")),
        {name: round(ms * 1000, 3) for name, ms in in_ms.items()},
    )


def of_wrk(text: str) -> Run:
    """Of the line that done.lua prints."""
    said = json.loads(text.splitlines()[-1])
    if any(said["errors"].values()):
        raise Failed(f"wrk: {said['errors']}")
    per_second = said["requests"] / (said["duration_us"] / 1e6)
    return Run(said["requests"], per_second, said["percentiles_us"])


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


def redis_benchmark(port: int, name: str, connections: int, pipeline: int, count: int) -> Run:
    options = {"-p": port, "-c": connections, "-P": pipeline, "-n": count, "--precision": 3}
    words = [str(word) for option in options.items() for word in option]
    return of_redis_benchmark(output("redis-benchmark", *words, "INCR", name))


def wrk(url: str) -> Run:
    options = ["-t", "1", "-c", str(HTTP_CONNECTIONS), "-d", f"{WRK_S}s"]
    return of_wrk(output("wrk", *options, "-s", str(SUITE / "done.lua"), url))


# The servers -------------------------------------------------------------------------------------


class Server:
    """A process that ends with this one."""

    def __init__(self, *command: str | Path, **pipes: Any) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, text=True, **pipes
        )

    def cpu_s(self) -> float:
        """The processor time it has taken."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start_redis(folder: Path, servers: list[Server]) -> tuple[Server, int]:
    """As fast as it can be: it keeps nothing."""
    for port in range(21_379, 21_479):
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        server = Server("redis-server", *options, stdout=subprocess.DEVNULL)
        servers.append(server)
        for _ in range(200):
            time.sleep(0.05)
            if server.process.poll() is not None:
                break  # Somebody has the port.
            try:
                info = output("redis-cli", "-p", str(port), "info", "server")
            except Failed:
                continue
            if f"process_id:{server.process.pid}\n" in info.replace("\r", ""):
                return server, port
    raise Failed("redis-server does not start")


def start_service(program: Path, folder: Path, servers: list[Server]) -> tuple[Server, str, int]:
    """Its own store is a file: it is asked for a segment of the counter now and then."""
    server = Server(
        *(
            program,
            "serve",
            "--log",
            "json",
            "--admin",
            "none",
            "--http",
            "127.0.0.1:0",
            "--resp",
            "127.0.0.1:0",
        ),
        *("--layout", ROOM, "--lease", f"sqlite://{folder}/service.db?init=always"),
        *("--counter", "orders"),
        stderr=subprocess.PIPE,
    )
    servers.append(server)
    log = server.process.stderr
    assert log is not None
    addresses: dict[str, str] = {}
    said = ""
    for line in log:
        said = line
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("message") == "listening":
            addresses[message["protocol"]] = message["address"]
        if message.get("message") == "ready":
            port = int(addresses["resp"].rpartition(":")[2])
            return server, addresses["http"], port
    raise Failed(f"{program.name} does not start: {said.strip()}")


def start_constant(program: Path, body: Path, servers: list[Server]) -> tuple[Server, str]:
    server = Server(program, "127.0.0.1:0", body, stdout=subprocess.PIPE)
    servers.append(server)
    assert server.process.stdout is not None
    address = server.process.stdout.readline().strip()
    if not address:
        raise Failed(f"{program.name} does not start")
    return server, address


# What is measured --------------------------------------------------------------------------------


@dataclass
class Subject:
    """A row of a table, and what measures it."""

    table: str
    name: str
    version: str  # empty if ours
    server: Server
    run: Callable[[], Run]
    is_one_id: bool = True
    per_second: list[float] = field(default_factory=list)
    per_cpu: list[float] = field(default_factory=list)
    percentiles: dict[str, list[float]] = field(default_factory=dict)

    def measure(self) -> None:
        before = self.server.cpu_s()
        run = self.run()
        spent = self.server.cpu_s() - before
        self.per_second.append(run.per_second)
        if spent > 0:
            self.per_cpu.append(run.requests / spent)
        for name, value in run.percentiles.items():
            self.percentiles.setdefault(name, []).append(value)

    def records(self) -> list[dict[str, Any]]:
        rate = self.record(SECONDS, self.per_second) | {"percentiles_us": self.percentiles}
        if not self.is_one_id or not self.per_cpu:
            return [rate]
        return [rate, self.record(CPU, self.per_cpu)]

    def record(self, unit: str, rounds: list[float]) -> dict[str, Any]:
        record = {"kind": "result", "language": "Service", "table": self.table}
        record |= {"subject": self.name, "unit": unit}
        record |= {"version": self.version} if self.version else {}
        return record | {"rounds": [round(value, 1) for value in rounds]}


def enough(ask: Callable[[int], Run], first: int) -> Callable[[], Run]:
    """Asks as often as fills a round, as a short first run tells."""
    ask(first)
    count = max(first, int(ask(first).per_second * ASK_S))
    return lambda: ask(count)


def version_of(*command: str | Path) -> str:
    found = re.search(r"\d+\.\d+\.\d+", output(*map(str, command)))
    return found[0] if found else ""


def subjects(
    program: Path, constant: Path, folder: Path, servers: list[Server]
) -> list[list[Subject]]:
    """The subjects of each table."""
    redis, redis_port = start_redis(folder, servers)
    service, http, resp_port = start_service(program, folder, servers)
    theirs = version_of("redis-server", "--version")
    tables = []
    for connections in (1, 50):
        for pipeline in (1, 16):
            many = "1 connection" if connections == 1 else f"{connections} connections"
            table = f"RESP, {many}" + (f", pipeline of {pipeline}" if pipeline > 1 else "")
            rows = []
            for name, version, server, port, key in (
                ("polyflake snowflake", "", service, resp_port, "snowflake"),
                ("polyflake counter", "", service, resp_port, "orders"),
                ("redis-server INCR", theirs, redis, redis_port, "orders"),
            ):

                def ask(
                    count: int,
                    port: int = port,
                    key: str = key,
                    connections: int = connections,
                    pipeline: int = pipeline,
                ) -> Run:
                    return redis_benchmark(port, key, connections, pipeline, count)

                run = enough(ask, 2_000 * connections if pipeline > 1 else 10_000)
                rows.append(Subject(table, name, version, server, run))
            tables.append(rows)
    for title, n in (("one ID", 1), ("1,000 IDs", 1_000)):
        table = f"HTTP, {title}, {HTTP_CONNECTIONS} connections"
        path = "/v1/ids/{}" + (f"?n={n}" if n > 1 else "")
        body = folder / f"body-{n}"
        direct = build_opener(ProxyHandler({}))
        with direct.open(f"http://{http}{path.format('snowflake')}", timeout=10) as answer:
            body.write_bytes(answer.read())
        beside, address = start_constant(constant, body, servers)
        rows = []
        for name, server, where, key in (
            ("polyflake snowflake", service, http, "snowflake"),
            ("polyflake counter", service, http, "orders"),
            ("a constant", beside, address, "snowflake"),
        ):
            url = f"http://{where}{path.format(key)}"
            rows.append(Subject(table, name, "", server, lambda url=url: wrk(url), n == 1))
        tables.append(rows)
    return tables


def main() -> int:
    parser = argparse.ArgumentParser(description="Measures polyflake serve.")
    parser.add_argument("program", type=Path, help="the command polyflake")
    parser.add_argument("constant", type=Path, help="the program of this folder")
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    servers: list[Server] = []
    memory = Path("/dev/shm")
    try:
        with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
            try:
                tables = subjects(given.program, given.constant, Path(folder), servers)
                for n in range(given.rounds):
                    print(f"Service: round {n + 1} of {given.rounds}", file=sys.stderr, flush=True)
                    for rows in tables:
                        # Nobody is always the first.
                        for at in range(len(rows)):
                            rows[(at + n) % len(rows)].measure()
            finally:
                for server in servers:
                    server.end()
    except Failed as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    records = [record for rows in tables for subject in rows for record in subject.records()]
    for record in sorted(records, key=lambda record: record["unit"] == CPU):
        print(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
