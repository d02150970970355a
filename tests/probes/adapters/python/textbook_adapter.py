"""The textbook Snowflake, which repeats IDs and so shows that the probes can fail.

Options: wrap=1 wraps a sequence that is used up, borrow=1 continues in the next tick ahead of time
(both with 6 sequence bits), pause=1 lets other threads run between reading and writing its state.
tick_ms=3600000 makes ticks an hour long, so that two processes share one no matter how busy the
machine is.
"""

import time

from situations import NextId, Probe, run

EPOCH_MS = 1_288_834_974_657


class Textbook:
    def __init__(self, node: int, probe: Probe) -> None:
        self.node = node
        self.tick_ms = probe.tick_ms
        self.wraps = "wrap" in probe.options
        self.borrows = "borrow" in probe.options
        self.pauses = "pause" in probe.options
        # Enough for a tick, except with the options that test exhaustion.
        self.sequence_bits = 6 if self.wraps or self.borrows else 12 if self.tick_ms < 1000 else 22
        self.last = -1
        self.sequence = 0

    def now(self) -> int:
        return (time.time_ns() // 1_000_000 - EPOCH_MS) // self.tick_ms

    def next_id(self) -> int:
        last, sequence = self.last, self.sequence
        now = max(self.now(), last) if self.borrows else self.now()
        if self.pauses:
            time.sleep(0)
        if now != last:
            sequence = 0
        else:
            sequence = (sequence + 1) % (1 << self.sequence_bits)
            if sequence == 0 and self.borrows:
                now += 1
            elif sequence == 0 and not self.wraps:
                while now == last:
                    now = self.now()
        self.last, self.sequence = now, sequence
        return now << (10 + self.sequence_bits) | self.node << self.sequence_bits | sequence


def build(probe: Probe) -> NextId:
    return Textbook(7, probe).next_id


if __name__ == "__main__":
    run(build)
