package io.polyflake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.OptionalLong;

/**
 * What happened to a lease, a counter or sequences.
 *
 * @param kind what, such as {@code acquired}, {@code lost} or {@code store_unreachable}. Later versions may have more
 * @param store the store's address, without password
 * @param message all of it as a sentence, without secrets
 * @param node the node, if it is about one
 * @param isWarning whether somebody should look at it
 * @param time when
 */
public record LeaseEvent(
        String kind, String store, String message, OptionalLong node, boolean isWarning, Instant time) {
    /** Reads {@code polyflake_lease_event}, which is valid only during the call of the listener. */
    static LeaseEvent of(MemorySegment event) {
        MemorySegment read = Native.at(event, 48);
        boolean hasNode = read.get(JAVA_INT, 40) != 0;
        return new LeaseEvent(textAt(read, 8), textAt(read, 16), textAt(read, 24),
                hasNode ? OptionalLong.of(read.get(JAVA_LONG, 32)) : OptionalLong.empty(),
                read.get(JAVA_INT, 44) != 0, Instant.now());
    }

    private static String textAt(MemorySegment event, long offset) {
        return Native.text(event.get(ADDRESS, offset));
    }
}
