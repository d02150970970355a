package io.polyflake;

/**
 * A field of a {@link Layout}.
 *
 * @param name {@code timestamp}, {@code sequence}, or the name of a node field
 * @param bits the width of the field
 * @param shift the number of bits below the field
 * @param mask the field's bits within the ID
 * @param isNode false for the timestamp and the sequence
 */
public record Field(String name, int bits, int shift, long mask, boolean isNode) {
    /** Returns the field's value in an ID. */
    long of(long id) {
        return (id & mask) >>> shift;
    }
}
