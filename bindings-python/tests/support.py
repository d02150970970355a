"""Shared by the tests."""

import json
import os
from collections.abc import Callable


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
