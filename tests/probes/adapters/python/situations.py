"""The situations of the duplicate probes, for any generator that Python can call.

An adapter passes `run` a function that builds a generator: a callable that returns one ID.
docs/probes.md has a complete example.
"""

from __future__ import annotations

import importlib.util
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, socket
from typing import Any, NamedTuple, NoReturn

HERE = Path(__file__).resolve().parent
DONE, REFUSED, UNSUPPORTED = 0, 3, 4
IDS_PER_REQUEST = 500
# Mistakes in an adapter, rather than errors from a generator.
MISTAKES = (AttributeError, ImportError, NameError, TypeError)


class Probe(NamedTuple):
    """The runner's request, and the options for the generator."""

    situation: str
    n: int = 1
    parts: int = 1
    behind_ms: int = 0
    tick_ms: int = 1
    gate: int = -1
    options: dict[str, str] = {}  # noqa: RUF012 - never changed


NextId = Callable[[], int]
Build = Callable[[Probe], NextId]


def parse(arguments: Sequence[str]) -> Probe:
    given = dict(argument.split("=", 1) for argument in arguments[1:])
    own = {name: int(given.pop(name)) for name in Probe._fields[1:-1] if name in given}
    return Probe(arguments[0], **own, options=given)


def unsupported(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(UNSUPPORTED)


def name_of(error: Exception) -> str:
    return str(getattr(error, "name", None) or type(error).__name__)


def say_refused(name: str) -> None:
    os.write(2, f"refused: {name}\n".encode())


class Part:
    """The IDs that one thread or process took, and the error that stopped it, if any."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.refused: str | None = None

    def take(self, build: Callable[[], NextId], n: int) -> Part:
        try:
            next_id = build()
            for _ in range(n):
                self.ids.append(next_id())
        except MISTAKES:
            raise
        except Exception as error:
            self.refused = name_of(error)
        return self


def print_ids(ids: Iterable[int]) -> None:
    """Prints with a single write, since other processes may print to the same file."""
    text = memoryview("".join(f"{id_}\n" for id_ in ids).encode())
    while text:
        text = text[os.write(1, text) :]


def finish(parts: Sequence[Part]) -> int:
    for part in parts:
        print_ids(part.ids)
        if part.refused is not None:
            say_refused(part.refused)
    return REFUSED if any(part.refused for part in parts) else DONE


# The situations -----------------------------------------------------------------------------------


def in_threads(builds: Sequence[Callable[[], NextId]], n: int) -> list[Part]:
    together = threading.Barrier(len(builds))

    def work(build: Callable[[], NextId]) -> Part:
        together.wait()
        return Part().take(build, n)

    with ThreadPoolExecutor(len(builds)) as threads:
        return list(threads.map(work, builds))


def threads(build: Build, probe: Probe) -> int:
    """All threads share a generator."""
    next_id = build(probe)
    return finish(in_threads([lambda: next_id] * probe.parts, probe.n))


def worker_threads(build: Build, probe: Probe) -> int:
    """Each thread has its own generator, all for the same node."""
    return finish(in_threads([lambda: build(probe)] * probe.parts, probe.n))


def fork(build: Build, probe: Probe) -> int:
    """The parent and its children use the generator built by the parent."""
    next_id = build(probe)
    return forked(next_id, lambda: next_id, probe)


def fork_new(build: Build, probe: Probe) -> int:
    """The children build their own generators for the parent's node."""
    return forked(build(probe), lambda: build(probe), probe)


def forked(next_id: NextId, in_child: Callable[[], NextId], probe: Probe) -> int:
    parents = Part().take(lambda: next_id, 1)
    children = []
    for _ in range(probe.parts - 1):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                status = finish([Part().take(in_child, probe.n)])
            finally:
                os._exit(status)
        children.append(pid)
    parents.take(lambda: next_id, probe.n - 1)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    return max(finish([parents]), *statuses)


def rollback(build: Build, probe: Probe) -> int:
    """The clock is set back while the generator is in use."""
    clock = os.environ.get("FAKETIME_TIMESTAMP_FILE")
    if clock is None:
        unsupported("needs libfaketime, which steps this program's clock")
    next_id = build(probe)
    began = time.monotonic()
    before = Part().take(lambda: next_id, probe.n - 1)
    # Wait, so that the step goes back to the time of the first IDs. This avoids time.sleep, which
    # libfaketime breaks.
    select.select([], [], [], max(0, began + probe.behind_ms / 1000 - time.monotonic()))
    last = Part().take(lambda: next_id, 1)
    # Do not truncate it: libfaketime ends the program if a thread reads the empty file.
    with Path(clock).open("r+", encoding="utf-8") as file:
        file.write(f"-{probe.behind_ms / 1000}\n")
    return finish([before, last, Part().take(lambda: next_id, probe.n)])


def exhaustion(build: Build, probe: Probe) -> int:
    """Takes more IDs than fit in the elapsed ticks."""
    return finish([Part().take(lambda: build(probe), probe.n)])


def restart(build: Build, probe: Probe) -> int:
    """Starts when the previous process is done, as a restarted program would."""
    os.write(1, b"ready\n")
    sys.stdin.buffer.read()
    part = Part().take(lambda: build(probe), probe.n)
    # This starts the next process, within the same tick if possible.
    os.close(probe.gate)
    return finish([part])


def per_call(build: Build, probe: Probe) -> int:
    """Builds a generator for each ID, as a function that handles a single request would."""
    return finish([Part().take(lambda: lambda: build(probe)(), probe.n)])


def fleet(build: Build, probe: Probe) -> int:
    """One of several processes that were not given a node. The runner kills it."""
    status = finish([Part().take(lambda: build(probe), probe.n)])
    if status == DONE:
        sys.stdin.buffer.read()
    return status


# gunicorn -----------------------------------------------------------------------------------------


def worker_number() -> int:
    """A number that no other worker of the server ever has, set by gunicorn.conf.py."""
    return int(os.environ["WORKER_NUMBER"])


def application(adapter: str) -> Callable[[dict[str, str], Callable[..., Any]], list[bytes]]:
    """The WSGI application. The path of a request is the number of IDs to take."""
    build: Build = importlib.import_module(adapter).build
    probe = parse(os.environ["PROBE"].split("\n"))
    # gunicorn's master loads the application here, before it forks its workers.
    next_id = build(probe) if probe.situation == "prefork-one-node" else None

    def inherited_or_own() -> NextId:
        nonlocal next_id
        if next_id is None:
            next_id = build(probe)
        return next_id

    def answer(environ: dict[str, str], start_response: Callable[..., Any]) -> list[bytes]:
        wait_for_the_others(probe.parts)
        part = Part().take(inherited_or_own, int(environ["PATH_INFO"][1:]))
        start_response("200 OK", [("Refused", part.refused or "")])
        return ["\n".join(map(str, part.ids)).encode()]

    return answer


def wait_for_the_others(workers: int) -> None:
    """Each worker holds its first request until all have one; if not, one could answer them all."""
    here = Path.cwd()  # the server's folder
    (here / f"worker-{os.getpid()}").touch()
    while len(list(here.glob("worker-*"))) < workers:
        time.sleep(0.001)


class UnixConnection(HTTPConnection):
    def connect(self) -> None:
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.connect(self.host)


def is_listening(address: str) -> bool:
    """Returns true if a server accepts connections. Its socket appears slightly earlier."""
    with socket(AF_UNIX, SOCK_STREAM) as client:
        return client.connect_ex(address) == 0


def prefork(_: Build, probe: Probe) -> int:
    """A server whose workers are forked from a master that has loaded the application."""
    if importlib.util.find_spec("gunicorn") is None:
        unsupported("needs gunicorn (pip install gunicorn)")
    with tempfile.TemporaryDirectory(prefix="probe-") as folder:
        address = f"{folder}/socket"
        program = Path(sys.argv[0]).resolve()
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "--preload", "--log-level", "warning"),
                *("--workers", str(probe.parts), "--bind", f"unix:{address}", "--timeout", "600"),
                *(
                    "--pythonpath",
                    f"{HERE},{program.parent}",
                    "--config",
                    str(HERE / "gunicorn.conf.py"),
                ),
                f"situations:application('{program.stem}')",
            ],
            env={**os.environ, "PROBE": "\n".join(sys.argv[1:])},
            cwd=folder,
        )
        try:
            while not is_listening(address):
                if server.poll() is not None:
                    raise ChildProcessError("gunicorn did not start")
                time.sleep(0.01)
            return finish(ask(address, probe))
        finally:
            server.terminate()
            server.wait()


