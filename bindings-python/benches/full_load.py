"""Full load from Python: the share of capacity, and how late another thread wakes meanwhile."""

import array
import statistics
import threading
import time
from collections.abc import Callable

from polyflake import Snowflake

ROUNDS = 9
TICKS = 300
IDS = 200_000


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def issue(ids: Snowflake, count: int) -> None:
    next_id = ids.next_id
    for _ in range(count):
        next_id()


def iterate(ids: Snowflake, count: int) -> None:
    for _ in zip(range(count), ids, strict=False):
        pass


def sleeper(wakes: list[float], stop: threading.Event) -> None:
    """Notes how many ms each sleep of 0.5 ms takes."""
    while not stop.is_set():
        wakes.append(seconds(lambda: time.sleep(0.0005)) * 1000)


def main() -> None:
    twitter = Snowflake(node=1)
    wide = Snowflake(layout="timestamp:40|worker:2|sequence:22@1735689600000/1ms", node=1)
    buffer = array.array("Q", bytes(8 * 100_000))
    figures: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)

    wakes: list[float] = []
    for _ in range(ROUNDS):
        twitter.next_id()
        alone = seconds(lambda: issue(twitter, 4096 * TICKS))
        note("full load on twitter, % of 4096 IDs a ms", TICKS / alone / 10)
        stop = threading.Event()
        other = threading.Thread(target=sleeper, args=(wakes, stop))
        other.start()
        twitter.next_id()
        beside = seconds(lambda: issue(twitter, 4096 * TICKS))
        stop.set()
        other.join()
        note("the same beside a thread that sleeps", TICKS / beside / 10)
        note("next_id, ns an ID", seconds(lambda: issue(wide, IDS)) / IDS * 1e9)
        note("for loop, ns an ID", seconds(lambda: iterate(wide, IDS)) / IDS * 1e9)
        lists = seconds(lambda: [wide.next_ids(1000) for _ in range(100)])
        note("next_ids(1000), ns an ID", lists / 100_000 * 1e9)
        note("fill of 100,000, ns an ID", seconds(lambda: wide.fill(buffer)) / 100_000 * 1e9)
    print(f"Python, medians of {ROUNDS} interleaved rounds")
    for name, values in figures.items():
        print(f"  {name:45}{statistics.median(values):9.2f}")
    median, worst = statistics.median(wakes), max(wakes)
    print(f"  a sleep of 0.5 ms meanwhile takes, ms        {median:9.3f} (longest {worst:.1f})")


if __name__ == "__main__":
    main()
