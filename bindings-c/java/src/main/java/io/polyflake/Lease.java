package io.polyflake;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;

/**
 * A Snowflake's lease at one point in time, from {@link Snowflake#lease()}.
 *
 * @param node the Snowflake's node, or its last node if it has none now: all node bits as one number
 * @param bound the time until which the Snowflake may issue IDs without a reply from the store; empty if it has no
 *     node now
 * @param left the time left until the bound
 * @param store the store's address, without its password
 * @param state the lease's state
 */
public record Lease(long node, Optional<Instant> bound, Duration left, String store, State state) {
    static final long SIZE = 296;
    private static final int NONE = 0;

    /** A lease's state. */
    public enum State {
        /** The Snowflake has a node, and the store is answering. */
        HELD,
        /** The Snowflake has a node, but the store did not answer the last request. IDs are issued up to the bound. */
        UNREACHABLE,
        /** The lease has expired: no ID is issued until the store renews the lease or assigns another node. */
        LOST,
        /** The Snowflake is closed. */
        CLOSED
    }

    /** Returns empty if the Snowflake has no lease. */
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
