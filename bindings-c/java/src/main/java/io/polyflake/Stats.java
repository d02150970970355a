package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Optional;

/**
 * Statistics for monitoring from {@link Snowflake#stats()}, since the cursor was created.
 *
 * @param waits how many times a call found no free slot, and waited or failed
 * @param rollbacks how many times the clock was seen to step back, whether or not this was tolerated
 * @param leadMs how many ms the last tick used is ahead of the clock; 0 if it is not ahead
 * @param lastIssued the start of the last ID's tick; empty before the first ID
 * @param leaseLosses how many times the lease was lost, because it expired or another process had its node; 0 without a
 *     lease
 */
public record Stats(long waits, long rollbacks, long leadMs, Optional<Instant> lastIssued, long leaseLosses) {
    static final long SIZE = 48;

    static Stats of(MemorySegment stats) {
        long lastIssuedMs = stats.get(JAVA_LONG, 32);
        return new Stats(stats.get(JAVA_LONG, 8), stats.get(JAVA_LONG, 16), stats.get(JAVA_LONG, 24),
                lastIssuedMs < 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(lastIssuedMs)),
                stats.get(JAVA_LONG, 40));
    }
}
