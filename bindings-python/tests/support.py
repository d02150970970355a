"""Shared by the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def in_child(child: Callable[[], object]) -> object:
    """Returns what `child` returns in a fork of this process."""
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


PROGRAM = """
import json, sys, time
from polyflake import Snowflake, PolyflakeError

def tell(value):
    print(json.dumps(value), flush=True)

lease = sys.argv[1]
"""


class Program:
    """A Python program with `tell` and `lease`, which tells JSON."""

    def __init__(self, code: str, lease: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM + code, lease],
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
        """Lets its `input()` return."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> str:
        """Waits for its end, and returns what it wrote to stderr."""
        _, errors = self.process.communicate()
        assert self.process.returncode == 0, errors
        return errors


@contextmanager
def program(code: str, lease: str) -> Iterator[Program]:
    made = Program(code, lease)
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
