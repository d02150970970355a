package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * A Snowflake's lease at one instant, from {@link Snowflake#lease()}.
 *
 * @param node the node that it has, or had last: all node bits together
 * @param bound until when it may issue without hearing from the store; empty if it has no node now
 * @param left how long that is from now
 * @param store the store's address, without password
 * @param state how it stands
 */
public record Lease(long node, Optional<Instant> bound, Duration left, String store, State state) {
    static final long SIZE = 296;
    private static final int NONE = 0;

    /** How a lease stands. */
    public enum State {
        /** It has a node, and the store answers. */
        HELD,
        /** It has a node, and the store did not answer when it was last asked. Issuing goes on up to the bound. */
        UNREACHABLE,
        /** It has expired: no ID is issued until the store has renewed it or has given another node. */
        LOST,
        /** The Snowflake is closed. */
        CLOSED
    }

    /** Empty for a Snowflake without a lease. */
    static Optional<Lease> of(MemorySegment lease) {
        int state = lease.get(JAVA_INT, 32);
        if (state == NONE) {
            return Optional.empty();
        }
        long boundMs = lease.get(JAVA_LONG, 16);
        return Optional.of(new Lease(lease.get(JAVA_LONG, 8),
                boundMs == 0 ? Optional.empty() : Optional.of(Instant.ofEpochMilli(boundMs)),
                PolyflakeException.duration(lease.get(JAVA_LONG, 24)), lease.getString(36),
                State.values()[state - 1]));
    }
}
