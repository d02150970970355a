package io.polyflake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.OptionalLong;

/**
 * An event about a lease, a counter or sequences.
 *
 * @param kind the kind of event, such as {@code acquired}, {@code lost} or {@code store_unreachable}. Later versions
 *     may add more kinds
 * @param store the store's address, without its password
 * @param message a sentence that describes the whole event, without secrets
 * @param node the node, if the event concerns one
 * @param isWarning true if someone should look into the event
 * @param time when it happened
 */
public record LeaseEvent(
        String kind, String store, String message, OptionalLong node, boolean isWarning, Instant time) {
    /** Reads {@code polyflake_lease_event}, which is valid only until the listener returns. */
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
