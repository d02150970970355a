"""Helpers shared by the tests."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from polyflake import PolyflakeError, Snowflake

#: Whether this Python was built with a GIL.
HAS_GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


def in_child(child: Callable[[], object]) -> object:
    """Returns the value that `child` returns in a fork of this process."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, json.dumps(child()).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(answer)


def type_errors(program: str) -> list[str]:
    """Returns the lines in which mypy reports an error."""
    # In its own process, because mypy raises the recursion limit.
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "-c", program]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    assert told.returncode in (0, 1)
    return [line for line in told.stdout.splitlines() if " error: " in line]


PROGRAM = """
import json, sys, time
from polyflake import Counter, PolyflakeError, Sequences, Snowflake

def tell(value):
    print(json.dumps(value), flush=True)

lease = store = sys.argv[1]
"""


class Program:
    """A Python program that reports JSON with `tell`; `lease` and `store` hold an address."""

    def __init__(self, code: str, store: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + code, store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def told(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            assert self.process.stderr is not None
            pytest.fail(self.process.stderr.read())
        return json.loads(line)

    def go(self) -> None:
        """Lets the program's `input()` return."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Waits for the program to exit, and returns its stderr output."""
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors
        return errors


@contextmanager
def program(code: str, store: str) -> Iterator[Program]:
    made = Program(code, store)
    with made.process:
        try:
            yield made
        finally:
            made.process.kill()


HOLDER = """
with Snowflake(lease=lease) as ids:
    tell([ids.node, ids.next_ids(1000)])
    input()
tell("closed")
"""


def until(is_so: Callable[[], object]) -> None:
    while not is_so():
        time.sleep(0.01)


def holds_the_node_of_its_ids(ids: Snowflake) -> bool:
    lease = ids.lease
    assert lease is not None
    return lease.state == "held" and ids.decode(ids.next_id()).node == lease.node == ids.node


def failure(call: Callable[[], object]) -> str:
    try:
        call()
    except PolyflakeError as error:
        return str(error)
    return ""


def free_port() -> int:
    """Returns a free port below the range for outgoing connections, so that it stays free."""
    while True:
        port = random.randrange(30_000, 32_768)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


class Redis:
    """A server on a free port, which keeps its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.store = f"redis://127.0.0.1:{self.port}/0"
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def address(self, parameters: str) -> str:
        return f"{self.store}?init=always&{parameters}"

    def logged(self, caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
        """Only this store's log records: objects from earlier tests may still be closing."""
        return [it for it in caplog.records if it.__dict__.get("store") == self.store]

    def start(self) -> None:
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        # Every write is flushed before it is acknowledged, so killing the server loses none.
        options += ["--appendfsync", "always"]
        command = ["redis-server", "--port", str(self.port), "--dir", str(self.folder), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                assert self.process.poll() is None
                time.sleep(0.02)
            else:
                return

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
