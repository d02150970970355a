package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * A call that waits for IDs. It has a place in the library's fair queue, but its thread is parked in Java, so that a
 * virtual thread releases its carrier and an interrupt ends the wait.
 */
final class Waiting implements AutoCloseable {
    /** The longest time that a close or a step of the clock may go unnoticed. */
    private static final long LONGEST_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(50);

    private final Snowflake owner;
    private final long address;
    private final MemorySegment filled;
    private final MemorySegment pauseNs;
    private final Detail detail;

    Waiting(Snowflake owner, long snowflake, Arena arena, Detail detail) {
        this.owner = owner;
        this.detail = detail;
        filled = arena.allocate(JAVA_LONG);
        pauseNs = arena.allocate(JAVA_LONG);
        MemorySegment made = arena.allocate(JAVA_LONG);
        detail.check(Native.waitingNew(snowflake, made, detail.segment));
        address = made.get(JAVA_LONG, 0);
    }

    /** Waits for 1 to n IDs with the same node, and returns how many there are. */
    long await(long n, MemorySegment ids) {
        long since = System.nanoTime();
        while (true) {
            // Not 0, because next_id_now has already counted this wait.
            long waited = Math.max(System.nanoTime() - since, 1);
            owner.requireStack();
            owner.check(Native.waitingPoll(address, waited, n, ids, filled, pauseNs, detail.segment), detail);
            long count = filled.get(JAVA_LONG, 0);
            if (count > 0) {
                return count;
            }
            // Only now is it known that the call must wait.
            if (Thread.currentThread().isInterrupted()) {
                throw new WaitInterruptedException();
            }
            long pause = pauseNs.get(JAVA_LONG, 0);
            LockSupport.parkNanos(this, pause < 0 ? LONGEST_PAUSE_NS : Math.clamp(pause, 1, LONGEST_PAUSE_NS));
        }
    }

    @Override
    public void close() {
        Native.waitingFree(address);
    }
}
