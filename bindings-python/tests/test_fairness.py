"""However many threads ask for more than a layout can give, no call fails and no thread starves."""

from __future__ import annotations

import threading
import time

import pytest
from polyflake import Snowflake

THREADS = 32
# A thousand ticks: the thread that runs first in a tick gets most of it, which evens out.
SECONDS = {"twitter": 1, "sonyflake": 10, "yitter": 1}


@pytest.mark.parametrize("layout", SECONDS)
@pytest.mark.parametrize("batch", [1, 100])
def test_no_thread_starves(layout: str, batch: int) -> None:
    ids = Snowflake(layout=layout, node=60)
    got = [0] * THREADS
    failed: list[Exception] = []
    began = time.monotonic()
    end = began + SECONDS[layout]

    def ask(thread: int) -> None:
        try:
            while got[thread] == 0 or time.monotonic() < end:
                if batch == 1:
                    ids.next_id()
                else:
                    ids.next_ids(batch)
                got[thread] += batch
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    # On a busy machine, threads that are not running ask for nothing.
    ticks = (time.monotonic() - began) * 1000 / ids.layout.tick_ms
    if sum(got) >= 0.9 * ticks * ids.layout.ids_per_tick:
        assert min(got) * 4 >= sum(got) / THREADS, sorted(got)
