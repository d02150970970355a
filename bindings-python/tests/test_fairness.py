"""No call fails and no thread starves, even if many threads request more IDs than a tick holds."""

from __future__ import annotations

import threading
import time

import pytest
from polyflake import Snowflake

THREADS = 32
# A thousand ticks: the first thread in a tick takes most of its IDs, which evens out over time.
SECONDS = {"twitter": 1, "sonyflake": 10, "yitter": 1}
# How many extra seconds a thread is given to catch up: on a busy machine, it may start late, or not
# run for a while. A starving thread never catches up.
PATIENCE = 60


@pytest.mark.parametrize("layout", SECONDS)
@pytest.mark.parametrize("batch", [1, 100])
def test_no_thread_starves(layout: str, batch: int) -> None:
    ids = Snowflake(layout=layout, node=60, max_wait_ms=2**32 - 1)
    got = [0] * THREADS
    failed: list[Exception] = []
    is_over = threading.Event()

    def ask(thread: int) -> None:
        try:
            while not is_over.is_set():
                if batch == 1:
                    ids.next_id()
                else:
                    ids.next_ids(batch)
                got[thread] += batch
        except Exception as error:
            failed.append(error)

    def is_even() -> bool:
        return 0 < sum(got) <= min(got) * 4 * THREADS

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(THREADS)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    while not failed:
        time.sleep(0.1)
        passed = time.monotonic() - began
        if passed >= SECONDS[layout] and (is_even() or passed >= SECONDS[layout] + PATIENCE):
            break
    is_over.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert is_even(), sorted(got)
