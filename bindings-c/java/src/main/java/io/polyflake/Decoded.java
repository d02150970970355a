package io.polyflake;

import java.time.Instant;
import java.util.Map;

/**
 * The parts of an ID, from {@link Layout#decode(long)}.
 *
 * @param id the ID, read as an unsigned number
 * @param time the start of the ID's tick
 * @param ticks the number of ticks since the epoch
 * @param node all node bits as one number, the highest field first
 * @param fields the values of the node fields by name, the highest field first
 * @param sequence the sequence number within the tick
 */
public record Decoded(long id, Instant time, long ticks, long node, Map<String, Long> fields, long sequence) {
    /** Stores the parts without checking them. */
    public Decoded {}

    /**
     * Returns {@link #time()} in Unix ms.
     *
     * @return the time in ms
     */
    public long timestampMs() {
        return time.toEpochMilli();
    }

    /**
     * Returns the value of one node field.
     *
     * @param name the field's name, such as {@code worker}
     * @return the value
     * @throws IllegalArgumentException if the layout has no such node field
     */
    public long field(String name) {
        Long value = fields.get(name);
        if (value == null) {
            throw new IllegalArgumentException("no node field is named " + name + ": there are " + fields.keySet());
        }
        return value;
    }
}