def ask(address: str, probe: Probe) -> list[Part]:
    total = probe.parts * probe.n
    # At least one request per worker.
    size = min(IDS_PER_REQUEST, probe.n)
    sizes = [min(size, total - at) for at in range(0, total, size)]

    def request(size: int) -> Part:
        connection = UnixConnection(address)
        connection.request("GET", f"/{size}", headers={"Host": "probe"})
        response = connection.getresponse()
        part = Part()
        part.ids = [int(id_) for id_ in response.read().split()]
        part.refused = response.headers["Refused"] or None
        connection.close()
        return part

    with ThreadPoolExecutor(2 * probe.parts) as clients:
        return list(clients.map(request, sizes))


SITUATIONS: dict[str, Callable[[Build, Probe], int]] = {
    "threads": threads,
    "worker-threads": worker_threads,
    "fork": fork,
    "fork-new": fork_new,
    "prefork": prefork,
    "prefork-one-node": prefork,
    "rollback": rollback,
    "exhaustion": exhaustion,
    "restart": restart,
    "per-call": per_call,
    "fleet": fleet,
}


def run(build: Build) -> NoReturn:
    """The adapter's main function: runs the situation named on the command line."""
    probe = parse(sys.argv[1:])
    if probe.situation not in SITUATIONS:
        unsupported(f"unknown situation: {probe.situation}")
    sys.exit(SITUATIONS[probe.situation](build, probe))
