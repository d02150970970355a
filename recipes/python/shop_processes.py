"""For the tests with several processes: the task that each process runs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from polyflake import Snowflake
from polyflake_processes import PerProcess


def take(ids: PerProcess[Snowflake], meeting: str) -> dict[str, Any]:
    """Takes IDs once another process has joined the meeting, so no process does all the work."""
    place = Path(os.environ["MEETINGS"], meeting)
    place.mkdir(parents=True, exist_ok=True)
    (place / str(os.getpid())).touch()
    while len(os.listdir(place)) < 2:
        time.sleep(0.01)
    return {
        "process": os.getpid(),
        "node": ids.here.node,
        "ids": [str(id_) for id_ in ids.next_ids(10)],
    }
