"""Celery: a generator for each process of a worker.

ids = generator(lambda: Snowflake(lease="redis://redis.internal/0"))

@app.task
def add() -> str:
    return str(ids.next_id())  # results are JSON, whose readers may round numbers of this size

A process opens its generator when it takes its first ID, not in `worker_process_init`, because
Celery kills a process that spends four seconds there.
"""

from __future__ import annotations

from collections.abc import Callable

from celery.signals import worker_process_shutdown
from polyflake_processes import Made, PerProcess


def generator(make: Callable[[], Made]) -> PerProcess[Made]:
    """Call this in the module that defines the tasks, so that it runs before Celery forks."""
    ids = PerProcess(make)

    def close(**_: object) -> None:
        ids.close()

    # Celery's processes run neither atexit nor multiprocessing's finalizers.
    worker_process_shutdown.connect(close, weak=False)
    return ids
