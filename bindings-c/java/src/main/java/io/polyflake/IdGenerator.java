package io.polyflake;

/**
 * Gives unique IDs: a {@link Snowflake}, a {@link Counter}, or a generator of your own. Code that takes an ID from any
 * of them takes an {@code IdGenerator}.
 */
public interface IdGenerator {
    /**
     * Returns the next ID.
     *
     * @return the ID
     */
    long nextId();

    /**
     * Returns the next {@code n} IDs. If this throws, the IDs that were already taken are lost, never repeated.
     *
     * @param n how many
     * @return the IDs
     */
    long[] nextIds(int n);
}
