package io.polyflake;

/**
 * A source of unique IDs: a {@link Snowflake}, a {@link Counter}, or your own generator. Code that works with any of
 * them takes an {@code IdGenerator}.
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
     * @param n the number of IDs
     * @return the IDs
     */
    long[] nextIds(int n);
}
