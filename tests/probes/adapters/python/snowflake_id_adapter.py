"""Adapts PyPI's snowflake-id to the duplicate probes (pip install snowflake-id)."""

from situations import NextId, Probe, run, unsupported, worker_number
from snowflake import SnowflakeGenerator


def build(probe: Probe) -> NextId:
    if probe.tick_ms != 1:
        unsupported("its tick is 1 ms")
    ids = SnowflakeGenerator(worker_number() if probe.situation == "prefork" else 7)

    def next_id() -> int:
        # None when the tick is used up: the caller must wait.
        while (id_ := next(ids)) is None:
            pass
        return id_

    return next_id


if __name__ == "__main__":
    run(build)
