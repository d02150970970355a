"""Adapts Polyflake for Python to the duplicate probes."""

from typing import Any

from polyflake import Snowflake
from situations import NextId, Probe, run, unsupported, worker_number

LAYOUTS = {1: "twitter", 10: "sonyflake", 1000: "cosid-second"}


def build(probe: Probe) -> NextId:
    if probe.situation == "fleet" and not {"lease", "node", "state"} & probe.options.keys():
        unsupported("processes that have no node of their own need a lease")
    options: dict[str, Any] = {
        # 64 IDs per tick, so that even Python can use them up.
        "layout": "yitter" if probe.situation == "exhaustion" else LAYOUTS[probe.tick_ms],
        # On a busy machine, a thread may wait a long time for its turn.
        "max_wait_ms": 60_000,
        **{name: int(text) if text.isdigit() else text for name, text in probe.options.items()},
    }
    if "lease" not in options:
        # As the README requires: each process has a different node.
        options.setdefault("node", worker_number() if probe.situation == "prefork" else 7)
    return Snowflake(**options).next_id


if __name__ == "__main__":
    run(build)
